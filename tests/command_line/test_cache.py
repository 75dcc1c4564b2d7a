"""`perframe cache`: it shows what lies in the cache folder, and deletes that and nothing else."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perframe.command_line.commands.cache import DAY

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with one thing of each kind, files of others, and links to outside."""
    cache, outside = tmp_path / "cache", tmp_path / "outside"
    monkeypatch.setenv("PERFRAME_CACHE", str(cache))
    files = {"kernels/a-1.o": 3000, "kernels/b.program": 2048, "tuned/c.json": 10, "conversion/torch-3.11-x/bin/p": 500}
    files["models/d.kept"] = 700
    for name, size in (files | {"kernels/notes.txt": 7, "mine/thing.o": 9}).items():
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_bytes(bytes(size))
    (outside / "inner").mkdir(parents=True)
    (outside / "inner" / "precious.o").write_text("keep")
    (cache / "kernels" / "link.o").symlink_to(outside / "inner" / "precious.o")
    (cache / "conversion" / "torch-3.11-x" / "lib").symlink_to(outside / "inner")
    (cache / "conversion" / "elsewhere").symlink_to(outside / "inner")
    old = time.time() - 10 * DAY
    os.utime(cache / "kernels" / "a-1.o", (old, old))
    return cache


def test_it_shows_kinds_sizes_and_ages(folder: Path, perframe: Command) -> None:
    status, out, _ = perframe("cache")
    assert status == 0 and str(folder) in out
    assert "programs 1 2.0 KiB today" in out and "0 to 10 days ago" in out
    kinds = {one["kind"]: one for one in json.loads(perframe("cache", "--json")[1])["kinds"]}
    assert {kind: one["bytes"] for kind, one in kinds.items()} == {
        "kernels": 3000,
        "programs": 2048,
        "models": 700,
        "environments": 500,
        "tuned": 10,
    }


def test_it_deletes_the_kinds_that_are_named(folder: Path, perframe: Command) -> None:
    status, out, _ = perframe("cache", "--clear", "--kinds", "programs,tuned")
    assert status == 0 and "deleted 2.0 KiB" in out
    left = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}
    assert left == {
        *("kernels/a-1.o", "kernels/notes.txt", "mine/thing.o"),
        *("conversion/torch-3.11-x/bin/p", "models/d.kept"),
    }


def test_it_deletes_nothing_else(folder: Path, perframe: Command) -> None:
    assert perframe("cache", "--clear")[0] == 0
    assert (folder / "kernels" / "notes.txt").exists() and (folder / "mine" / "thing.o").exists()
    assert (folder.parent / "outside" / "inner" / "precious.o").read_text() == "keep"
    assert not (folder / "conversion" / "torch-3.11-x").exists() and not (folder / "kernels" / "a-1.o").exists()


def test_a_folder_that_is_a_link_is_left_alone(folder: Path, perframe: Command) -> None:
    (folder / "tuned" / "c.json").unlink()
    (folder / "tuned").rmdir()
    (folder / "tuned").symlink_to(folder / "mine")
    (folder / "mine" / "x.json").write_text("{}")
    assert perframe("cache", "--clear", "--kinds", "tuned")[0] == 0
    assert (folder / "mine" / "x.json").exists()


def test_wrong_kinds_and_empty_caches(perframe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path / "none"))
    assert perframe("cache")[0] == 0 and perframe("cache", "--clear")[0] == 0
    status, _, err = perframe("cache", "--kinds", "cookies")
    assert status == 2 and "not one of kernels, programs" in err
