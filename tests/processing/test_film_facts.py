"""What a film's file says beside its pictures is in the result, however the work was cut; and no source is lost."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import perframe as pf
from media.films import film, film_with_sound, grey, index_of
from media.test_film_formats import COLORS, bars, encode, in_the_middle
from perframe.media import open_source
from processing.scripts import save_inverter

TIMES = [0, 200, 400, 600, 640, 680, 720, 2000, 2040, 2080, 2500]


@pytest.fixture
def inverter(tmp_path: Path) -> Path:
    return save_inverter(tmp_path / "inverter.onnx")


@pytest.fixture
def identity(tmp_path: Path) -> Path:
    graph = pf.FunctionalGraph()
    x = graph.add_input(pf.DataType.FLOAT32, (1, 3, "h", "w"))
    pf.save(graph.compile(x * 1.0), tmp_path / "identity.onnx")
    return tmp_path / "identity.onnx"


def tones(path: Path, start: float, tracks: int = 1, codec: str = "aac") -> Path:
    """A film of two seconds with tracks of sound that begin at `start` seconds, by the pictures' clock."""
    with av.open(str(path), "w") as container:
        shown: Any = container.add_stream("libx264", rate=25, options={"bf": "0"})
        shown.width, shown.height, shown.pix_fmt = 64, 36, "yuv420p"
        heard: Any = [container.add_stream(codec, rate=48000, layout="mono") for _ in range(tracks)]
        begin = max(0.0, -start)
        for index in range(50):
            frame: Any = av.VideoFrame.from_ndarray(grey(index), format="rgb24")
            frame.pts, frame.time_base = round((begin + index / 25) * 1000), Fraction(1, 1000)
            container.mux(shown.encode(frame))
        container.mux(shown.encode())
        for stream in heard:
            for at in range(0, 90 * 1024, 1024):
                wave = np.sin(np.arange(at, at + 1024) * 0.3).astype(np.float32)[None]
                sound: Any = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
                sound.sample_rate, sound.pts = 48000, at + round((begin + start) * 48000)
                container.mux(stream.encode(sound))
            container.mux(stream.encode())
    return path


def spans(path: Path) -> list[tuple[float, float]]:
    """Where each stream begins and ends, in seconds: first that of the pictures."""
    found: dict[int, list[float]] = {}
    with av.open(str(path)) as container:
        for packet in container.demux():
            if packet.pts is not None and packet.time_base is not None:
                begin, length = packet.pts * packet.time_base, (packet.duration or 0) * packet.time_base
                found.setdefault(packet.stream_index, []).extend((float(begin), float(begin + length)))
    return [(min(times), max(times)) for _, times in sorted(found.items())]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out.mp4", "out.mkv", "out.webm"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_variable_rate_stays_what_it_is(name: str, jobs: int, inverter: Path, tmp_path: Path) -> None:
    source = encode(tmp_path / "in.mkv", [grey(index) for index in range(11)], "libx264", "yuv420p", times=TIMES)
    pf.process(source, tmp_path / name, inverter, chunk=4, jobs=jobs)
    with open_source(tmp_path / name) as made:
        found = list(made)
    assert [index_of(255 - picture.pixels) for picture in found] == list(range(11))
    assert np.allclose([picture.time for picture in found], np.array(TIMES) / 1000, atol=0.002)


def test_a_steady_rate_stays_steady_and_another_one_may_be_asked_for(inverter: Path, tmp_path: Path) -> None:
    for rate, wanted in ((None, 25), (10, 10)):
        pf.process(film(tmp_path / "in.mp4", 12), tmp_path / f"{wanted}.mp4", inverter, chunk=5, rate=rate)
        with open_source(tmp_path / f"{wanted}.mp4") as made:
            assert made.rate == wanted
            assert np.allclose([picture.time for picture in made], np.arange(12) / wanted, atol=0.001)


@pytest.mark.parametrize("start", [-1.0, -0.08, 0.0, 0.6])
@pytest.mark.parametrize("name", ["out.mp4", "out.mkv", "out.webm"])
def test_sound_stays_in_step_with_the_pictures(name: str, start: float, identity: Path, tmp_path: Path) -> None:
    source = tones(tmp_path / "in.mkv", start)
    pf.process(source, tmp_path / name, identity)
    (before, heard_before), (after, heard_after) = spans(source), spans(tmp_path / name)
    assert heard_after[0] - after[0] == pytest.approx(heard_before[0] - before[0], abs=0.03)
    assert heard_after[1] - after[0] == pytest.approx(heard_before[1] - before[0], abs=0.05)


