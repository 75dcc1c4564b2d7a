"""What a film's file says beside its pictures: times, colours, aspects, orientations, transparency, and its length."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

import perframe as pf
from media.films import film, grey, index_of
from perframe.media import open_sink, open_source
from perframe.media.source import open_feed
from perframe.media.videos import missing_bytes

COLORS = np.array([(200, 30, 30), (30, 200, 30), (30, 30, 200), (200, 200, 30), (20, 20, 20), (220, 120, 60)], np.uint8)


def bars(size: tuple[int, int]) -> Any:
    """Upright bars of these colours."""
    return np.repeat(COLORS[None], size[1], 0).repeat(size[0] // len(COLORS), 1)


def in_the_middle(pixels: Any) -> Any:
    """The colours of the bars."""
    width = pixels.shape[1] // len(COLORS)
    return pixels[pixels.shape[0] // 2, width // 2 :: width].astype(int)


def encode(path: Path, pictures: list[Any], codec: str, form: str, **given: Any) -> Path:
    """A film, written with the encoder's and the frames' properties that are given, and `times` in milliseconds."""
    times = given.pop("times", [40 * index for index in range(len(pictures))])
    options = given.pop("options", {"crf": "1", "bf": "0"} if codec == "libx264" else {"auto-alt-ref": "0"})
    matrix, span = given.get("colorspace", 5), given.get("color_range", 1)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=25, options=options)
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt, stream.codec_context.time_base = form, Fraction(1, 1000)
        for name, value in given.items():
            setattr(stream.codec_context, name, value)
        for time, picture in zip(times, pictures, strict=True):
            frame: Any = av.VideoFrame.from_ndarray(picture, "rgb24" if picture.shape[2] == 3 else "rgba")
            frame = frame.reformat(format=form, dst_colorspace=matrix, dst_color_range=span)
            for name in ("colorspace", "color_range"):
                setattr(frame, name, given.get(name, 2 if name == "colorspace" else 0))
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def first_of(path: Path, **given: Any) -> Any:
    """The first picture of a source."""
    with open_source(path, **given) as source:
        return next(iter(source))


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.mov", "a.webm", "a.avi"])
def test_a_film_is_tagged_with_the_matrix_that_it_has(name: str, tmp_path: Path) -> None:
    for size in ((192, 64), (1296, 720)):
        with open_sink(tmp_path / name) as sink:
            sink.write(bars(size))
        with av.open(str(tmp_path / name)) as container:
            frame: Any = next(container.decode(video=0))
        expected = 1 if size[1] >= 720 else 6
        assert frame.colorspace == (2 if name == "a.avi" else expected), (
            "players guess from the size where none is said"
        )
        shown = frame.reformat(format="rgb24", src_colorspace=1 if expected == 1 else 5).to_ndarray()
        assert np.abs(in_the_middle(shown) - COLORS).max() < 10
        assert np.abs(in_the_middle(first_of(tmp_path / name).pixels) - COLORS).max() < 10


@pytest.mark.parametrize("size", [(192, 64), (1296, 720)])
@pytest.mark.parametrize("tagged", [1, 5, 6, None])
def test_colors_are_read_by_their_matrix(size: tuple[int, int], tagged: int | None, tmp_path: Path) -> None:
    matrix = tagged or (1 if size[1] >= 720 else 5)
    encode(tmp_path / "a.mp4", [bars(size)], "libx264", "yuv444p", colorspace={6: 5}.get(matrix, matrix))
    if tagged is None:  # the same, and nothing is said
        with av.open(str(tmp_path / "a.mp4"), "w") as container:
            stream: Any = container.add_stream("libx264", rate=25, options={"crf": "1"})
            stream.width, stream.height, stream.pix_fmt = *size, "yuv444p"
            frame: Any = av.VideoFrame.from_ndarray(bars(size), "rgb24")
            frame = frame.reformat(format="yuv444p", dst_colorspace=matrix, dst_color_range=1)
            frame.colorspace, frame.color_range = 2, 0
            container.mux(stream.encode(frame))
            container.mux(stream.encode())
    assert np.abs(in_the_middle(first_of(tmp_path / "a.mp4").pixels) - COLORS).max() < 6


MATRICES: dict[str, Any] = {  # rows of the display matrix, and how the stored picture becomes upright
    "as it is": ((1, 0, 0, 1), lambda pixels: pixels),
    "to the right": ((0, 1, -1, 0), lambda pixels: np.rot90(pixels, -1)),
    "upside down": ((-1, 0, 0, -1), lambda pixels: np.rot90(pixels, 2)),
    "to the left": ((0, -1, 1, 0), lambda pixels: np.rot90(pixels, 1)),
    "mirrored": ((-1, 0, 0, 1), lambda pixels: pixels[:, ::-1]),
    "mirrored down": ((1, 0, 0, -1), lambda pixels: pixels[::-1]),
    "mirrored to the left": ((0, 1, 1, 0), lambda pixels: pixels.transpose(1, 0, 2)),
    "mirrored to the right": ((0, -1, -1, 0), lambda pixels: np.rot90(pixels, 2).transpose(1, 0, 2)),
}


def turn(path: Path, matrix: tuple[int, int, int, int]) -> Path:
    """Give an MP4 file a display matrix."""
    a, b, c, d = matrix
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 44
    data[at : at + 36] = struct.pack(">9i", a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("how", MATRICES)
def test_films_are_upright_and_not_mirrored(how: str, tmp_path: Path) -> None:
    matrix, upright = MATRICES[how]
    stored = np.zeros((48, 80, 3), np.uint8)
    stored[:24, :40], stored[:24, 40:], stored[24:, :40], stored[24:, 40:] = 250, 170, 90, 10
    path = encode(tmp_path / "a.mp4", [stored], "libx264", "yuv420p", sample_aspect_ratio=Fraction(4, 3))
    turn(path, matrix)
    picture, wanted = first_of(path), upright(stored)
    assert picture.pixels.shape == wanted.shape
    assert np.abs(picture.pixels[8::24, 8::24].astype(int) - wanted[8::24, 8::24]).max() < 12
    assert picture.aspect == (Fraction(4, 3) if wanted.shape == stored.shape else Fraction(3, 4))
    width, height = first_of(path, enough=(30, 20)).pixels.shape[1::-1]
    assert width >= 30 and height >= 20 and (width == 30 or height == 20)


@pytest.mark.parametrize(
    ("codec", "form", "name"),
    [("png", "rgba", "a.mov"), ("libvpx", "yuva420p", "a.webm"), ("libvpx-vp9", "yuva420p", "a.webm")],
)
def test_a_transparent_film_lies_on_white(codec: str, form: str, name: str, tmp_path: Path) -> None:
    if codec not in av.codecs_available:
        pytest.skip(f"this PyAV has no {codec}")
    clear = np.zeros((48, 64, 4), np.uint8)
    clear[:, :32], clear[:, 32:] = (255, 0, 0, 255), (0, 0, 255, 0)
    options = {} if codec == "png" else {"auto-alt-ref": "0"}
    pixels = first_of(encode(tmp_path / name, [clear] * 3, codec, form, options=options)).pixels
    assert pixels[10, 50].tolist() == [255, 255, 255] and pixels[10, 10, 0] > 240 > 20 > pixels[10, 10, 1]


MPEG2: dict[str, dict[str, Any]] = {"mpeg2video": {"time_base": Fraction(1, 25)}}  # it knows no milliseconds
TIMES = [0, 200, 400, 600, 640, 680, 720, 2000, 2040]


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.webm"])
def test_a_copy_keeps_the_times_and_the_aspect(name: str, tmp_path: Path) -> None:
    pictures = [grey(index) for index in range(len(TIMES))]
    source = encode(
        tmp_path / "source.mp4", pictures, "libx264", "yuv420p", times=TIMES, sample_aspect_ratio=Fraction(4, 3)
    )
    with open_source(source) as film, open_sink(tmp_path / name) as sink:
        for picture in film:
            sink.write(picture)
    with open_source(tmp_path / name) as film:
        copied = list(film)
    assert np.allclose([picture.time for picture in copied], np.array(TIMES) / 1000, atol=0.001)
    assert [index_of(picture.pixels) for picture in copied] == list(range(len(TIMES)))
    width, height = copied[0].pixels.shape[1::-1]
    assert float(copied[0].aspect) * width / height == pytest.approx(64 / 36 * 4 / 3, rel=0.02)


def test_a_rate_that_is_given_counts_more_than_the_times(tmp_path: Path) -> None:
    path = encode(tmp_path / "source.mp4", [grey(i) for i in range(len(TIMES))], "libx264", "yuv420p", times=TIMES)
    with open_source(path) as source, open_sink(tmp_path / "a.mp4", rate=10) as sink:
        for picture in source:
            sink.write(picture)
    with open_source(tmp_path / "a.mp4") as source:
        assert [round(picture.time, 3) for picture in source] == [index / 10 for index in range(len(TIMES))]


def test_a_recorders_clock_is_no_rate(tmp_path: Path) -> None:
    times = [round(index * 1000 / 30) + (3 if index % 3 else 0) for index in range(60)]
    path = encode(tmp_path / "a.webm", [grey(0)] * 60, "libvpx", "yuv420p", times=times, framerate=Fraction(1000))
    with open_source(path) as source:
        assert 25 < source.rate < 35
    feed = open_feed(path)
    assert not feed.is_steady and float(feed.time_of(59)) == pytest.approx(times[59] / 1000, abs=0.002)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.webm", "a.avi", "a.mov"])
def test_a_film_that_lacks_its_end_is_told_wherever_it_was_cut(name: str, tmp_path: Path) -> None:
    path = film(tmp_path / name, 40)
    whole = path.read_bytes()
    assert missing_bytes(path) == 0
    for lost in (1, len(whole) // 50, len(whole) // 3):
        path.write_bytes(whole[:-lost])
        assert missing_bytes(path) > 0
        with pytest.raises(pf.InputError, match=rf"{name}' (is truncated or damaged|is neither a picture)"):
            list(open_feed(path).pictures())


def test_a_picture_whose_parts_are_missing_is_told(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    pictures = [
        np.kron(generator.integers(0, 255, (6, 8, 3), np.uint8), np.ones((8, 8, 1), np.uint8)) for _ in range(40)
    ]
    path = encode(tmp_path / "a.mp4", pictures, "libx264", "yuv420p")
    data = bytearray(path.read_bytes())
    begin = data.index(b"mdat") + 6000
    data[begin : begin + 3000 : 37] = bytes(byte ^ 0x55 for byte in data[begin : begin + 3000 : 37])
    path.write_bytes(bytes(data))
    with pytest.raises(pf.InputError, match=r"a\.mp4' is (cut or )?damaged"):
        list(open_feed(path).pictures())


@pytest.mark.parametrize("name", ["a.gif", "a.png", "a.webp"])
def test_an_animation_is_a_film(name: str, tmp_path: Path) -> None:
    pictures = [Image.fromarray(grey(index)) for index in range(6)]
    durations = [100, 100, 100, 300, 300, 300]
    pictures[0].save(tmp_path / name, save_all=True, append_images=pictures[1:], duration=durations, lossless=True)
    with open_source(tmp_path / name) as source:
        assert not source.is_still and source.feed.count == 6
        found = list(source)
    assert [index_of(picture.pixels) for picture in found] == list(range(6))
    assert np.allclose([picture.time for picture in found], [0, 0.1, 0.2, 0.3, 0.6, 0.9])


def test_a_picture_of_a_telephone_with_a_second_one_in_it_stays_a_picture(tmp_path: Path) -> None:
    first, second = Image.fromarray(grey(1)), Image.fromarray(grey(2))
    first.save(tmp_path / "a.jpg", format="MPO", save_all=True, append_images=[second])
    with open_source(tmp_path / "a.jpg") as source:
        assert source.is_still


def test_sixteen_bits_of_grey_become_eight(tmp_path: Path) -> None:
    values = np.tile(np.arange(256, dtype=np.uint8), (4, 1))
    Image.fromarray(values.astype(np.uint16) * 257).save(tmp_path / "a.png")
    assert np.array_equal(first_of(tmp_path / "a.png").pixels, values[..., None].repeat(3, 2))


def test_only_the_formats_that_are_named_are_read(tmp_path: Path) -> None:
    Image.fromarray(grey(1)).save(tmp_path / "a.png", format="TIFF")
    with pytest.raises(pf.InputError, match=r"a\.png' is not a picture, despite its name"):
        open_source(tmp_path / "a.png")


def test_a_colon_in_a_name_is_no_protocol(tmp_path: Path) -> None:
    with open_source(film(tmp_path / "a:b.mp4", 3)) as source:
        assert len(list(source)) == 3


def test_recordings_that_were_joined_play_to_their_end_in_one_size(tmp_path: Path) -> None:
    parts = [
        encode(
            tmp_path / f"{size}.ts",
            [np.full((size, 64, 3), 90, np.uint8)] * 5,
            "libx264",
            "yuv420p",
            times=[400 * (size > 48) + 40 * index for index in range(5)],
        )
        for size in (48, 96)
    ]
    joined = tmp_path / "a.ts"
    joined.write_bytes(b"".join(part.read_bytes() for part in parts))
    assert [each.pixels.shape[0] for each in open_feed(joined).pictures()] == [48] * 5 + [96] * 5
    assert {each.pixels.shape[0] for each in open_feed(joined, one_size=True).pictures()} == {48}


@pytest.mark.parametrize(("name", "codec"), [("a.ts", "libx264"), ("a.mpg", "mpeg2video"), ("a.mkv", "libx264")])
def test_a_part_is_the_same_wherever_it_begins(name: str, codec: str, tmp_path: Path) -> None:
    """Pictures depend on others, groups are open, and some containers' indices lead astray."""
    options = {"g": "12", "bf": "2"} | ({"x264-params": "open-gop=1:scenecut=0"} if codec == "libx264" else {})
    blocks = np.random.default_rng(0).integers(0, 255, (60, 6, 8, 3), np.uint8)
    pictures = [each.repeat(8, 0).repeat(8, 1) for each in blocks]
    path = encode(tmp_path / name, pictures, codec, "yuv420p", options=options, **MPEG2.get(codec, {}))
    whole = {each.index: each.pixels for each in open_feed(path).pictures()}
    assert sorted(whole) == list(range(60))
    for first in range(1, 60, 7):
        part = list(open_feed(path).pictures(first))
        assert [each.index for each in part] == list(range(first, 60))
        assert all(np.array_equal(each.pixels, whole[each.index]) for each in part)
