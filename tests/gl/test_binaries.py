"""Linked programs on disk: a later process compiles nothing, and a broken file costs a compilation and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends.gl.compile.binaries import ProgramBinaries
from perframe.backends.gl.compile.program import ProgramCache
from perframe.backends.gl.context.devices import device_for
from perframe.backends.kernel_files import kernel_folder, read, write
from small import load, node

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
WANTED = np.exp(X) / np.exp(X).sum(1, keepdims=True)


@pytest.fixture
def folder(gl_context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of programs, empty."""
    if not ProgramBinaries(gl_context, device_for(gl_context).gl)._formats:
        pytest.skip("this driver has no format for program binaries")
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path))
    return kernel_folder()


def compilations(where: str, ctx: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many programs a process compiles that has none in memory. Its values are right."""
    device = device_for(ctx)
    monkeypatch.setattr(device, "programs", ProgramCache(ctx, device.gl))
    # the shift of a formula is a number of its uniform block, and a pixel shader's input is a sampler
    model = load([node("Softmax", "x", "s", axis=1), node("Add", "s one", "y")], {"x": [3, 4]}, constants={"one": ONE})
    with pf.Worker(model, where, ctx) as worker:
        np.testing.assert_allclose(worker.schedule(X).peek_output().download_to_array(), WANTED + 1, 1e-5)
    return device.programs.compiled


ONE = np.ones(1, np.float32)


def test_a_later_process_compiles_nothing(
    where: str, gl_context: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = compilations(where, gl_context, monkeypatch)
    assert made > 0 and len(list(folder.iterdir())) == made
    assert compilations(where, gl_context, monkeypatch) == 0
    monkeypatch.setattr(ProgramBinaries, "_driver", b"another driver")
    assert compilations(where, gl_context, monkeypatch) == made


@pytest.mark.parametrize("damage", ["cut", "refused by the driver", "of an unknown format", "empty"])
def test_a_broken_file_is_replaced(
    damage: str, where: str, gl_context: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gl_context.error  # noqa: B018  # GL forgets an error that an earlier test has provoked
    made = compilations(where, gl_context, monkeypatch)
    for path in folder.iterdir():
        whole, found = path.read_bytes(), read(path)
        assert found is not None
        if damage == "cut":
            path.write_bytes(whole[: len(whole) // 2])
        elif damage == "empty":
            path.write_bytes(b"")
        elif damage == "refused by the driver":
            write(path, bytes(len(found[0])), found[1])
        else:
            write(path, found[0], "1")
    assert compilations(where, gl_context, monkeypatch) == made
    assert compilations(where, gl_context, monkeypatch) == 0
    assert gl_context.error == "GL_NO_ERROR"


def test_a_run_keeps_one_program_at_a_time(
    where: str, gl_context: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver may compile in threads of its own: the first run does not wait for all of them."""
    device = device_for(gl_context)
    monkeypatch.setattr(device, "programs", ProgramCache(gl_context, device.gl))
    model = load([node("Softmax", "x", "s", axis=1), node("Transpose", "s", "y")], {"x": [3, 4]})
    with pf.Worker(model, where, gl_context) as worker:
        for count in (1, 2):
            worker.schedule(X)
            assert len(list(folder.iterdir())) == count


def test_contexts_without_binaries_compile(gl_context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path))
    monkeypatch.setattr(ProgramBinaries, "_formats", ())
    for _ in range(2):
        assert compilations("gpu_pixel", gl_context, monkeypatch) > 0
    assert not kernel_folder().exists()


def test_all_programs_of_a_plan_begin_before_the_first_is_waited_for(
    where: str, gl_context: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that compiles in threads has all of them to work on."""
    gl, asked = device_for(gl_context).gl, list[str]()
    link, status = gl.glLinkProgram, gl.glGetProgramiv
    monkeypatch.setattr(gl, "glLinkProgram", lambda *given: (asked.append("link"), link(*given)))
    monkeypatch.setattr(gl, "glGetProgramiv", lambda *given: (asked.append("wait"), status(*given)))
    made = compilations(where, gl_context, monkeypatch)
    assert made > 2 and asked[: made + 1] == ["link"] * made + ["wait"]