@pytest.mark.parametrize("start", [-1.0, 0.0, 0.6])
def test_avi_has_no_times_so_its_sound_begins_with_the_pictures(start: float, identity: Path, tmp_path: Path) -> None:
    source = tones(tmp_path / "in.mkv", start)
    pf.process(source, tmp_path / "out.avi", identity)
    with av.open(str(tmp_path / "out.avi")) as container:
        rate = container.streams.audio[0].rate
        mono = av.AudioResampler("fltp", "mono", rate)
        parts = [part for frame in container.decode(audio=0) for part in mono.resample(frame)]
    wave = np.concatenate([part.to_ndarray()[0] for part in parts])
    loud = np.flatnonzero(np.abs(wave) > np.abs(wave).max() / 2)
    assert loud[0] / rate == pytest.approx(max(0.0, start), abs=0.06)


@pytest.mark.parametrize(("codec", "name"), [("pcm_s16le", "out.mp4"), ("pcm_s16le", "out.mov"), ("flac", "out.webm")])
def test_sound_that_a_container_refuses_is_encoded_anew(codec: str, name: str, identity: Path, tmp_path: Path) -> None:
    pf.process(tones(tmp_path / "in.mkv", 0, codec=codec), tmp_path / name, identity)
    shown, heard = spans(tmp_path / name)
    assert heard[0] - shown[0] == pytest.approx(0, abs=0.03) and heard[1] == pytest.approx(90 * 1024 / 48000, abs=0.06)


def test_all_tracks_come_along_and_end_with_the_pictures(identity: Path, tmp_path: Path) -> None:
    pf.process(tones(tmp_path / "in.mkv", 0, tracks=2), tmp_path / "out.mkv", identity, count=20)
    shown, *heard = spans(tmp_path / "out.mkv")
    assert len(heard) == 2 and shown[1] == pytest.approx(0.8, abs=0.05)
    assert all(end == pytest.approx(0.8, abs=0.05) for _, end in heard)


@pytest.mark.parametrize(("dims", "size"), [(None, (72, 48)), ((32, 32), (32, 32))])
def test_pixels_that_are_not_square_keep_their_form(dims: Any, size: Any, tmp_path: Path) -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input(pf.DataType.FLOAT32, (1, 3, *(dims or ("h", "w"))))
    pf.save(graph.compile(x * 1.0), tmp_path / "m.onnx")
    aspect = Fraction(32, 27)
    source = encode(tmp_path / "in.mp4", [bars((72, 48))] * 3, "libx264", "yuv420p", sample_aspect_ratio=aspect)
    pf.process(source, tmp_path / "out.mp4", tmp_path / "m.onnx")
    with open_source(tmp_path / "out.mp4") as made:
        picture = next(iter(made))
    height, width = picture.pixels.shape[:2]
    assert (width, height) == size and width * picture.aspect / height == pytest.approx(16 / 9, rel=0.01)


@pytest.mark.parametrize("tags", [(1, 1, 1), (6, 6, 6), (9, 9, 16)])
def test_colour_tags_of_the_source_are_those_of_the_result(tags: Any, identity: Path, tmp_path: Path) -> None:
    matrix, primaries, transfer = tags
    colors = {"color_primaries": primaries, "color_trc": transfer, "color_range": 1}
    given = {6: 5}.get(matrix, matrix)  # the same matrix, as swscale counts it
    source = encode(tmp_path / "in.mp4", [bars((192, 64))] * 3, "libx264", "yuv420p", colorspace=given, **colors)
    pf.process(source, tmp_path / "out.mp4", identity, chunk=2)
    with av.open(str(tmp_path / "out.mp4")) as container:
        frame: Any = next(container.decode(video=0))
    assert frame.colorspace == given and {name: getattr(frame, name) for name in colors} == colors
    with open_source(tmp_path / "out.mp4") as made:
        assert np.abs(in_the_middle(next(iter(made)).pixels) - COLORS).max() < 10


