"""`backend="auto"`: which backend it is, and that what runs there is the same."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import perframe as pf
from passes.graphs import graph, node, random
from perframe.backends import backend_type, choosing
from perframe.command_line.cli import app
from perframe.command_line.options import check_backends
from perframe.inspection.bisecting import culprit


def relu() -> Any:
    return graph([node("Relu", "x", "y")], {"x": [2, 3]})


def device(name: str, version: int, software: bool = False) -> Any:
    return SimpleNamespace(
        name=name, is_software=software, has_compute=version >= 430, ctx=SimpleNamespace(version_code=version)
    )


@pytest.mark.parametrize(
    ("found", "expected", "reason"),
    [
        (device("a GPU", 460), "gpu_compute", "a GPU has compute shaders"),
        (device("a GPU", 430), "gpu_compute", "compute shaders"),
        (device("an old GPU", 330), "gpu_pixel", "an old GPU has OpenGL 3.3"),
        (device("a Mac", 410), "gpu_pixel", "OpenGL 4.1"),
        (device("llvmpipe", 450, software=True), "cpu", "emulated here, by llvmpipe"),
    ],
)
def test_the_driver_decides(found: Any, expected: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from perframe.backends.gl.context import devices as context

    monkeypatch.setattr(context, "device_for", lambda ctx: found)
    chosen = choosing.choose_backend(object())
    assert chosen.backend == expected
    assert reason in chosen.reason


def test_without_opengl_it_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from perframe.backends.gl.context import devices as context

    def fail(ctx: Any) -> Any:
        raise pf.BackendError("no EGL")

    monkeypatch.setattr(context, "device_for", fail)
    choosing._headless.cache_clear()
    try:
        assert choosing.choose_backend() == (pf.BackendType.CPU, "there is no OpenGL here: no EGL")
        with pytest.raises(pf.BackendError, match="no EGL"):  # a context of the caller's that is broken is no choice
            choosing.choose_backend(object())
    finally:
        choosing._headless.cache_clear()


def test_everything_takes_auto(gl_context: Any) -> None:
    x = random(2, 3)
    with pf.Worker(relu(), backend="auto", ctx=gl_context) as worker:
        assert worker.backend_type is choosing.choose_backend(gl_context).backend
        np.testing.assert_array_equal(worker.schedule(x).peek_output().numpy(), np.maximum(x, 0))
    np.testing.assert_array_equal(pf.run(relu(), {"x": x}, backend="auto")["y"], np.maximum(x, 0))
    assert pf.Worker(relu()).backend_type is pf.BackendType.CPU
    with pytest.raises(pf.InputError, match="one of cpu, gpu_compute, gpu_pixel, auto"):
        backend_type("gpu")  # type: ignore[arg-type]


def test_tools_resolve_auto_before_they_use_its_name() -> None:
    x, loaded = random(2, 3), pf.load(relu(), optimize=False)
    assert all(one.agrees for one in pf.compare(loaded, {"x": x}, backend="auto"))
    wanted = {"y": np.maximum(x, 0) + 1}
    assert culprit(lambda **options: pf.load(relu(), **options), {"x": x}, wanted, "auto") is None
    chosen = choosing.choose_backend().backend
    if chosen is pf.BackendType.CPU:
        with pytest.raises(pf.BackendError, match="nothing to tune on the CPU"):
            pf.tune(loaded, {"x": x}, backend="auto")


def test_a_converter_chooses_for_its_own_context(gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("perframe.backends.choose_backend", lambda ctx: asked.append(ctx) or (pf.BackendType.CPU, ""))
    pf.TextureConverter(gl_context, "auto").release()
    assert asked == [gl_context]


def test_the_command_line_says_what_auto_is(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "relu.onnx"
    path.write_bytes(relu().SerializeToString())
    done = CliRunner().invoke(app, ["run", str(path), "--json"])
    assert done.exit_code == 0, done.output
    chosen = choosing.choose_backend().backend
    assert json.loads(done.stdout)["backend"] == chosen
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert check_backends(["auto"]) == [chosen]
    assert f"backend: {chosen}, because" in capsys.readouterr().err


def test_names_that_moved_say_where_they_are() -> None:
    for name, place in (("ProgressBar", "host"), ("ProfileOverlay", "profiling"), ("layer", "layers")):
        assert name not in dir(pf)
        with pytest.warns(DeprecationWarning, match=rf"perframe\.{name} is perframe\.{place}\.{name} now"):
            assert getattr(pf, name) is getattr(getattr(pf, place), name)
    with pytest.warns(DeprecationWarning, match="ReadbackPendingError"):
        assert pf.ReadbackPending is pf.ReadbackPendingError


def test_the_package_is_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "perframe", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"perframe {pf.__version__}"
