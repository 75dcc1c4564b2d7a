"""Declarations: facts that backends read from them in place of operators' names, and layers from outside."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import perframe as pf
from perframe.backends.gl.compile.program import load_kernel
from perframe.ir import declaration as base
from perframe.ir.declaration import Declaration, attributes_of, declaration, registry
from perframe.ir.epilogue import Stage
from perframe.ir.family_files import family_at, module_of, own_kernel, own_shader
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType
from perframe.testing import Case, check


def window(x: PartialTensor, *, kernel_shape: tuple[int, ...], strides: int | None = None) -> PartialTensor:
    return x


@attributes_of(window)
def pool(x: PartialTensor, y: PartialTensor | None = None, *, p: int = 2, **shared: Any) -> PartialTensor:
    return window(x, **shared)


def test_attributes_of_another_function_come_first() -> None:
    entry = Declaration("Pool", "pool", pool)
    assert (entry.inputs, entry.required, entry.variadic) == (("x", "y"), 1, False)
    assert list(entry.attributes) == ["kernel_shape", "strides", "p"]
    assert entry.with_defaults({"kernel_shape": (3,)}) == {"kernel_shape": (3,), "strides": None, "p": 2}


RELU = Stage("Relu", (), (None,))


@pytest.mark.parametrize(
    ("stage", "limits"),
    [
        (RELU, (0, math.inf)),
        (Stage("Clip", (), (None,)), (-math.inf, math.inf)),
        (Stage("Clip", (), (None, -1.0)), (-1, math.inf)),
        (Stage("Clip", (), (None, 0.0, 6.0)), (0, 6)),
        (Stage("Clip", (), (2.0, None)), None),  # a number, clipped to the running value
        (Stage("Clip", (), (None, (RELU,))), None),
        (Stage("Add", (), (None, 1.0)), None),
    ],
)
def test_a_clip_says_its_limits(stage: Stage, limits: tuple[float, float] | None) -> None:
    assert stage.limits == limits


def test_a_branch_says_which_body_runs() -> None:
    body_for = declaration("If").body_for
    assert body_for is not None and declaration("Loop").body_for is None
    assert [body_for(np.array(value)) for value in (True, [False])] == ["then_branch", "else_branch"]


def test_some_layers_read_nothing_but_shapes() -> None:
    assert [declaration(op).reads_values for op in ("Shape", "Size", "Neg")] == [False, False, True]


@pytest.fixture
def forget() -> Iterator[None]:
    """Drop the layers that a test declares."""
    before = set(registry())
    yield
    for name in set(registry()) - before:
        del base.REGISTRY[name]


@pytest.mark.usefixtures("forget")
def test_a_declaration_that_is_read_again_replaces_the_first() -> None:
    for text in ("first", "second"):

        @pf.layers.layer(domain="my.domain")
        def Again(x: PartialTensor, *, text: str = text) -> PartialTensor:
            return x

    assert declaration("my.domain::Again").attributes == {"text": "second"}


@pytest.mark.usefixtures("forget")
def test_one_name_is_declared_in_one_file_only() -> None:
    with pytest.raises(pf.ModelError, match=r"Relu is declared twice: in perframe\.layers\.activation\.Relu and in"):

        @pf.layers.elementwise((-1, 1))
        def Relu(x: Any) -> Any:
            return x

    with pytest.raises(pf.ModelError, match=r"there is no layer .my\.domain::Relu"):
        declaration("my.domain::Relu")


@pytest.mark.usefixtures("forget")
def test_a_rule_that_returns_its_input_does_not_mean_its_values() -> None:
    @pf.layers.layer(domain="my.domain")
    def Twice(x: PartialTensor) -> PartialTensor:
        return x

    @Twice.compute
    def _twice(inputs: Any, outputs: Any) -> Any:
        return [inputs[0] * 2]

    node = helper.make_node("Twice", ["x"], ["y"], domain="my.domain")
    end = helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [2])
    constant = numpy_helper.from_array(np.array([3, 4]), "x")
    graph = helper.make_graph([node], "constants", [], [end], [constant])
    model = pf.load(helper.make_model(graph, ir_version=9))
    assert pf.run(model, {})["y"].tolist() == [6, 8]


def test_a_family_is_named_by_its_file_and_its_package() -> None:
    assert family_at("perframe.layers.pool", "MaxPool") == "pool"
    assert family_at("mine.layers.blur", "Blur") == family_at("mine.blur", "Blur") == "mine.blur"
    assert family_at("mine.inner.layers.blur", "Blur") == "mine.inner.blur"
    assert family_at("__main__", "Blur") == "__main__.Blur"


def test_what_a_package_on_the_way_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lacking").mkdir()
    (tmp_path / "lacking" / "__init__.py").write_text("import a_package_that_is_not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_installed"):
        module_of("lacking.blur", "backends.cpu.families")
    assert module_of("missing.blur", "backends.cpu.families") is None


def test_a_kernel_that_no_one_has_is_looked_for_in_the_layers_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["shaders/own.glsl", "shaders/broken.glsl", "backends/cpu/kernels/own.py"]
    for name in files:
        (tmp_path / "lending" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lending" / name).write_text("//@ parm int width\n" if "broken" in name else "")
    monkeypatch.syspath_prepend(tmp_path)
    for named in (own_shader, own_kernel):
        assert [named("lending.own", name) for name in ("own", "pool", "neither")] == [
            "lending:own",
            "pool",
            "lending:neither",
        ]
        assert named("pool", "neither") == "neither"
    with pytest.raises(FileNotFoundError, match=r"neither\.glsl is not shipped with the package lending"):
        load_kernel("lending:neither")
    with pytest.raises(pf.BackendError, match=r"broken\.glsl: cannot read '//@ parm int width'"):
        load_kernel("lending:broken")


@pytest.mark.usefixtures("forget")
def test_an_error_in_a_rule_names_its_line() -> None:
    @pf.layers.layer(domain="my.domain")
    def Half(x: PartialTensor) -> PartialTensor:
        return x.with_shape([x.shape[0] // 2])  # type: ignore[index,operator]

    fault = r"the shape rule of my.domain::Half has a fault: .*not subscriptable \(test_declarations\.py, line \d+\)"
    with pytest.raises(pf.InferenceError, match=fault):
        declaration("my.domain::Half").outputs_for([PartialTensor(DataType.FLOAT32)], {})
    with pytest.raises(pf.InferenceError, match=r"malformed inputs or attributes {}: list index out of range"):
        declaration("my.domain::Half").outputs_for([PartialTensor(DataType.FLOAT32, [])], {})


@pytest.mark.usefixtures("forget")
def test_a_computed_output_that_the_rule_does_not_expect_is_an_error() -> None:
    @pf.layers.layer(domain="my.domain")
    def Longer(x: PartialTensor) -> PartialTensor:
        return x

    @Longer.compute
    def _longer(inputs: Any, outputs: Any) -> Any:
        return [np.repeat(inputs[0], 2)]

    case = Case("row", "Longer", [np.zeros(3, np.float32)], domain="my.domain")
    with pytest.raises(pf.InferenceError, match=r"the shape rule says \(3,\), and the computed output is \(6,\)"):
        check(case, "cpu")


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (3, 3)])
def test_one_array_is_no_list_of_outputs(shape: tuple[int, ...]) -> None:
    @pf.layers.layer(domain="my.domain")
    def Bare(x: PartialTensor) -> PartialTensor:
        return x

    @Bare.compute
    def _bare(inputs: Any, outputs: Any) -> Any:
        return inputs[0] * 2

    case = Case("row", "Bare", [np.zeros(shape, np.float32)], domain="my.domain")
    with pytest.raises(pf.InferenceError, match=r"compute of .*Bare returns a list of arrays, one per output, not"):
        check(case, "cpu")


def test_a_result_is_a_dtype_or_a_name() -> None:
    with pytest.raises(pf.ModelError, match="result='floaty' is neither a DataType nor an input"):

        @pf.layers.elementwise((-9, 9), result="floaty", domain="test.result")
        def Odd(x):  # type: ignore[no-untyped-def]
            return x


def test_no_input_and_no_attribute_hides_a_member_of_layers() -> None:
    """`layer.x` and `layer.axis` are read by the names of the declaration."""
    members = {*dir(pf.Layer)}
    for entry in registry().values():
        names = [*entry.inputs, *entry.attributes]
        assert len(set(names)) == len(names) and not members.intersection(names), entry.name


def test_a_misspelled_layer_is_corrected() -> None:
    with pytest.raises(pf.ModelError, match=r"there is no layer 'SoftMax': did you mean Softmax"):
        pf.functional.apply("SoftMax", np.zeros(3, np.float32))
