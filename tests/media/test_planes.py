"""Frames of video that go to the GPU as planes: their colors there, and when they are pixels instead."""

from __future__ import annotations

import sys
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

import perframe as pf
from media.films import grey
from media.test_film_formats import COLORS, MATRICES, bars, encode, turn
from media.yuv import random_frame, seen, shown
from perframe.graphics.yuv import YuvFrame
from perframe.media import Picture, open_source, planes, videos
from perframe.media.planes import FORMATS, FrameReader
from perframe.media.source import open_feed

SIZES = [(64, 48), (63, 47), (62, 33), (853, 9), (16, 16), (2, 2), (1, 1), (1, 7)]  # swscale repeats 2 or 3 samples


def on_gpu(picture: Picture, ctx: Any) -> Any:
    """The colors of a picture in a texture."""
    assert isinstance(picture.content, YuvFrame)
    texture = ctx.texture(picture.size, 4)
    with pf.TextureConverter(ctx) as converter:
        converter.upload(picture, texture)
    return seen(texture)


def smooth(size: tuple[int, int], index: int = 0) -> Any:
    """A picture of soft colors, H x W x 3."""
    y, x = np.mgrid[: size[1], : size[0]]
    waves = [127 + 100 * np.sin(x / 6 + y / 9 + 2 * channel + index) for channel in range(3)]
    return np.stack(waves, -1).astype(np.uint8)


@pytest.mark.parametrize("form", FORMATS)
def test_the_gpu_shows_what_swscale_shows(form: str, gl_context: Any) -> None:
    generator, reader = np.random.default_rng(len(form)), FrameReader()
    with pf.TextureConverter(gl_context) as converter:
        for size in SIZES:
            texture = gl_context.texture(size, 4)
            for matrix in (1, 4, 5, 6, 7, 9):
                for is_full in (False, True) if "j" not in form else (True,):
                    for kind in ("random", "smooth"):
                        frame = random_frame(form, size, matrix, is_full, generator, kind)
                        converter.upload(Picture(reader.read(frame), 0, 0.0), texture)
                        error = np.abs(seen(texture) - shown(frame, matrix)).max()
                        assert error <= 1, f"{form} {size} matrix {matrix} full {is_full} {kind}: {error}"


@pytest.mark.parametrize(
    ("name", "codec", "form", "siting"),
    [
        ("a.mp4", "libx264", "yuv420p", (0.25, 0)),
        ("a.mkv", "libx264", "yuv420p10le", (0.25, 0)),
        ("a.mov", "libx264", "yuv422p", (0.25, 0)),
        ("b.mkv", "libx264", "yuv444p", (0, 0)),
        ("a.avi", "mjpeg", "yuvj420p", (0, 0)),
        ("b.avi", "rawvideo", "yuyv422", (0, 0)),
    ],
)
@pytest.mark.parametrize("size", [(64, 48), (16, 16)])
def test_chroma_lies_where_the_decoder_says(
    name: str, codec: str, form: str, siting: Any, size: Any, tmp_path: Path, gl_context: Any
) -> None:
    path = encode(tmp_path / name, [smooth(size)], codec, form, options={})
    with av.open(str(path)) as container:
        frame: Any = next(container.decode(video=0))
    content = FrameReader().read(frame)
    assert isinstance(content, YuvFrame) and content.siting == siting
    error = np.abs(on_gpu(Picture(content, 0, 0.0), gl_context) - shown(frame, content.matrix))
    assert error.max() <= 1


@pytest.mark.parametrize(
    ("location", "siting"), [(1, (0, 0)), (2, (0.25, 0.25)), (3, (0, 0.25)), (4, (0.25, -0.25)), (5, (0, -0.25))]
)
def test_all_sitings(location: int, siting: Any, tmp_path: Path, gl_context: Any) -> None:
    """Films of ultra high definition have their chroma at the top left."""
    options = {"x264-params": f"chromaloc={location}"}
    path = encode(tmp_path / "a.mp4", [smooth((64, 48))], "libx264", "yuv420p", options=options)
    with av.open(str(path)) as container:
        frame: Any = next(container.decode(video=0))
    content = FrameReader().read(frame)
    assert isinstance(content, YuvFrame) and content.siting == siting
    error = np.abs(on_gpu(Picture(content, 0, 0.0), gl_context) - shown(frame, content.matrix))
    assert error.max() <= 1


