"""Sources: what they give, in which order, when, and how they end."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

import perframe as pf
from media.films import RATE, film, film_with_sound, grey, index_of
from perframe.media import Scene, draw_source, open_source, videos
from perframe.media.source import open_feed


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.avi", "a.webm", "folder"])
def test_every_picture_comes_in_order(name: str, tmp_path: Path) -> None:
    with open_source(film(tmp_path / name)) as source:
        assert source.feed.count == 30 and source.rate == RATE and not source.is_live
        pictures = list(source)
        assert source.ended
    assert [picture.index for picture in pictures] == list(range(30))
    assert [index_of(picture.pixels) for picture in pictures] == list(range(30))
    assert np.allclose([picture.time for picture in pictures], np.arange(30) / RATE, atol=0.002)
    first = pictures[0].pixels
    assert first.shape == (36, 64, 3) and first.dtype == np.uint8 and first[-4:].min() > 240 > first[4:].min()


@pytest.mark.parametrize("first", [1, 7, 8, 13, 29, 30])
def test_a_part_begins_anywhere(first: int, tmp_path: Path) -> None:
    feed = open_feed(film_with_sound(tmp_path / "a.mp4"))
    assert [(each.index, index_of(each.pixels)) for each in feed.pictures(first)] == [(i, i) for i in range(first, 30)]


def test_a_frame_loop_gets_the_picture_of_its_time(tmp_path: Path) -> None:
    with open_source(film(tmp_path / "a.mp4", 10)) as source:
        found = [source.picture_at(step / 60, wait=True) for step in range(20)]
        indices = [picture and picture.index for picture in found]
        assert indices[:8] == [0, None, None, 1, None, 2, None, None]
        assert source.picture_at(5.0, wait=True).index == 9  # type: ignore[union-attr]
        assert source.picture_at(6.0, wait=True) is None and source.ended


def test_it_never_waits_for_a_slow_source() -> None:
    gate = threading.Event()

    def draw(seconds: float) -> Any:
        assert not seconds or gate.wait(20)
        return grey(1)

    with draw_source(draw, 10) as source:
        assert source.picture_at(0.0) is not None
        for _ in range(50):
            assert source.picture_at(10.0) is None
        gate.set()
        assert source.picture_at(10.0, wait=True) is not None


def test_a_loop_begins_again(tmp_path: Path) -> None:
    with open_source(film(tmp_path / "a.mp4", 5), loop=True) as source:
        found = [source.picture_at(step / RATE + 0.001, wait=True) for step in range(12)]
    assert [picture and picture.index for picture in found] == list(range(12))
    assert [index_of(picture.pixels) for picture in found if picture] == [*range(5), *range(5), 0, 1]


@pytest.mark.quick(cases=0)
def test_a_camera_gives_its_newest_picture_and_is_unplugged(monkeypatch: pytest.MonkeyPatch) -> None:
    if "lavfi" not in av.formats_available:
        pytest.skip("this PyAV has no lavfi to play a camera")
    camera = ("lavfi", "testsrc2=size=128x72:rate=30:duration=1,realtime")
    monkeypatch.setitem(videos._CAMERAS, sys.platform, camera)
    with open_source("camera", (64, 36)) as source:
        assert source.is_live
        first = source.picture_at(0.0, wait=True)
        assert first is not None and first.pixels.shape == (36, 64, 3)
        time.sleep(0.1)
        second = source.picture_at(0.0, wait=True)
        assert second is not None and second.index > first.index + 1, "a live source drops what nobody took"
        with pytest.raises(pf.InputError, match="camera 0 ended; is it still plugged in"):
            while True:
                source.picture_at(0.0, wait=True)


def test_a_camera_that_is_not_there_is_named() -> None:
    with pytest.raises(pf.InputError, match=r"camera 77 .* cannot be opened"):
        open_source("camera:77")


@pytest.mark.parametrize("name", ["a.avi", "a.mkv", "a.mp4"])
def test_a_video_that_is_cut_is_named(name: str, tmp_path: Path) -> None:
    whole = film(tmp_path / name, 100)
    data = whole.read_bytes()
    whole.with_stem("cut").write_bytes(data[: len(data) // 2])
    with pytest.raises(pf.InputError, match=r"cut\."):
        assert open_feed(whole.with_stem("cut")).count


def test_a_video_that_is_damaged_ends_in_an_error_where_it_is_played(tmp_path: Path) -> None:
    whole = film(tmp_path / "a.avi", 60)
    whole.write_bytes(whole.read_bytes()[: whole.stat().st_size * 2 // 3])
    with (
        open_source(whole) as source,
        pytest.raises(pf.InputError, match=r"a\.avi' is truncated or damaged after \d+ pictures"),
    ):
        list(source)


def test_a_picture_that_vanishes_is_named(tmp_path: Path) -> None:
    folder = film(tmp_path / "folder", 12)
    with open_source(folder) as source:
        os.unlink(folder / "000010.png")
        with pytest.raises(pf.InputError, match=r"000010\.png' cannot be read: .*No such file"):
            list(source)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing.png", r"nothing\.png' does not exist; a source is a picture, "),
        ("text.png", r"text\.png' is not a picture, despite its name"),
        ("text.mp4", r"text\.mp4' is neither a picture nor a video"),
        ("empty", r"empty' has no pictures: \.png"),
        ("screen:1,2", "a region of the screen is screen:X,Y,WIDTH,HEIGHT"),
        ("screen:0,0,0,10", r"\(0, 0, 0, 10\) has no pixels"),
        ("scene:0x9", "a scene is scene:WIDTHxHEIGHT"),
        ("", "a source is a picture, .* by its name or path, not ''"),
    ],
)
def test_a_source_that_is_none_is_an_error(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("text.png", "text.mp4"):
        Path(text).write_text("no picture", encoding="utf-8")
    Path("empty").mkdir()
    with pytest.raises(pf.InputError, match=message):
        open_source(name)


def test_a_drawing_that_fails_is_raised_in_the_loop() -> None:
    with draw_source(lambda seconds: grey(1) if seconds < 0.1 else np.zeros(3), 10) as source:
        with pytest.raises(pf.InputError, match=r"picture 1: a picture is H x W x 3 of uint8, and this is float64"):
            list(source)
        with pytest.raises(pf.InputError):
            source.picture_at(1.0)
    with pytest.raises(pf.ClosedError):
        source.picture_at(1.0)


def test_pictures_are_upright_opaque_and_not_larger_than_needed(tmp_path: Path) -> None:
    turned = Image.new("RGBA", (200, 400), "red")
    turned.paste((0, 0, 0, 0), (0, 0, 200, 100))
    exif = turned.getexif()
    exif[0x0112] = 6  # to be shown turned to the right
    turned.save(tmp_path / "turned.png", exif=exif)
    with open_source(tmp_path / "turned.png", (100, 100)) as source:
        assert source.is_still
        picture = source.picture_at(0.0)
        assert picture is not None and source.picture_at(9.0) is None
    assert picture.pixels.shape == (100, 200, 3)
    assert picture.pixels[50, 180].tolist() == [255, 255, 255] and picture.pixels[50, 20].tolist() == [255, 0, 0]


def test_a_folder_is_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    for index in (10, 9, 1):
        Image.fromarray(grey(index)).save(tmp_path / f"shot{index}.png")
    (tmp_path / "notes.txt").write_text("no picture")
    with open_source(tmp_path, rate=2) as source:
        assert [(index_of(picture.pixels), picture.time) for picture in source] == [(1, 0.0), (9, 0.5), (10, 1.0)]


def test_our_own_scene_moves() -> None:
    with open_source("scene:64x36", rate=10) as source:
        first, second = source.picture_at(0.0, wait=True), source.picture_at(0.55, wait=True)
    assert first is not None and second is not None and (first.index, second.index) == (0, 5)
    assert np.array_equal(second.pixels, Scene((64, 36))(0.5)) and (first.pixels != second.pixels).any()


@pytest.mark.parametrize("size", ["320x180", (320,), (0, 9), (4.5, 9), 7, None])
def test_a_scene_has_a_size(size: Any) -> None:
    with pytest.raises(pf.InputError, match=r"a scene's size is width and height .* Scene\(\(320, 180\)\), not "):
        Scene(size)


@pytest.mark.parametrize("time", [float("nan"), float("inf"), -float("inf"), "1", None])
@pytest.mark.filterwarnings("error")
def test_a_scene_has_a_time(time: Any) -> None:
    scene = Scene((8, 4))
    with pytest.raises(pf.InputError, match="a scene's time is a finite number of seconds, not "):
        scene(time)
    for finite in (np.float32(0.5), 1, -2.5):
        assert scene(finite).shape == (4, 8, 3)


def test_the_screen(display: None) -> None:
    pytest.importorskip("mss", reason="pip install 'perframe[screen]'")
    with pf.App((60, 40), headless=False, vsync=False) as app, open_source("screen:0,0,50,30") as source:
        app.loop_once()
        picture = source.picture_at(0.0, wait=True)
        assert picture is not None and picture.pixels.shape == (30, 50, 3) and source.is_live


def test_the_app_sees_what_it_has_drawn(gl_context: Any, backend: str) -> None:
    if backend == "cpu":
        pytest.skip("textures lie on a GPU")
    seen: list[Any] = []

    def update(app: pf.App) -> None:
        assert app.ctx is not None and app.framebuffer is not None
        app.surface.present(np.repeat(np.arange(36, dtype=np.uint8)[:, None, None] * 7, 64, 1).repeat(3, 2))
        screen = pf.media.SurfaceTexture(app.ctx, app.size)
        part = pf.TextureTransform(coord_origin="bottom_left", region=(10, 6, 8, 12))
        with pf.TextureConverter(app.ctx, backend) as converter:
            tensor = converter.to_tensor(screen.capture(app.framebuffer), pf.Tensor.empty((1, 3, 12, 8)), part)
            seen.append(tensor.download_to_array())
            tensor.release()
        assert app.ctx.fbo is app.framebuffer
        screen.release()

    with pf.App((64, 36), headless=True, stop_on_error=True) as app:
        app.run(update, frames=1)
    assert np.abs(seen[0][0, 0, :, 0] * 255 - np.arange(6, 18) * 7).max() < 0.01


def test_pyav_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = film(tmp_path / "a.mp4", 3)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(pf.MissingExtraError, match=r"reading a video needs PyAV: pip install 'perframe\[video\]'"):
        open_source(path)
