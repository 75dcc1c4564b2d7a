"""A sink that writes a film, and the function that opens sinks by name."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, overload

from perframe.errors import InputError
from perframe.media.feeds import RATE
from perframe.media.frames import Colors, tag, yuv_frame
from perframe.media.ndi import NdiSink
from perframe.media.picture import PICTURES, VIDEOS, Picture, Size, is_name, path_beside, put_in_place, remove_stale
from perframe.media.sinks import FileSink, FolderSink, PictureSink, Sink, WindowSink
from perframe.media.sound_devices import BLOCK, SpeakerSink, check_of_sound
from perframe.media.source import as_rate
from perframe.media.videos import require_av
from perframe.media.virtual_camera import VirtualCameraSink

_KINDS = (
    f"a picture ({', '.join(PICTURES)}), a video ({', '.join(VIDEOS)}), a folder, window, virtualcam, ndi:NAME, speaker"
)
_CODECS = {".webm": "libvpx-vp9", ".avi": "mpeg4"}  # H.264 elsewhere
_OPTIONS = {  # pictures leave in the order in which they come, so that videos can be joined
    "libx264": {"bf": "0", "x264-params": "force-cfr=1"},  # the file names the rate, not that of our ticks
    "libvpx-vp9": {"b": "0", "auto-alt-ref": "0", "lag-in-frames": "0", "row-mt": "1", "cpu-used": "5"},
    "mpeg4": {"qscale": "3", "flags": "+qscale", "global_quality": "354"},
}
_TICKS = 90_000  # a second, for pictures that bring their times
_MPEG4_TICKS = 1000  # its own limit is 65,535
_LARGEST_ASPECT = 255  # of numerators and denominators, in MPEG-4


class VideoSink(FileSink):
    """A video, all of one size: H.264, in .webm VP9, in .avi MPEG-4.

    It has `rate` pictures a second. Without, or with `keeps_times`, pictures keep their own times, such as those of a
    film with a variable rate, and arrays come at the rate, or else 25 a second. `quality` is the encoder's constant
    rate factor: lower is better and larger. Odd widths and heights are cropped by one pixel, because these formats
    halve the colors. `colors` are the film's color tags. Raises MissingExtraError without PyAV.
    """

    def __init__(
        self,
        path: str | Path,
        rate: float | Fraction | None = None,
        quality: int = 18,
        colors: Colors | None = None,
        keeps_times: bool = False,
    ) -> None:
        super().__init__(path)
        self._av = require_av("writing a video")
        if self.path.suffix.lower() not in VIDEOS:
            raise InputError(f"{self.name} is not the name of a video: {', '.join(VIDEOS)}")
        self._rate, self._quality = RATE if rate is None else as_rate(rate), quality
        self._keeps_times = keeps_times or rate is None
        self._colors = colors or Colors()
        self._beside = path_beside(self.path)
        self._container: Any = None
        self._stream: Any = None
        self._size = self._written_size = (0, 0)
        self._count = 0
        self._first = self._tick = Fraction(0)
        self._stamp_before = -1

    def _store(self, picture: Picture) -> None:
        height, width = picture.pixels.shape[:2]
        if self._container is None:
            self._open((width, height), picture)
        if (width, height) != self._size:
            was = "{}×{}".format(*self._size)
            raise InputError(
                f"{self.name}: picture {picture.index} is {width}×{height}, and those before were {was}: a film has "
                "one size; give all pictures the same, or write them to a folder"
            )
        even = picture.pixels[: height // 2 * 2, : width // 2 * 2]
        frame = yuv_frame(self._av, even, self._written_size, self._colors)
        frame.pts, frame.time_base = self._stamp(picture), self._tick
        self._count += 1
        self._container.mux(self._stream.encode(frame))

    def _stamp(self, picture: Picture) -> int:
        """The picture's time, in ticks. One that has no later time than the last comes a usual time after it."""
        if not self._keeps_times:
            return self._count
        stamp = round((Fraction(picture.time) - self._first) / self._tick)
        if stamp <= self._stamp_before:
            stamp = self._stamp_before + max(1, round(1 / (self._rate * self._tick)))
        self._stamp_before = stamp
        return stamp

    def _open(self, size: Size, first: Picture) -> None:
        if min(size) < 2:
            raise InputError(f"{self.name}: a video is at least 2 pixels wide and high, not {size[0]}×{size[1]}")
        remove_stale(self.path)
        self._container = self._av.open(f"file:{self._beside}", "w")
        codec = _CODECS.get(self.path.suffix.lower(), "libx264")
        self._stream = stream = self._container.add_stream(
            codec if codec in self._av.codecs_available else "mpeg4", rate=self._rate
        )
        name = stream.codec_context.name
        self._tick = Fraction(1, _MPEG4_TICKS if name == "mpeg4" else _TICKS)
        if not self._keeps_times:
            self._tick = 1 / self._rate
        stream.codec_context.time_base = self._tick
        self._first = Fraction(first.time)
        self._size, self._written_size = size, (size[0] // 2 * 2, size[1] // 2 * 2)
        aspect = first.aspect.limit_denominator(_LARGEST_ASPECT)
        if aspect != 1 and name == "libvpx-vp9":  # WebM would note it, but PyAV cannot tell it
            self._written_size, aspect = _with_square_pixels(self._written_size, aspect), Fraction(1)
        stream.width, stream.height, stream.pix_fmt = *self._written_size, "yuv420p"
        stream.codec_context.sample_aspect_ratio = aspect
        self._colors = self._colors.completed(self._written_size)
        tag(stream.codec_context, self._colors)
        stream.options = _OPTIONS[name] | {"crf": str(self._quality)}

    def _close(self) -> None:
        if self._container is not None:
            self._container.mux(self._stream.encode())
            self._container.close()
            put_in_place(self._beside, self.path)

    def _undo(self) -> None:
        if self._container is not None:
            with suppress(OSError, ValueError):
                self._container.close()
            self._beside.unlink(missing_ok=True)


def _with_square_pixels(size: Size, aspect: Fraction) -> Size:
    """An even size that shows the same with square pixels, and loses none."""
    width, height = size
    return (round(width * aspect / 2) * 2, height) if aspect > 1 else (width, round(height / aspect / 2) * 2)


@overload
def open_sink(  # type: ignore[overload-overlap]
    name: Literal["speaker"], rate: int | None = None, *, channels: int = 1, block: int = BLOCK
) -> SpeakerSink: ...


@overload
def open_sink(name: str | Path, rate: float | Fraction | None = None) -> Sink: ...


def open_sink(name: str | Path, rate: Any = None, *, channels: int = 1, block: int = BLOCK) -> Sink | SpeakerSink:
    """Open a place for pictures by name: a picture file (the last one stays), a video, "window", "virtualcam" (a camera
    that other programs see; "virtualcam:/dev/video2" names one), "ndi:NAME" (video over the network), or else a folder.

    `rate` is the pictures a second of a video. Without, pictures of a source keep their times, and arrays come 25 a
    second. Raises InputError, and MissingExtraError where a package is missing.

    "speaker" plays sound, and so does "speaker:1" or "speaker:NAME", by a part of its name: arrays have `rate` samples
    a second, 48,000 by default, on 1 or 2 `channels`. The device takes `block` samples at a time.
    """
    if not is_name(name):
        raise InputError(f"a sink is {_KINDS}, by its name or path, not {name!r}")
    kind, _, rest = str(name).partition(":")
    if kind == "speaker" and not Path(name).exists():
        return SpeakerSink(rest, 48_000 if rate is None else rate, channels, block)
    check_of_sound(channels, block, "speaker")
    if kind == "virtualcam" and not Path(name).exists():
        return VirtualCameraSink(rest, 30.0 if rate is None else float(as_rate(rate)))
    if kind == "ndi" and not Path(name).exists():
        return NdiSink(rest, Fraction(30) if rate is None else as_rate(rate))
    if kind in ("spout", "syphon") and not Path(name).exists():
        raise InputError(f"{kind} sends textures: pf.TextureConverter(ctx).open_sink({str(name)!r})")
    if str(name) == "window":
        return WindowSink()
    suffix = Path(name).suffix.lower()
    if suffix in PICTURES:
        return PictureSink(name)
    if suffix in VIDEOS:
        return VideoSink(name, rate)
    if suffix and not Path(name).is_dir():
        known = ", ".join((*PICTURES, *VIDEOS))
        raise InputError(f"{str(name)!r} is neither a folder nor of a known kind: {known}")
    return FolderSink(name)
