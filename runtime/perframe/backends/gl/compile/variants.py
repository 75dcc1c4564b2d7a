"""Variants of kernels: declared choices that change how fast a kernel is, and nothing else.

Each device has one choice a kernel. `perframe tune` measures them and keeps the fastest in a file, by driver; without
that file there are defaults by vendor.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from perframe.backends.kernel_files import beside
from perframe.errors import BackendError
from perframe.resources import cache_folder, digest_of
from perframe.safety.private_files import make_private, read_regular

log = logging.getLogger("perframe")

_MOST_BYTES = 1 << 20  # of a file of choices
# The variants of each kernel; a GPU of an unknown vendor takes the first. A tile is "PIXELSxBLOCKSxROWS": the pixels
# and blocks of channels that an invocation computes, and the rows of other blocks that a work group of 64 has. With one
# row, all invocations of a group read the same weights. A map is small if one row leaves half of a group idle.
VARIANTS: Mapping[str, Sequence[str]] = {
    "reads": ("buffers", "views"),  # of whole texels on gpu_compute: from the buffer, or from a texture over it
    "lanes": ("64", "8", "1"),  # invocations that share a long row on gpu_compute, at most
    "texels": ("fetched", "sampled"),  # on gpu_pixel: by their indices, or by coordinates
    "depthwise lines": ("strips", "any"),  # on gpu_pixel: whether lines as long as the data's have loops of their own
    "window": ("4x4x1", "8x2x1", "4x2x1", "4x2x4"),
    "window, small map": ("4x2x4", "4x4x1", "4x4x4", "8x2x1"),
    "pointwise": ("4x4x1", "8x2x1", "4x2x1", "4x2x4"),
    "pointwise, small map": ("4x2x4", "4x4x1", "4x4x4", "8x2x1"),
    "window of 3 x 3": ("products", "points"),  # on gpu_compute: nine for each output, or Winograd's way
    # LANESxPIXELS: a work group of these lanes loads into shared memory what it needs, for at most these pixels a lane
    "depthwise patch": ("320x4", "64x4", "none"),
    "depthwise patch, middle map": ("256x1", "64x4", "none"),
    "depthwise patch, small map": ("64x1", "64x4", "none"),
    "depthwise": ("8x1x1", "4x1x1", "4x1x4"),
    "depthwise, small map": ("8x1x4", "8x1x1", "4x1x4", "4x1x1"),
}
# What a part of the renderer's name says about the rest.
_BY_RENDERER: Mapping[str, Mapping[str, str]] = {
    "llvmpipe": {  # has no waves that could be idle, and reads textures twice as fast as buffers
        "reads": "views",
        "lanes": "1",
        "texels": "sampled",
        "depthwise lines": "any",
        "depthwise patch": "none",
        "depthwise patch, middle map": "none",
        "depthwise patch, small map": "none",
        "window of 3 x 3": "points",
        "window, small map": "4x4x1",
        "pointwise": "8x2x1",
        "pointwise, small map": "8x2x1",
        "depthwise, small map": "8x1x1",
    }
}


class Choices:
    """The variant of each kernel on one driver, which is (vendor, renderer, version)."""

    def __init__(self, driver: Sequence[str]) -> None:
        self.driver = tuple(driver)
        self.asked: set[str] = set()  # the kernels whose variants were asked for, for `perframe tune`
        self._chosen = {kernel: variants[0] for kernel, variants in VARIANTS.items()}
        for part, chosen in _BY_RENDERER.items():
            if part in self.driver[1]:
                self._chosen.update(chosen)
        self._chosen.update(self._read())

    def __getitem__(self, kernel: str) -> str:
        """The chosen variant of a kernel."""
        self.asked.add(kernel)
        return self._chosen[kernel]

    @property
    def path(self) -> Path:
        """The file that keeps what was found faster than the defaults."""
        digest = digest_of("\n".join(self.driver))
        return cache_folder() / "tuned" / f"{digest[:40]}.json"

    @contextmanager
    def trying(self, kernel: str, variant: str) -> Iterator[None]:
        """Choose another variant inside the block. What was planned before keeps the variants that it has."""
        before = self._chosen
        self._chosen = before | {kernel: variant}
        try:
            yield
        finally:
            self._chosen = before

    def keep(self, found: Mapping[str, str]) -> None:
        """Choose these variants from now on, and write them to the file. Raises BackendError if that fails."""
        self._chosen.update(found)
        kept = self._read() | dict(found)
        try:
            make_private(self.path.parent)
            with beside(self.path) as file:
                file.write(json.dumps({"driver": self.driver, "chosen": kept}, indent=1).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise BackendError(
                f"what was tuned holds in this process only, since {str(self.path)!r} cannot be written: {error}. "
                "PERFRAME_CACHE names another folder"
            ) from error

    def _read(self) -> dict[str, str]:
        """The variants in the file; those that no longer exist are left out. A damaged file counts as none."""
        try:
            found = json.loads(read_regular(self.path, _MOST_BYTES))["chosen"]
            return {kernel: str(found[kernel]) for kernel in found if found[kernel] in VARIANTS.get(kernel, ())}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s cannot be read (%s): kernels are not tuned; `perframe tune` tunes them", self.path, error)
            return {}
