"""The files in the wheel, the cost of an import, and the wheel in its own environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import kernel_library
import pytest

import perframe
from perframe.backends.cpu import processor
from perframe.backends.cpu.kernels.sizes import LANES, REGISTERS
from perframe.resources import resource

ROOT = Path(__file__).resolve().parents[1]
OF_PICTURES = ("sample", "dtype = 'uint8'")  # the kernel that brings the demo's picture to the network
OF_NEW_SIZES = (("arithmetic", ""), ("arithmetic.write", ""))  # kernels, which jobs after a run ask for
HEAVY = {"numba", "llvmlite", "onnx", "moderngl", "glfw", "numpy"}


def run(*command: object, folder: Path = ROOT, **settings: object) -> str:
    """The output of a command. Fails the test with all that it printed."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = clean | {name: str(value) for name, value in settings.items()}
    done = subprocess.run([*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_version_is_stated_once() -> None:
    assert metadata.version("perframe") == perframe.__version__


def test_resources_are_found_in_the_checkout() -> None:
    for folder in ("shaders", "demos", "assets"):
        assert resource(folder) == ROOT / folder
    with pytest.raises(FileNotFoundError, match="nothing/here"):
        resource("nothing", "here")


def test_import_costs_nothing() -> None:
    code = "import time; t = time.perf_counter(); import perframe, sys; print(time.perf_counter() - t, *sys.modules)"
    runs = [run(sys.executable, "-c", code).split() for _ in range(5)]
    assert not HEAVY & set(runs[0])
    assert min(float(seconds) for seconds, *_ in runs) < 0.15


def test_every_public_name_exists() -> None:
    for name in perframe.__all__:
        assert getattr(perframe, name) is not None


def test_files_stay_short() -> None:
    files = [path for folder in ("runtime", "demos", "shaders", "tests") for path in (ROOT / folder).rglob("*")]
    lines = {path: len(path.read_text().splitlines()) for path in files if path.suffix in (".py", ".glsl")}
    assert not {str(path.relative_to(ROOT)): count for path, count in lines.items() if count > 400}


def test_no_two_files_of_tests_have_one_name() -> None:
    """pytest imports them by their names alone."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert not {name for name in names if names.count(name) > 1}


def test_what_we_say_to_make_can_be_made() -> None:
    """make is content with a phony name that has no rule, and with a rule that is there twice."""
    text = (ROOT / "Makefile").read_text()
    rules = re.findall(r"^([a-z0-9-]+):", text, re.MULTILINE)
    assert len(rules) == len(set(rules))
    said = set(re.findall(r"^\.PHONY: (.*)", text, re.MULTILINE)[0].split())
    pages = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
    for path in (*pages, ROOT / ".ci" / "run"):
        said |= set(re.findall(r"(?:^|`|\$ )make ([a-z][a-z0-9-]*)", path.read_text(), re.MULTILINE))
    assert said == set(rules)


def painters_kernels(folder: Path) -> Path | None:
    """A library of the CPU kernels that the painter needs, if this system can have one."""
    system = kernel_library.SYSTEMS.get(f"{sys.platform}-{processor.architecture()}")
    if system is None or (system.architecture, LANES, REGISTERS) not in processor.LEVELS:
        return None
    requests = kernel_library.asked_apart(resource("assets", "painter", "painter.onnx"))
    return kernel_library.build(system, sorted({*requests, *OF_NEW_SIZES, OF_PICTURES}), 2, folder)


@pytest.mark.wheel
def test_a_wheel_without_kernels_is_for_all_systems(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path)
    assert [path.name for path in tmp_path.glob("*.whl")] == [f"perframe-{perframe.__version__}-py3-none-any.whl"]


@pytest.mark.wheel
def test_the_wheel_works_outside_the_checkout(tmp_path: Path) -> None:
    kernels = painters_kernels(tmp_path / "kernels")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, PERFRAME_KERNELS=kernels or "")
    (wheel,) = tmp_path.glob("perframe-*.whl")
    assert wheel.name.endswith("-any.whl") == (kernels is None)
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "perframe/demos/painter/__main__.py" in names or "perframe/demos/painter.py" in names
    assert any(name.startswith("perframe/shaders/") and name.endswith(".glsl") for name in names)
    assert any(name.startswith("perframe/assets/painter/") and name.endswith(".onnx") for name in names)
    assert {
        f"perframe/inspection/page/{name}" for name in ("page.html", "page.css", "page.js", "dagre.min.js")
    } <= names
    assert not {name for name in names if "__pycache__" in name or name.startswith(("tests/", "tools/"))}
    assert not {name for name in names if name.startswith("perframe/assets/") and name.endswith((".py", ".md", ".txt"))}

    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    run(scripts / "python", "-m", "pip", "install", "--quiet", wheel)
    away = tmp_path / "away"
    away.mkdir()
    assert str(environment) in run(scripts / "python", "-c", "import perframe; print(perframe.__file__)", folder=away)
    assert "Everything needed is here" in run(scripts / "perframe", "doctor", folder=away)
    run(scripts / "perframe", "demo", "painter", "--headless", "--frames", 3, "--save", "out.png", folder=away)
    assert (away / "out.png").stat().st_size > 10_000
    if kernels is None:
        return
    assert "the usual ones came compiled" in run(scripts / "perframe", "doctor", "--all", folder=away)
    command = ("painter", "--backend", "cpu", "--headless", "--frames", 3)
    run(scripts / "perframe", "demo", *command, folder=away, PERFRAME_CACHE=tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.o"))
