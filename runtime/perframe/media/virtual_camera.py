"""A camera that other programs see, by the package pyvirtualcam."""

from __future__ import annotations

from typing import Any

from perframe.errors import InputError, MissingExtraError
from perframe.media.picture import Picture
from perframe.media.sinks import ThreadedSink


class VirtualCameraSink(ThreadedSink):
    """A camera that shows each picture to other programs, such as those of video calls. All pictures have one size.

    `device` names one, by default the first that is free. A thread sends the pictures; where it is behind, the oldest
    are left out. Raises MissingExtraError without pyvirtualcam. Where the system has no such camera, the next `write`
    or `finish` raises InputError.
    """

    keeps_all = False

    def __init__(self, device: str = "", rate: float = 30.0) -> None:
        super().__init__(f"the virtual camera {device}".rstrip())
        if not 0 < rate <= 1000:
            raise InputError(f"a rate is a number of pictures a second, above 0 and up to 1000, not {rate!r}")
        try:
            import pyvirtualcam
        except ImportError as error:
            raise MissingExtraError("pyvirtualcam", "virtualcam", self.name) from error
        self._library: Any = pyvirtualcam
        self._device, self._rate = device or None, rate
        self._camera: Any = None

    def _store(self, picture: Picture) -> None:
        height, width = picture.pixels.shape[:2]
        if self._camera is None:
            try:
                self._camera = self._library.Camera(width, height, self._rate, device=self._device)
            except RuntimeError as error:
                raise InputError(
                    f"{self.name} cannot be opened: {error}; Linux needs the module v4l2loopback, Windows and macOS OBS"
                ) from error
        if (width, height) != (self._camera.width, self._camera.height):
            was = f"{self._camera.width}×{self._camera.height}"
            raise InputError(f"{self.name}: picture {picture.index} is {width}×{height}, and those before were {was}")
        try:
            self._camera.send(picture.pixels)
        except RuntimeError as error:
            raise InputError(f"{self.name} took no picture: {error}") from error

    def _close(self) -> None:
        if self._camera is not None:
            self._camera.close()

    def _undo(self) -> None:
        self._close()
