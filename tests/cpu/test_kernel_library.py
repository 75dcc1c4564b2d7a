"""The library of compiled kernels in a wheel: what it has needs no compiler, and what it lacks is compiled."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kernel_library
import pytest
from kernel_library import SYSTEMS

import perframe as pf
from perframe.backends.cpu import processor
from perframe.backends.cpu.compile import jit, library
from perframe.resources import resource

LEVEL = processor.architecture(), library.LANES, library.REGISTERS
pytestmark = pytest.mark.skipif(sys.platform != "linux" or LEVEL not in library.LEVELS, reason="no library for it")

FIRST_RESULT = """
import json, sys
from perframe.backends.cpu.compile import jit, library
library.__file__ = sys.argv[1]
import numpy as np
import perframe as pf
x = np.linspace(-3, 3, 21, dtype=np.float32).reshape(3, 7)
made = pf.run(sys.argv[2], x)["y"]
assert np.array_equal(made, np.maximum(x, 0) + 1), made
assert jit.compiled or not {"llvmlite", "numba"} & set(sys.modules)
print(json.dumps(jit.compiled))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", ("n", 7), "x")
    path = tmp_path_factory.mktemp("model") / "relu.perframe"
    pf.save(graph.compile(y=pf.functional.relu(x) + 1), path)
    return path


@pytest.fixture(scope="module")
def made(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of what the model needs."""
    requests = sorted(kernel_library.asked_apart(model))
    assert len(requests) == 3  # the walk, its helpers, and one chain
    system = SYSTEMS[f"linux-{processor.architecture()}"]
    return kernel_library.build(system, requests, 2, tmp_path_factory.mktemp("library"))


def first_result(model: Path, folder: Path, cache: Path, **settings: str) -> tuple[list[str], str]:
    """The kernels that a new process compiles, and what it says."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PERFRAME_")}
    environment = {**clean, "PERFRAME_CACHE": str(cache), "PERFRAME_COMPILERS": "0", **settings}
    command = [sys.executable, "-c", FIRST_RESULT, str(folder / "library.py"), str(model)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    compiled: list[str] = json.loads(done.stdout)
    return compiled, done.stderr


@pytest.mark.slow
def test_nothing_is_compiled_with_a_library(model: Path, made: Path, tmp_path: Path) -> None:
    assert first_result(model, made.parent, tmp_path) == ([], "")
    assert not list(tmp_path.rglob("*.o"))


@pytest.mark.slow
def test_kernels_of_other_sources_are_not_taken(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "__file__", str(made.parent / "library.py"))
    library._library.cache_clear()
    try:
        assert library.address(jit.own_sources(), "walk", "")
        assert library.address(jit.own_sources(), "walk", "x = 1") is None
        assert library.address("other sources", "walk", "") is None
    finally:
        library._library.cache_clear()


@pytest.mark.slow
def test_a_processor_without_a_feature_compiles(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "__file__", str(made.parent / "library.py"))
    monkeypatch.setattr(library, "has", lambda feature: feature != "bmi2")
    library._library.cache_clear()
    try:
        expected = LEVEL[0] == "x86_64"
        assert (library.address(jit.own_sources(), "walk", "") is None) is expected
    finally:
        library._library.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "other", "without its sum"])
def test_a_damaged_library_is_said_and_not_used(model: Path, made: Path, damage: str, tmp_path: Path) -> None:
    content = {
        "cut": made.read_bytes()[:1000],
        "other": b" " * made.stat().st_size,
        "without its sum": made.read_bytes(),
    }
    (tmp_path / made.name).write_bytes(content[damage])
    if damage != "without its sum":
        shutil.copy(made.with_name(f"{made.name}.sum"), tmp_path)
    compiled, said = first_result(model, tmp_path, tmp_path / "cache")
    assert len(compiled) == 3 and "each is compiled again; install perframe again" in said


@pytest.mark.slow
def test_vectors_that_are_asked_for_have_kernels_of_their_own(model: Path, made: Path, tmp_path: Path) -> None:
    """Not those of the level that the processor would have."""
    if processor.architecture() != "x86_64":
        pytest.skip("there is one level")
    compiled, _ = first_result(model, made.parent, tmp_path, PERFRAME_VECTORS="4x16")
    assert len(compiled) == 3


@pytest.mark.parametrize("name", ["digits", "painter", "talk"])
def test_the_list_has_what_our_models_need(name: str) -> None:
    """If it fails: `python tools/kernel_library.py collect FILE...`, with the models of `make models`."""
    asked = kernel_library.asked_apart(resource("assets", name, f"{name}.onnx"))
    assert asked and not asked - {*kernel_library.listed()}


def test_numpy_and_llvm_tell_the_same_of_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    if LEVEL[0] != "x86_64":
        pytest.skip("nothing is asked")
    names = {*library.LEVELS["x86_64", 16, 32], "avx512vnni"}
    told = {name: processor.has(name) for name in names}
    monkeypatch.setattr(processor, "_told_by_numpy", dict)
    assert {name: processor.has(name) for name in names} == told


def test_wheels_know_the_libraries_of_all_systems() -> None:
    """The hook runs without perframe, so it has the names again."""
    text = (resource("tools") / "wheel_hook.py").read_text()
    names = {library.file_name(system.name, system.architecture) for system in SYSTEMS.values()}
    assert set(re.findall(r'"(kernels-.+?)":', text)) == names


def test_an_unknown_feature_is_none() -> None:
    assert not processor.has("a feature of no processor")


def test_instructions_for_bytes_have_kernels() -> None:
    text = "tile, result = 'plain', 'bytes'"
    found: Any = list(kernel_library.variants(text, ["vnni"]))
    assert found == [("", text), ("vnni", "tile, result = 'vnni', 'bytes'")]
    assert list(kernel_library.variants("signed = True", ["vnni"])) == [("", "signed = True")]