def test_a_film_whose_size_changes_becomes_one_of_its_first_size(identity: Path, tmp_path: Path) -> None:
    parts = [
        encode(tmp_path / f"{size}.h264", [np.full((size, 64, 3), 90, np.uint8)] * 5, "libx264", "yuv420p")
        for size in (48, 96)
    ]
    (tmp_path / "in.h264").write_bytes(b"".join(part.read_bytes() for part in parts))
    done = pf.process(tmp_path / "in.h264", tmp_path / "out.mp4", identity, chunk=3)
    with open_source(tmp_path / "out.mp4") as made:
        assert [picture.pixels.shape for picture in made] == [(48, 64, 3)] * 10 and done.pictures == 10


@pytest.mark.parametrize("how", ["the same", "a detour", "a link", "a hard link", "a relative name", "a linked folder"])
def test_a_result_is_never_written_over_its_source(how: str, identity: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    source = film(tmp_path / "sub" / "film.mp4", 5)
    before = source.read_bytes()
    out = {
        "the same": source,
        "a detour": tmp_path / "sub" / ".." / "sub" / "film.mp4",
        "a relative name": Path(os.path.relpath(source)),
    }.get(how, tmp_path / "other.mp4")
    if how == "a link":
        out.symlink_to(source)
    if how == "a hard link":
        os.link(source, out)
    if how == "a linked folder":
        (tmp_path / "linked").symlink_to(tmp_path / "sub")
        out = tmp_path / "linked" / "film.mp4"
    with pytest.raises(pf.InputError, match="is the source itself, or lies in it: write elsewhere"):
        pf.process(source, out, identity, overwrite=True)
    assert source.read_bytes() == before and not (tmp_path / "sub" / "film.mp4.work").exists()


@pytest.mark.parametrize("how", ["its folder", "links to its pictures", "the work folder", "a link to it"])
def test_a_folder_of_results_is_apart_from_the_source(how: str, identity: Path, tmp_path: Path) -> None:
    folder = film(tmp_path / "photos", 3)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    source, out = folder, folder
    if how == "its folder":
        source = folder / "000000.png"
    if how == "links to its pictures":
        source = tmp_path / "links"
        source.mkdir()
        for path in folder.iterdir():
            (source / path.name).symlink_to(path)
    if how == "the work folder":
        source = folder = folder.rename(tmp_path / "out.work")
        out = tmp_path / "out"
    if how == "a link to it":
        out = tmp_path / "link"
        out.symlink_to(folder)
    with pytest.raises(pf.InputError, match="write elsewhere"):
        pf.process(source, out, identity, overwrite=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.slow
@pytest.mark.parametrize("place", ["", "def start(self): ", "def update(self, frame): ", "async def start(self): "])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_script_that_exits_has_made_no_result(place: str, jobs: int, tmp_path: Path) -> None:
    exits = f"class S(pf.Script):\n    {place}sys.exit(0)\n" if place else "sys.exit(0)\n"
    (tmp_path / "s.py").write_text(f"import sys\nimport perframe as pf\n\n{exits}")
    with pytest.raises(pf.InputError, match=r"s\.py.*(sys\.exit\(0\) at|SystemExit: 0)"):
        pf.process(film(tmp_path / "in.mp4", 6), tmp_path / "o.mp4", script=tmp_path / "s.py", jobs=jobs, chunk=3)
    assert not (tmp_path / "o.mp4").exists()


def test_sound_is_not_left_out_in_silence(identity: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pf.process(film_with_sound(tmp_path / "in.mp4"), tmp_path / "out.mp4", identity, rate=10)
    assert "the rate is changed to 10 pictures a second: the sound of" in caplog.text


@pytest.mark.parametrize("draws", [False, True])
def test_a_script_that_draws_nothing_is_told(draws: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "script.py").write_text(
        "import numpy as np\nimport perframe as pf\n\n\nclass Quiet(pf.Script):\n    def render(self, frame):\n"
        f"        {'self.app.surface.present(np.full((36, 64, 3), 9, np.uint8))' if draws else 'pass'}\n"
    )
    pf.process(film(tmp_path / "in", 2), tmp_path / "out", script=tmp_path / "script.py")
    assert ("script.py drew nothing" in caplog.text) is not draws
