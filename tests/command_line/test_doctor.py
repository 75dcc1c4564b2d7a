"""What doctor says on systems that are not here."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perframe.backends.cpu.compile import library
from perframe.command_line.commands import doctor
from perframe.graphics import headless_context

TRANSLATED = b"sysctl.proc_translated"


@pytest.mark.parametrize(("translated", "failed"), [(1, 0), (0, 0), (0, -1)])
def test_rosetta_is_told(translated: int, failed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def sysctlbyname(name: bytes, value: Any, size: Any, new: None, new_size: Any) -> int:
        assert name == TRANSLATED
        value._obj.value = translated
        return failed

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(sysctlbyname=sysctlbyname))
    found = list(doctor._emulation())
    assert [(check.name, check.status) for check in found] == ([("processor", "note")] if translated else [])
    assert not found or "arm64" in found[0].advice


@pytest.mark.parametrize(("system", "said"), [("darwin", "4.1"), ("win32", "driver"), ("linux", "apt-get")])
def test_advice_on_gl_is_the_systems(system: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    check = doctor._headless("no context")
    assert check.status == "missing" and said in check.advice
    assert ("apt" in check.advice) == (system == "linux")


@pytest.mark.parametrize(
    ("version", "renderer", "statuses"),
    [
        ("4.6.0 NVIDIA 550", "RTX", ["ok", "ok"]),
        ("4.1 Metal", "Apple M2", ["note", "ok"]),
        ("2.1 Mesa", "old", ["note", "missing"]),
        ("4.5 (Core Profile) Mesa", "llvmpipe (LLVM 15)", ["note", "note"]),
    ],
)
def test_a_glance_tells_the_backends_by_the_driver(
    version: str, renderer: str, statuses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    probed: list[str] = []

    def probe(function: str, *_: str) -> Any:
        probed.append(function)
        return {"vendor": "V", "renderer": renderer, "version": version}

    monkeypatch.setattr(doctor, "_probe", probe)
    found = {check.name: check for check in doctor.glance()}
    assert [found[name].status for name in ("gpu_compute", "gpu_pixel")] == statuses
    assert probed == ["describe_driver"]  # nothing compiles, and no window opens
    assert "ray" not in found and "packages" not in found


def test_a_glance_is_healthy_here(gl_context: object) -> None:
    checks = doctor.glance()
    assert doctor.healthy(checks) and checks[0].name == "perframe"


@pytest.mark.parametrize(("system", "said"), [("darwin", "4.1"), ("win32", "newer graphics driver")])
def test_advice_on_compute_shaders_is_the_systems(system: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(doctor, "_probe", lambda *_: "no GL 4.3")
    check = doctor._backend("gpu_compute")
    assert check.status == "note" and said in check.advice


def test_kernels_that_came_damaged_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    assert doctor._kernels().found.startswith("none came compiled")
    library.library_path().write_bytes(b"not what was made")
    library.library_path().with_name(f"{library.library_path().name}.sum").write_text("17 0")
    check = doctor._kernels()
    assert (check.status, check.name) == ("note", "kernels") and "is not as it was made" in check.found
    assert "install" in check.advice


def test_a_cache_that_cannot_be_written_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path / "new" / "cache"))
    assert doctor._cache().status == "ok" and not any(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path / "file" / "cache"))
    check = doctor._cache()
    assert check.status == "note" and "cannot be written" in check.found and "PERFRAME_CACHE" in check.advice


def test_absent_packages_are_told_by_the_extras_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    listed = [
        "numpy>=2",
        "nothing>=3",
        "no-sound>=1; extra == 'sound'",
        "no-video>=1; extra == 'sound'",
        "no-tests>=1; extra == 'dev'",
        "no-films>=1; sys_platform == 'elsewhere' and extra == 'films'",
        "no-frames>=1; extra == 'films'",
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: listed)
    _, missing, *notes = doctor._packages()
    assert (missing.name, missing.status, missing.advice) == ("nothing", "missing", "pip install 'nothing>=3'")
    assert [(note.name, note.found, note.advice) for note in notes] == [
        ("extra sound", "not installed: no-sound, no-video", "pip install 'perframe[sound]'")
    ]


@pytest.mark.parametrize(("setting", "said"), [("always [madvise] never\n", "madvise"), (None, None)])
def test_huge_pages_are_told_where_the_system_has_them(
    setting: str | None, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "enabled"
    if setting is not None:
        file.write_text(setting, encoding="ascii")
    monkeypatch.setattr(doctor, "HUGE_PAGES", file)
    assert doctor.try_backend("cpu").get("huge_pages") == said


def test_a_remedy_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headless_context, "install_advice", lambda: "apt-get install gl")
    check = doctor._headless("the driver here has OpenGL 2.1, and perframe needs 3.3: apt-get install gl; or use 'cpu'")
    assert (check.status, check.advice) == ("missing", "apt-get install gl")
    assert check.found == "the driver here has OpenGL 2.1, and perframe needs 3.3; or use 'cpu'"
