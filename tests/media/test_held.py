"""What sources and sinks hold on to: threads, and arrays that the caller fills anew."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from media.films import media_threads


@pytest.mark.parametrize("name", ["film.mkv", "folder"])
def test_an_array_may_change_after_it_is_written(name: str, tmp_path: Path) -> None:
    buffer, wanted = np.zeros((48, 64, 3), np.uint8), [20 + 25 * index for index in range(8)]
    with pf.media.open_sink(tmp_path / name) as sink:
        for value in wanted:
            buffer[:] = value
            sink.write(buffer)
            buffer[:] = 0
    with pf.media.open_source(tmp_path / name) as source:
        found = [int(picture.pixels.mean()) for picture in source]
    assert np.abs(np.subtract(found, wanted)).max() <= 3


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("taken", [0, 3])
def test_a_source_that_nobody_holds_ends_its_thread(taken: int) -> None:
    for _ in range(5):
        source = pf.media.open_source("scene:32x32")
        for picture, _ in zip(source, range(taken), strict=False):
            assert picture.pixels.shape == (32, 32, 3)
        del source
    collect_garbage()
    end = time.monotonic() + 5
    while media_threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert media_threads() == []


@pytest.mark.parametrize("enough", [(0, 0), (-5, 5), (5,), "x", 1.5, (2.5, 2.5), (True, None)])
def test_sizes_of_a_wrong_type(enough: Any, tmp_path: Path) -> None:
    with pf.media.open_sink(tmp_path / "a.png") as sink:
        sink.write(np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(pf.InputError, match="enough is width and height"):
        pf.media.open_source(tmp_path / "a.png", enough=enough)


@pytest.mark.parametrize("name", [None, 3, b"film.mp4", ["a"]])
def test_names_of_a_wrong_type(name: Any) -> None:
    with pytest.raises(pf.InputError, match="by its name or path"):
        pf.media.open_source(name)


@pytest.mark.parametrize("name", ["scene", "camera", "screen"])
def test_a_folder_of_such_a_name_comes_first(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pf.media.open_sink(f"./{name}") as sink:
        sink.write(np.full((6, 9, 3), 77, np.uint8))
    with pf.media.open_source(name) as source:
        assert next(iter(source)).pixels.shape == (6, 9, 3)
