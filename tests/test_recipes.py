"""The recipes work as they stand: the files that a page shows are written into a folder, and its tests run there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import perframe as pf

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "recipes" / "a-layer-of-your-own.md"
FUSION = ROOT / "docs" / "recipes" / "a-fusion.md"
FILE = re.compile(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
METADATA = "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the page shows."""
    assert write_files(PAGE, tmp_path) == 8
    return tmp_path


def write_files(page: Path, folder: Path) -> int:
    """Write the files that a page shows, and return how many they are."""
    found = FILE.findall(page.read_text(encoding="utf-8"))
    for name, text in found:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return len(found)


def run_in(folder: Path, *arguments: str) -> str:
    """The output of a Python process in a folder."""
    paths = os.pathsep.join([str(folder), *(path for path in sys.path if path)])
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write_model(path: Path) -> None:
    """Write a model with one layer of the page."""
    node = helper.make_node("EdgeBlur", ["x"], ["y"], name="blur", domain="my.domain", radius=2)
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 3, "h", "w"]) for name in "xy"]
    graph = helper.make_graph([node], "blur", ends[:1], ends[1:])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("my.domain", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=9), path)


@pytest.mark.slow
def test_the_layers_of_the_page_pass_their_tests(folder: Path, gl_context: object) -> None:
    said = run_in(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_layers.py")
    assert "passed" in said and "skipped" not in said


@pytest.mark.quick(cases=0)
def test_every_core_may_help_with_the_kernel(folder: Path) -> None:
    """The page's kernel is compiled, splits its rows, and gives NumPy's values."""
    write_model(folder / "blur.onnx")
    np.save(folder / "x.npy", np.random.default_rng(0).random((1, 3, 200, 210), np.float32))
    code = (
        "import numpy as np, perframe as pf, mine.layers.edge_blur\n"
        "from perframe.testing.checks import trace\n"
        "x = np.load('x.npy')\n"
        "with pf.Worker(pf.load('blur.onnx')) as worker:\n"
        "    y = worker.schedule(x).peek_output().download_to_array()\n"
        "    (part,) = trace(worker)\n"
        "    (step,) = part.latest_plan.program.steps\n"
        "    assert 0 < step.grain < step.items == 600, (step.grain, step.items)\n"
        "assert all(step.agrees for step in pf.compare('blur.onnx', {'x': x}))\n"
        "print(y.shape)\n"
    )
    assert run_in(folder, "-c", code).strip() == "(1, 3, 200, 210)"


def install(folder: Path, entry_points: str) -> None:
    """Make a folder an installed package with entry points."""
    info = folder / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(entry_points)


@pytest.mark.quick(cases=0)
def test_an_installed_package_is_found_by_its_entry_point(folder: Path) -> None:
    write_model(folder / "blur.onnx")
    install(folder, "[perframe.layers]\nedge_blur = mine.layers.edge_blur\n")
    assert "my.domain::EdgeBlur" in run_in(folder, "-m", "perframe.command_line.cli", "inspect", "blur.onnx")


def test_a_layer_without_values_says_what_to_write(tmp_path: Path) -> None:
    write_model(tmp_path / "blur.onnx")
    code = (
        "import numpy as np, perframe as pf\n"
        "@pf.layers.layer(domain='my.domain')\n"
        "def EdgeBlur(x, *, radius: int = 1):\n"
        "    return x\n"
        "try:\n"
        "    pf.run('blur.onnx', {'x': np.zeros((1, 3, 2, 2), np.float32)})\n"
        "except pf.ModelError as error:\n"
        "    print(error)\n"
    )
    said = run_in(tmp_path, "-c", code)
    assert "@<layer>.compute" in said and "backends/cpu/families/EdgeBlur.py" in said


def test_a_model_of_an_unknown_domain_says_how_to_declare_its_layers(tmp_path: Path) -> None:
    write_model(tmp_path / "blur.onnx")
    with pytest.raises(pf.UnsupportedOperatorError, match=r"declare it by @pf.layers.layer\(domain='my.domain'\)"):
        pf.load(tmp_path / "blur.onnx")


MISTAKES = [
    ("cpu", "mine/backends/cpu/families/edge_blur.py", "return [step(", "return step(", "lower() returned NativeStep"),
    (
        "gpu_pixel",
        "mine/backends/gl/families/edge_blur.py",
        '{"X":',
        '{"Y":',
        "the shader edge_blur reads X, not Y",
    ),
]


@pytest.mark.parametrize(("backend", "file", "right", "wrong", "message"), MISTAKES)
def test_a_mistake_in_lower_is_named(
    backend: str, file: str, right: str, wrong: str, message: str, folder: Path, gl_context: object
) -> None:
    write_model(folder / "blur.onnx")
    text = (folder / file).read_text(encoding="utf-8")
    assert right in text
    ending = text[text.index(right) :].replace(right, wrong, 1)
    if wrong.startswith("return"):  # without the brackets of the list
        ending = ending[: ending.rindex("]")]
    (folder / file).write_text(text[: text.index(right)] + ending, encoding="utf-8")
    code = (
        "import numpy as np, perframe as pf, mine.layers.edge_blur\n"
        "try:\n"
        f"    pf.run('blur.onnx', {{'x': np.zeros((1, 3, 2, 2), np.float32)}}, backend='{backend}', strict=True)\n"
        "except pf.BackendError as error:\n"
        "    print(error)\n"
    )
    said = run_in(folder, "-c", code)
    assert "layer 'blur' (my.domain::EdgeBlur) cannot be planned" in said and message in said


@pytest.mark.quick(cases=0)
def test_the_fusion_of_the_page_passes_its_tests(tmp_path: Path) -> None:
    assert write_files(FUSION, tmp_path) == 2
    said = run_in(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_fuse_negation.py")
    assert "2 passed" in said


@pytest.mark.quick(cases=0)
def test_the_command_line_shows_refusals_of_an_installed_fusion(tmp_path: Path) -> None:
    page = FUSION.read_text(encoding="utf-8")
    (points,), (shown,) = (re.findall(rf"^```{kind}\n(.*?)^```$", page, re.M | re.S) for kind in ("toml", "console"))
    write_files(FUSION, tmp_path)
    install(tmp_path, points.replace('project.entry-points."perframe.passes"', "perframe.passes").replace('"', ""))
    nodes = [("Neg", "x", "n"), ("Mul", "n factor", "y"), ("Exp", "x", "e"), ("Mul", "e factor", "z")]
    made = [helper.make_node(op, given.split(), [out], name=out) for op, given, out in nodes]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 3]) for name in "xyz"]
    factor = onnx.numpy_helper.from_array(np.array([1, 2, 3], np.float32), "factor")
    graph = helper.make_graph(made, "small", ends[:1], ends[1:], [factor])
    imports = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=9), tmp_path / "m.onnx")
    assert shown in run_in(tmp_path, "-m", "perframe.command_line.cli", "optimize", "m.onnx", "--explain")
