"""PyTorch's files become ONNX files that compute what PyTorch computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from perframe.conversion.converting import Conversion
from perframe.errors import ConversionError, InputError

Convert = Callable[..., Conversion]
IMAGE = ["image:1x3x8x8"]
KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("fixed.pt2", "exported_program", {}),
    ("script.pt", "torchscript", {"inputs": {"image": (1, 3, 8, 8)}}),
    ("module.pt", "module", {"inputs": IMAGE, "trust": True, "opset": 17}),
    ("weights.pth", "checkpoint", {"inputs": IMAGE, "builder": "networks:make"}),
    ("old.pt", "checkpoint", {"builder": "networks:make_with_inputs", "opset": 17}),  # tracing is faster
    ("training.pth.tar", "checkpoint", {"builder": "networks:make_with_inputs", "opset": 17}),
    ("weights.safetensors", "safetensors", {"inputs": IMAGE, "builder": "networks:make", "opset": 15}),
]


@pytest.mark.parametrize(("name", "kind", "options"), KINDS, ids=[name for name, _, _ in KINDS])
def test_conversions_agree(by_torch: Convert, name: str, kind: str, options: dict[str, Any]) -> None:
    made = by_torch(name, **options)
    assert made.kind == kind and made.opset == options.get("opset", 18) and [*made.inputs] == ["image"]
    assert made.agrees and made.errors[0].shape == (1, 5) and 0 < made.errors[0].relative < 1e-5
    assert sorted(path.name for path in made.target.parent.iterdir()) == ["made.onnx"]


@pytest.fixture(scope="session")
def converted(torch_python: Path, torch_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TorchScript file, converted with an open dim."""
    target = tmp_path_factory.mktemp("converted") / "made.onnx"
    pf.convert(torch_files / "script.pt", target, inputs=IMAGE, dynamic=["image:0=batch"], python=torch_python)
    return target


def test_all_backends_run_what_was_converted(converted: Path, backend: str, backend_context: Any) -> None:
    image = np.random.default_rng(0).standard_normal((4, 3, 8, 8)).astype(np.float32)
    found = pf.run(converted, {"image": image}, backend, ctx=backend_context)
    wanted = pf.run(pf.load(converted, optimize=False), {"image": image})
    assert wanted["output"].shape == (4, 5)
    np.testing.assert_allclose(found["output"], wanted["output"], atol=1e-4)


def dims(path: Path) -> list[int | str]:
    shape = onnx.load(path).graph.input[0].type.tensor_type.shape
    return [dim.dim_param or dim.dim_value for dim in shape.dim]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("script.pt", {}),
        ("weights.pth", {"builder": "networks:make"}),
    ],
)
def test_open_dims_have_names_and_stay_open(by_torch: Convert, name: str, options: dict[str, Any]) -> None:
    made = by_torch(name, inputs=IMAGE, dynamic={"image": {0: "batch", 2: "height"}}, **options)
    assert dims(made.target) == ["batch", 3, "height", 8]
    assert str(pf.load(made.target).outputs[0].shape) == "(batch, 5)"
    assert made.agrees and made.errors[0].shape == (3, 5)  # another batch than that of the export
    assert made.opset == options.get("opset", 18)


def test_open_dims_of_programs_are_in_the_file(by_torch: Convert) -> None:
    made = by_torch("open.pt2", dynamic=["image:0=pictures"])
    assert dims(made.target) == ["pictures", 3, 8, 8] and made.agrees


def test_several_inputs_and_outputs(by_torch: Convert) -> None:
    made = by_torch("words.pt", inputs=["scale:scalar", "ids:2x3:int64"])
    assert [*made.inputs] == ["ids", "scale"] and [*made.outputs] == ["output_0", "output_1"]
    assert made.agrees and [error.shape for error in made.errors] == [(2, 4), (2, 3, 4)]


def test_files_of_perframe(by_torch: Convert) -> None:
    made = by_torch("script.pt", "made.perframe", inputs=IMAGE)
    assert made.agrees and made.opset is None
    assert pf.load(made.target).output_names == [*made.outputs]


def test_a_pickled_module_is_not_loaded_without_trust(by_torch: Convert, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"A pickle can run any code.*imports networks\.Net.*--trust"):
        by_torch("module.pt", inputs=IMAGE)
    assert not [*tmp_path.iterdir()]


def test_weights_that_would_run_code_are_not_loaded(by_torch: Convert, torch_files: Path) -> None:
    with pytest.raises(ConversionError, match=r"weights_only=True.*imports exec.*--trust"):
        by_torch("bomb.pth", builder="networks:make_with_inputs")
    assert not (torch_files / "exploded").exists()
    with pytest.raises(ConversionError, match="do not fit"):  # it is loaded now
        by_torch("bomb.pth", builder="networks:make_with_inputs", trust=True)
    assert (torch_files / "exploded").exists()


def test_pickles_in_a_program_run_no_code(by_torch: Convert, torch_files: Path) -> None:
    """PyTorch itself would load them: with trust, the code in the file runs."""
    with pytest.raises(ConversionError, match=r"imports \w+\.exec, and a pickle can run any code.*--trust"):
        by_torch("bomb.pt2")
    assert not (torch_files / "exploded_program").exists()
    with pytest.raises(ConversionError):  # the inputs are not those of the network
        by_torch("bomb.pt2", trust=True)
    assert (torch_files / "exploded_program").exists()


def test_weights_must_fit_the_network(by_torch: Convert) -> None:
    with pytest.raises(ConversionError) as error:
        by_torch("weights.pth", inputs=IMAGE, builder="networks:make_wrong")
    for line in ("missing in the file: extra.weight", "linear.bias: (5,) in the file, (6,) in the network"):
        assert line in str(error.value)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("weights.pth", {}, r"--builder module:function\nIt holds 4 tensors with 137 numbers"),
        ("weights.safetensors", {}, r"conv\.weight: F32 4×3×3×3"),
        ("weights.pth", {"builder": "nowhere:make"}, "'nowhere' cannot be imported from"),
        ("weights.pth", {"builder": "networks:make"}, "--input image:1x3x224x224"),
        ("script.pt", {}, "parameters of forward are image"),
        ("script.pt", {"inputs": IMAGE, "dynamic": ["picture:0=batch"]}, "no input 'picture'; there are image"),
        ("script.pt", {"inputs": ["image:1x4x8x8"]}, "RuntimeError"),
    ],
)
def test_wrong_options(by_torch: Convert, name: str, options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=said):
        by_torch(name, **options)
    assert not [*tmp_path.iterdir()]


def test_a_builder_is_for_weights(by_torch: Convert) -> None:
    with pytest.raises(InputError, match="--builder is for files that have weights"):
        by_torch("fixed.pt2", builder="networks:make")
