"""Makes the files of a release in dist/, and tries the wheel as a user would, on each supported Python that is here.

`make release` calls it. It ends with status 1 at the first thing that is wrong. Nothing is uploaded.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
SUPPORTED = ((3, 11), (3, 12), (3, 13))
OWN_MEGABYTES = 9.0  # that our own files may take in an environment, without what Python compiles of them
CODE = """
import json, sys
import numpy as np, onnx
from onnx import TensorProto as T, helper as h
import perframe as pf
nodes = [h.make_node("Softmax", ["x"], ["y"])]
value = lambda name: h.make_tensor_value_info(name, T.FLOAT, ["n", 5])
onnx.save(h.make_model(h.make_graph(nodes, "g", [value("x")], [value("y")])), "own.onnx")
x = np.random.default_rng(0).random((3, 5), np.float32)
y = pf.run("own.onnx", {"x": x})["y"]
assert np.allclose(y, np.exp(x) / np.exp(x).sum(1, keepdims=True), atol=1e-6)
print(json.dumps({"version": pf.__version__, "file": pf.__file__}))
"""

console = Console(width=120)


@dataclass(frozen=True)
class Tried:
    """An environment in which the wheel ran."""

    python: str
    packages: int
    megabytes: float
    own_megabytes: float


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """The output of a command. Ends the program with all that it printed if the command fails."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, command)], cwd=folder, env=clean, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        console.print(f"[red]{' '.join(map(str, command))}[/] failed:\n{done.stdout}{done.stderr}", highlight=False)
        raise typer.Exit(1)
    return done.stdout


def require(holds: bool, what: str) -> None:
    if not holds:
        console.print(f"[red]{what}[/]", highlight=False)
        raise typer.Exit(1)


def pythons() -> dict[str, Path]:
    """An interpreter of each supported version that is here, by its version."""
    found: dict[str, Path] = {}
    for major, minor in SUPPORTED:
        version = f"{major}.{minor}"
        candidates = [shutil.which(f"python{version}"), sys.executable]
        candidates += sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
        for candidate in filter(None, candidates):
            ask = [candidate, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"]
            answer = subprocess.run(ask, capture_output=True, text=True)
            if answer.returncode == 0 and answer.stdout.strip() == version:
                found[version] = Path(candidate)
                break
    return found


def stated_version() -> str:
    text = (ROOT / "runtime" / "perframe" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert found is not None
    return found[1]


def build(version: str) -> tuple[Path, Path]:
    """The source archive, and the wheel with kernels for this system. The wheel without kernels is made of the archive,
    so that the archive is whole.
    """
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST)
    require((DIST / f"perframe-{version}-py3-none-any.whl").is_file(), "there is no wheel for all systems")
    run(sys.executable, ROOT / "tools" / "kernel_library.py", "build", "--wheel", DIST)
    archive = DIST / f"perframe-{version}.tar.gz"
    wheel = next(path for path in DIST.glob("*.whl") if not path.name.endswith("-any.whl"))
    require(archive.is_file() and wheel.is_file(), f"{DIST} lacks {archive.name} or {wheel.name}")
    run(sys.executable, "-m", "twine", "check", "--strict", archive, wheel)
    run(sys.executable, "-m", "check_wheel_contents", "--ignore", "W004,W009", wheel)
    with tarfile.open(archive) as files:
        inside = {name.partition("/")[2] for name in files.getnames()}
    require(
        {"LICENSE", "CHANGELOG.md", "README.md", "tests/conftest.py", "docs/index.md"} <= inside, "files are missing"
    )
    with zipfile.ZipFile(wheel) as files:
        licences = [name for name in files.namelist() if name.endswith(("LICENSE", "dagre.LICENSE"))]
    require(len(licences) >= 2, f"{wheel.name} lacks a licence: it has {licences}")
    return archive, wheel


def attempt(wheel: Path, python: Path, folder: Path) -> Tried:
    """Install the wheel in a clean environment, and run a model, `doctor` and the demo there, outside the checkout."""
    environment, away = folder / "environment", folder / "away"
    away.mkdir()
    run(python, "-m", "venv", environment)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    own = scripts / "python"
    before = {path for path in environment.rglob("*") if path.is_file()}
    run(own, "-m", "pip", "install", "--quiet", "--no-compile", wheel)
    sizes = {path: path.stat().st_size for path in environment.rglob("*") if path.is_file() and path not in before}
    package = next(path for path in sizes if path.match("perframe/__init__.py")).parent
    ours = sum(size for path, size in sizes.items() if path.is_relative_to(package)) / 1e6
    require(ours < OWN_MEGABYTES, f"perframe takes {ours:.1f} MB, and may take {OWN_MEGABYTES}")
    require(str(environment) in run(own, "-c", CODE, folder=away), "another perframe ran")
    require("All that is needed is here" in run(scripts / "perframe", "doctor", folder=away), "doctor misses something")
    run(scripts / "perframe", "demo", "painter", "--headless", "--frames", "3", "--save", "out.png", folder=away)
    require((away / "out.png").stat().st_size > 10_000, "the demo's picture is empty")
    packages = len(run(own, "-m", "pip", "list", "--format=freeze").splitlines())
    version = run(own, "-c", "import platform; print(platform.python_version())").strip()
    return Tried(version, packages, sum(sizes.values()) / 1e6, ours)


def write_bill(wheel: Path, python: Path, folder: Path) -> Path:
    """The bill of materials: all packages of an environment that has the wheel, with versions and licences."""
    environment, bill = folder / "environment", wheel.with_suffix(".cdx.json")
    own = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "venv", "--without-pip", environment)
    run(sys.executable, "-m", "pip", "--python", own, "install", "--quiet", wheel)
    project = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "library")
    run(sys.executable, "-m", "cyclonedx_py", "environment", *project, "--output-reproducible", "-o", bill, own)
    return bill


def main() -> None:
    """Make and try a release."""
    version, here = stated_version(), pythons()
    notes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    require(f"\n## {version}" in notes, f"CHANGELOG.md says nothing of {version}")
    require(bool(here), "there is no Python 3.11, 3.12 or 3.13 here")
    archive, wheel = build(version)
    table = Table("Python", "packages", "MB in all", "MB of perframe", title=f"perframe {version}")
    for python in here.values():
        with tempfile.TemporaryDirectory() as folder:
            tried = attempt(wheel, python, Path(folder))
        table.add_row(tried.python, str(tried.packages), f"{tried.megabytes:.0f}", f"{tried.own_megabytes:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        bill = write_bill(wheel, next(iter(here.values())), Path(folder))
    console.print(table)
    for path in (archive, wheel, bill):
        console.print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.2f} MB", highlight=False)
    for major, minor in SUPPORTED:
        if f"{major}.{minor}" not in here:
            console.print(f"[yellow]Python {major}.{minor} is not here: it was not tried[/]", highlight=False)


if __name__ == "__main__":
    typer.run(main)
