"""The drivers of GPUs that are not here: how they are chosen, and that they compile. Unpacking takes 200 MiB, so the
last tests skip where `python tools/drivers.py unpack` has not run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import driver_environments
import pytest
from driver_environments import DRIVERS, LIBRARIES, driver_environment, drivers_folder, unpack

import perframe as pf

ROOT = Path(__file__).resolve().parents[2]
unpacked = pytest.mark.skipif(not (drivers_folder() / "ready").exists(), reason="no drivers are unpacked here")


def drivers(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "tools/drivers.py", *arguments], cwd=ROOT, capture_output=True, text=True)


def test_a_driver_is_chosen_by_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ready").touch()
    monkeypatch.setenv("PERFRAME_DRIVERS", str(tmp_path))
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    chosen = driver_environment("navi21")
    libraries = str(tmp_path / LIBRARIES)
    assert chosen["LD_LIBRARY_PATH"] == f"{libraries}:/elsewhere" and chosen["AMDGPU_GPU_ID"] == "navi21"
    assert chosen["LD_PRELOAD"].startswith(libraries)
    assert "LD_PRELOAD" not in driver_environment("softpipe")
    with pytest.raises(pf.BackendError, match="'navi99'; there are navi21"):
        driver_environment("navi99")


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="the drivers are packages of Debian")
def test_what_hinders_unpacking_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_DRIVERS", str(tmp_path))
    with pytest.raises(pf.BackendError, match="is not a whole folder of drivers; delete it"):
        unpack()
    monkeypatch.setenv("PERFRAME_DRIVERS", str(tmp_path / "drivers"))
    monkeypatch.setattr(driver_environments, "_download", lambda _place: [Path("broken.deb")])
    with pytest.raises(pf.BackendError, match=r"dpkg -x broken\.deb"):
        unpack()
    assert list(tmp_path.iterdir()) == [], "an interrupted call leaves nothing"


@unpacked
def test_a_gpus_compiler_shows_standard_layers() -> None:
    done = drivers("isa", "--gpu", "polaris10", "--backend", "gpu_compute")
    assert done.returncode == 0, done.stderr
    assert all(what in done.stdout for what in ("registers", "3×3", "1×1", "depthwise", "product"))
    wrong = drivers("isa", "--gpu", "nouveau")
    assert wrong.returncode == 1 and "is no AMD GPU" in wrong.stderr


@unpacked
def test_a_shader_that_does_not_compile_is_named(tmp_path: Path) -> None:
    (tmp_path / "good-1.glsl").write_text("#version 330\nout vec4 o;\nvoid main() { o = vec4(1); }\n")
    (tmp_path / "wrong-2.glsl").write_text("#version 330\nout vec4 o;\nvoid main() { o = vec4(a); }\n")
    done = drivers("compile", str(tmp_path), "--drivers", "nouveau,softpipe")
    assert done.returncode == 1
    for driver in ("nouveau", "softpipe"):
        assert driver in DRIVERS and f"{driver}: 1 of 2 compile" in done.stdout
    assert done.stdout.count("wrong-2.glsl") == 2 and "good-1.glsl" not in done.stdout
    assert "holds no shaders" in drivers("compile", str(ROOT / "docs")).stderr
