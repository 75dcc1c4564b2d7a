"""The chain of a frame: detector, regions, crops, landmarks and filter, with nothing read back on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import perframe as pf

from .networks import follower, landmark_network, palm_detector

EVERY = 15  # pictures from one look of the detector to the next


class HandsSeen(NamedTuple):
    """The hands of a picture, where the networks run: points (hands, 21, 2) in its pixels, and scores (hands,)."""

    points: pf.Tensor
    scores: pf.Tensor


class HandChain:
    """Follows hands through pictures of one size: textures on a GPU, arrays on the CPU.

    A hand keeps its row while it is followed. The detector looks at every `EVERY`th picture: which hands are lost is
    known on the device only, and to ask would be a readback.
    """

    def __init__(
        self,
        backend: Any,
        ctx: Any,
        size: tuple[int, int],
        detector: Path | None = None,
        landmarks: Path | None = None,
    ) -> None:
        palms, joints = palm_detector(detector, size), landmark_network(landmarks)
        self.size, self.looks, self.pictures = size, 0, 0
        self._whole, self._part = palms.transform, joints.transform
        self._converter = pf.TextureConverter(ctx, backend)
        self._detector = pf.Worker(palms.model, backend, ctx)
        self._follower = pf.Worker(follower(), backend, ctx)
        self._landmarks = pf.Worker(joints.model, backend, ctx, carry={"next_state": "state"})
        self._picture, self._crops = pf.Tensor.empty(palms.shape), pf.Tensor.empty(joints.shape)
        count = joints.shape[0]
        self._last: Any = np.zeros((count, 5), np.float32), np.zeros(count, np.float32)

    def regions(self, picture: Any) -> pf.Tensor:
        """The regions (hands, 5) in which to look for landmarks; a row without a hand is 0."""
        is_due = self.pictures % EVERY == 0
        if is_due:
            self._converter.to_tensor(picture, self._picture, self._whole)
            self._detector.schedule(self._picture)
            self.looks += 1
        self.pictures += 1
        regions, scores = self._last
        given = {"regions": regions, "scores": scores, "fresh": np.array([is_due], np.float32)}
        for name, output in (("found", "regions"), ("sure", "scores")):
            given[name] = self._detector.peek_output(output)
        return self._follower.schedule(given).peek_output("chosen")

    def landmarks(self, picture: Any, regions: pf.Tensor, seconds: float) -> HandsSeen:
        """The hands in these regions. `seconds` is the time since the last picture."""
        self._converter.crop(picture, regions, self._crops, self._part)
        given = {"crops": self._crops, "regions": regions, "kept": self._follower.peek_output("kept")}
        outputs = self._landmarks.schedule({**given, "seconds": np.array([seconds], np.float32)}).peek_output
        self._last = outputs("following"), outputs("scores")
        return HandsSeen(outputs("points"), outputs("scores"))

    def release(self) -> None:
        """Free the workers and the tensors."""
        for thing in (self._detector, self._follower, self._landmarks, self._converter, self._picture, self._crops):
            thing.release()
