"""Sinks: what they write, and that nothing half written is left."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from media.films import grey, index_of, media_threads
from perframe.media import Picture, VideoSink, open_sink, open_source, picture, sinks, video_sink


@pytest.mark.parametrize("name", ["a.mp4", "a.webm", "folder", "a.png"])
def test_a_sink_that_is_abandoned_leaves_what_was_there(name: str, tmp_path: Path) -> None:
    before = [tmp_path / name] if name != "folder" else []
    for path in before:
        path.write_text("before")
    with pytest.raises(ZeroDivisionError), open_sink(tmp_path / name) as sink:
        sink.write(grey(1))
        raise ZeroDivisionError
    assert [path for path in tmp_path.iterdir() if path.is_file()] == before
    assert all(path.read_text() == "before" for path in before)
    assert media_threads() == []


def test_a_picture_file_keeps_the_last_picture(tmp_path: Path) -> None:
    with open_sink(tmp_path / "a.png") as sink:
        for index in range(3):
            sink.write(grey(index))
    assert index_of(np.asarray(Image.open(tmp_path / "a.png"))) == 2
    with pytest.raises(pf.ClosedError):
        sink.write(grey(1))


def test_a_folder_names_files_by_index(tmp_path: Path) -> None:
    with open_sink(tmp_path / "out") as sink:
        sink.write(Picture(grey(3), 3, 0.12))
        sink.write(Picture(grey(7), 7, 0.28))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["000003.png", "000007.png"]


def test_odd_sides_lose_a_row(tmp_path: Path) -> None:
    with open_sink(tmp_path / "a.mp4") as sink:
        sink.write(grey(1, (65, 37)))
    with open_source(tmp_path / "a.mp4") as source:
        assert next(iter(source)).pixels.shape == (36, 64, 3)


def test_pictures_of_a_video_have_one_size(tmp_path: Path) -> None:
    sink = VideoSink(tmp_path / "a.mp4")
    sink.write(grey(1))
    with pytest.raises(pf.InputError, match=r"a\.mp4': picture 1 is 32×18, and those before were 64×36"):
        sink.write(grey(2, (32, 18)))
        sink.finish()
    assert list(tmp_path.iterdir()) == [] and media_threads() == []


@pytest.mark.parametrize("wrong", [np.zeros((4, 4)), np.zeros((4, 4, 4), np.uint8), np.zeros((0, 4, 3), np.uint8), "a"])
def test_what_is_no_picture_is_refused(wrong: Any, tmp_path: Path) -> None:
    with open_sink(tmp_path / "out") as sink, pytest.raises(pf.InputError, match=r"out', picture 0: .*picture"):
        sink.write(wrong)


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere/a.png", "there is no folder"), ("a.txt", "neither a folder nor of a known kind")],
)
def test_a_sink_that_cannot_be_is_an_error(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(pf.InputError, match=message):
        open_sink(tmp_path / name)


@pytest.mark.parametrize("name", [None, "", 3, b"a.png"])
def test_what_is_no_name_is_refused(name: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pf.InputError, match=r"a sink is a picture \(\.png, .*by its name or path, not ") as caught:
        open_sink(name)
    assert str(caught.value).endswith(f"not {name!r}")
    for kind in (sinks.PictureSink, sinks.FolderSink, VideoSink):
        with pytest.raises(pf.InputError, match="a sink of files takes a path, not "):
            kind(name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["none.mp4", "none.png", "none"])
def test_a_sink_without_pictures_warns(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError), open_sink(tmp_path / name):
        raise ZeroDivisionError
    sink = open_sink(tmp_path / name)
    with pytest.raises(ZeroDivisionError):
        try:
            raise ZeroDivisionError
        finally:
            sink.finish()
    assert caplog.messages == []
    with open_sink(tmp_path / name) as sink:
        pass
    sink.finish()
    assert caplog.messages == [f"{str(tmp_path / name)!r} was not written: the sink was closed without a picture"]
    assert caplog.records[0].levelno == logging.WARNING and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("array", "advice"),
    [
        (np.ones((4, 5, 3)), "for values of 0 to 1, use np.uint8(array.clip(0, 1) * 255)"),
        (np.ones((4, 5, 4), np.float32), "for values of 0 to 1, use np.uint8(array[..., :3].clip(0, 1) * 255)"),
        (np.full((4, 5, 4), 255, np.uint8), "use array[..., :3]"),
        (np.full((4, 5), 255, np.uint8), "use np.stack([array] * 3, -1)"),
        (np.full((4, 5, 1), 255, np.uint8), "use np.repeat(array, 3, -1)"),
        (np.full((3, 6, 5), 255, np.uint8), "use array.transpose(1, 2, 0)"),
        (np.full((1, 3, 6, 5), 1.0), "use np.uint8(array[0].transpose(1, 2, 0).clip(0, 1) * 255)"),
        (np.full((4, 5, 3), 255), "for values of 0 to 255, use np.uint8(array)"),
        (np.ones((4, 5), bool), "use np.uint8(np.stack([array] * 3, -1)) * 255"),
        (np.full((5, 5, 7), 255, np.uint8), ""),
        (np.full((2, 4, 5, 3), 255, np.uint8), ""),
    ],
    ids=lambda given: f"{given.dtype}-{given.shape}" if isinstance(given, np.ndarray) else "",
)
def test_an_array_that_is_nearly_a_picture_is_told_how(array: Any, advice: str, tmp_path: Path) -> None:
    with open_sink(tmp_path / "a.png") as sink:
        with pytest.raises(pf.InputError) as caught:
            sink.write(array)
        assert str(caught.value).endswith(advice or f"of shape {array.shape}")
        if not advice:
            return
        sink.write(eval(advice.rpartition("use ")[2], {"array": array, "np": np}))
    assert np.asarray(Image.open(tmp_path / "a.png")).min() == 255


def test_a_disk_that_is_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(video_sink, "put_in_place", full)
    with (
        pytest.raises(pf.InputError, match=r"a\.mp4' cannot be written: .*No space left"),
        open_sink(tmp_path / "a.mp4") as sink,
    ):
        sink.write(grey(1))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.mp4", "folder", "a.png"])
def test_a_disk_that_becomes_read_only_is_told_and_nothing_hangs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    sink = open_sink(tmp_path / name)
    sink.write(grey(0))
    for target, call in ((Path, "unlink"), (picture, "put_in_place"), (video_sink, "put_in_place")):
        monkeypatch.setattr(target, call, read_only)
    written: list[Exception] = []

    def write() -> None:
        try:
            for index in range(1, 40):
                sink.write(grey(index))
            sink.finish()
        except pf.InputError as error:
            written.append(error)

    user = threading.Thread(target=write, daemon=True)
    user.start()
    user.join(20)
    assert not user.is_alive(), "the user's thread hangs"
    assert "Read-only file system" in str(written[0]) and name in str(written[0])


def test_the_loop_does_not_wait_for_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, opened = threading.Event(), []
    monkeypatch.setattr(sinks.FolderSink, "_store", lambda *_: opened.append(gate.wait(20)))
    with open_sink(tmp_path / "out") as sink:
        for index in range(4):
            sink.write(grey(index))
        gate.set()
    assert opened == [True] * 4


def test_a_window_shows_pictures(display: None) -> None:
    sink = pf.media.WindowSink(size=(64, 36), vsync=False)
    with sink:
        sink.write(grey(5))
        assert not sink.should_close and sink.surface.size == (64, 36)