@pytest.mark.parametrize("how", MATRICES)
def test_a_turned_film_is_upright_on_the_gpu(how: str, tmp_path: Path, gl_context: Any) -> None:
    path = encode(tmp_path / "a.mp4", [smooth((80, 48))], "libx264", "yuv420p", sample_aspect_ratio=Fraction(4, 3))
    (picture,) = open_feed(turn(path, MATRICES[how][0])).pictures()
    assert isinstance(picture.content, YuvFrame)
    with av.open(str(path)) as container:
        wanted = MATRICES[how][1](shown(next(container.decode(video=0)), 5))
    assert np.abs(on_gpu(picture, gl_context) - wanted).max() <= 1
    assert picture.pixels.shape == (picture.size[1], picture.size[0], 3) == wanted.shape
    assert picture.aspect == (Fraction(4, 3) if picture.size == (80, 48) else Fraction(3, 4))


def test_a_film_without_a_matrix_is_read_by_its_size(tmp_path: Path, gl_context: Any) -> None:
    for size in ((192, 64), (1296, 720)):
        matrix = 1 if size[1] >= 720 else 5
        frame = av.VideoFrame.from_ndarray(bars(size), "rgb24")
        frame = frame.reformat(format="yuv444p", dst_colorspace=matrix, dst_color_range=1)
        frame.colorspace, frame.color_range = 2, 0
        colors = on_gpu(Picture(FrameReader().read(frame), 0, 0.0), gl_context)
        assert np.abs(colors[5, size[0] // 12 :: size[0] // 6] - COLORS).max() <= 2


def test_the_pixels_are_those_of_swscale_and_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = [smooth((64, 48), index) for index in range(8)]
    path = encode(tmp_path / "a.mp4", pictures, "libx264", "yuv420p")
    made: list[Any] = []
    convert = planes.rgb_of
    monkeypatch.setattr(planes, "rgb_of", lambda *given: (made.append(given), convert(*given))[1])
    feed = open_feed(path).pictures()
    found = [next(feed) for _ in range(3)]
    assert not made
    assert found[1].pixels is found[1].pixels and len(made) == 1
    next(feed)
    assert len(made) == 2, "where one was asked for, the reader converts the following ones"
    monkeypatch.undo()
    with av.open(str(path)) as container:
        wanted = [shown(frame, 5, "AREA") for frame in container.decode(video=0)]
    for picture, expected in zip(open_feed(path).pictures(), wanted, strict=True):
        assert np.array_equal(picture.pixels, expected)


def test_a_sink_converts_in_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = encode(tmp_path / "a.mp4", [smooth((64, 48))] * 3, "libx264", "yuv420p")
    threads: list[str] = []
    convert = planes.rgb_of
    monkeypatch.setattr(
        planes, "rgb_of", lambda *given: (threads.append(threading.current_thread().name), convert(*given))[1]
    )
    with open_source(path) as source, pf.media.open_sink(tmp_path / "made") as sink:
        for picture in source:
            sink.write(picture)
    assert threads and all(name.startswith("perframe-media") for name in threads)
    with av.open(str(path)) as container:
        wanted = shown(next(container.decode(video=0)), 5, "AREA")
    assert np.array_equal(np.asarray(Image.open(tmp_path / "made" / "000000.png")), wanted)


@pytest.mark.parametrize("kind", ["scaled", "one size", "transparent", "interlaced", "rgb", "unknown matrix"])
def test_other_frames_are_pixels(kind: str, tmp_path: Path) -> None:
    codec, form, given = "libx264", "yuv420p", {}
    if kind in ("transparent", "rgb"):
        codec, form = "png", "rgba" if kind == "transparent" else "rgb24"
    elif kind == "interlaced":
        given["options"] = {"x264-params": "interlaced=1"}
    path = tmp_path / ("a.mov" if codec == "png" else "a.mp4")
    if kind == "unknown matrix":
        frame = random_frame(form, (64, 48), 0, False, np.random.default_rng(0), "smooth")
        content = FrameReader().read(frame)
    else:
        picture = smooth((64, 48))
        if kind == "transparent":
            picture = np.concatenate([picture, np.full((48, 64, 1), 99, np.uint8)], -1)
        encode(path, [picture], codec, form, **{"options": {}, **given})
        feed = open_feed(path, (20, 10) if kind == "scaled" else None, one_size=kind == "one size")
        content = next(iter(feed.pictures())).content
    assert isinstance(content, np.ndarray) and content.dtype == np.uint8
    assert content.shape == ((15, 20, 3) if kind == "scaled" else (48, 64, 3))


def test_rows_may_run_upward(gl_context: Any) -> None:
    graph = av.filter.Graph()
    frame = random_frame("yuv420p", (64, 48), 5, False, np.random.default_rng(1), "smooth")
    frame.pts, frame.time_base = 0, Fraction(1, 25)
    source = graph.add_buffer(width=64, height=48, format=frame.format, time_base=frame.time_base)
    flip, sink = graph.add("vflip"), graph.add("buffersink")
    source.link_to(flip)
    flip.link_to(sink)
    graph.configure()
    graph.push(frame)
    flipped: Any = graph.pull()
    flipped.colorspace, flipped.color_range = 5, 1
    assert flipped.planes[0].line_size < 0
    colors = on_gpu(Picture(FrameReader().read(flipped), 0, 0.0), gl_context)
    assert np.abs(colors - shown(frame, 5)[::-1]).max() <= 1


def test_a_camera_gives_its_frames_as_they_are(monkeypatch: pytest.MonkeyPatch, gl_context: Any) -> None:
    if "lavfi" not in av.formats_available:
        pytest.skip("this PyAV has no lavfi to play a camera")
    for form in ("yuyv422", "nv12", "yuv420p"):
        camera = ("lavfi", f"testsrc2=size=62x48:rate=30:duration=1,format={form},setsar=4/3")
        monkeypatch.setitem(videos._CAMERAS, sys.platform, camera)
        picture = next(iter(open_feed("camera").pictures()))
        assert isinstance(picture.content, YuvFrame) and picture.content.form is FORMATS[form]
        assert picture.aspect == Fraction(4, 3)
        colors = on_gpu(picture, gl_context)
        assert np.abs(colors.mean((0, 1)) - picture.pixels.mean((0, 1))).max() < 2


def test_joined_films_change_size_and_format(tmp_path: Path, gl_context: Any) -> None:
    forms = {48: "yuv420p", 96: "yuv422p"}
    parts = [
        encode(tmp_path / f"{size}.ts", [smooth((64, size))] * 3, "libx264", form, times=[0, 40, 80])
        for size, form in forms.items()
    ]
    joined = tmp_path / "a.ts"
    joined.write_bytes(b"".join(part.read_bytes() for part in parts))
    found = list(open_feed(joined).pictures())
    assert [picture.size[1] for picture in found] == [48] * 3 + [96] * 3
    for picture in found:
        assert np.abs(on_gpu(picture, gl_context) - smooth(picture.size)).mean() < 8


TRANSPOSES: dict[int, Any] = {  # EXIF orientations, and how the stored picture becomes upright
    1: lambda pixels: pixels,
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: np.rot90(pixels, 2),
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.transpose(1, 0, 2),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: np.rot90(pixels, 2).transpose(1, 0, 2),
    8: lambda pixels: np.rot90(pixels),
}


@pytest.mark.parametrize("orientation", TRANSPOSES)
@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
def test_pictures_are_upright_by_their_exif(name: str, orientation: int, tmp_path: Path) -> None:
    image = Image.fromarray(smooth((24, 16)))
    exif = image.getexif()
    exif[0x0112] = orientation
    image.save(tmp_path / name, exif=exif, quality=100)
    stored = np.asarray(Image.open(tmp_path / name).convert("RGB"))
    with open_source(tmp_path / name) as source:
        picture = next(iter(source))
    assert (
        np.array_equal(picture.pixels, TRANSPOSES[orientation](stored)) and picture.size == picture.pixels.shape[1::-1]
    )


def test_grey_stays_grey(gl_context: Any) -> None:
    frame = av.VideoFrame.from_ndarray(grey(7), "rgb24").reformat(format="yuv420p", dst_color_range=1)
    colors = on_gpu(Picture(FrameReader().read(frame), 0, 0.0), gl_context)
    assert np.ptp(colors, axis=2).max() == 0
