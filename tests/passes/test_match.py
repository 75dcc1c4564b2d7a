"""The graph that passes change: producers and users of values, inferred shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends import evaluator
from perframe.ir import Layer, Value
from perframe.ir.declaration import Declaration
from perframe.ir.inference import Inference
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.passes import load_pass
from small import load, node, specs


def chain(count: int, op: str) -> pf.Model:
    nodes = [node(op, f"{'x' if not i else f'v{i - 1}'}", f"v{i}") for i in range(count)]
    return load([*nodes, node("Softmax", f"v{count - 1}", "y")], {"x": ["n", 4]}, optimize=False)


def test_absorbing_keeps_producers_and_users() -> None:
    constants = {name: np.ones((4, 4), np.float32) for name in ("w", "u")}
    nodes = [node("MatMul", "x w", "a"), node("Add", "a u", "b"), node("Mul", "b u", "c"), node("Softmax", "c", "y")]
    model = load(nodes, {"x": [4, 4]}, constants=constants, optimize=False)
    product, sum_, times, softmax = model.layers
    new = model.add_constant("w", np.zeros((4, 4), np.float32))
    product.inputs = [model.inputs[0], new, sum_.input(1)]
    model.absorb(product, sum_)
    model.verify()
    assert new.name == "w_1" and model.constants.keys() == {"w_1", "u"}  # no layer reads the first weights any more
    assert model.layers == (product, times, softmax) and product.output_names == ["b"]
    assert product.output.producer is product and product.output.only_user is times
    assert model.value("u").users.keys() == {product, times} and not sum_.is_linked


def test_many_layers_are_removed() -> None:
    model = chain(50, "Identity")
    assert load_pass("remove_noops")(model, evaluator()) == 50
    assert [layer.op for layer in model.layers] == ["Softmax"] and model.layers[0].input_names == ["x"]


def test_names_stay_unique() -> None:
    model = chain(2, "Relu")
    first = model.layers[0]
    added = Layer("Neg", "added", [first.output], [first.output.name])
    model.insert(added, after=first)
    model.replace_uses(first.output, added.output)
    added.inputs = [first.output]
    model.verify()
    assert added.output.name == "v0_1" and model.value("v0_1") is added.output


def test_many_equal_names_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: each name may look up a few others, and not all that were made before it."""
    model, asked, owns = chain(1, "Relu"), [], pf.Model._owns
    monkeypatch.setattr(pf.Model, "_owns", lambda model, value: asked.append(value) or owns(model, value))
    read = [model.inputs[0]]
    for index in range(200):
        constant = model.add_constant("c", np.ones(4, np.float32))
        layer = Layer("Add", f"add {index}", [read[-1], constant], ["sum"])
        model.insert(layer)
        read.append(layer.output)
    assert len({value.name for value in model.constant_values}) == 200 and len(asked) < 10 * 200


def test_verify_finds_wrong_links() -> None:
    model = chain(2, "Relu")
    model.layers[1].set_input(0, Value("nowhere"))
    with pytest.raises(pf.ModelError, match="reads 'nowhere', which no earlier layer makes"):
        model.verify()
    model = chain(2, "Relu")
    model.layers[0].output.users.clear()
    with pytest.raises(pf.ModelError, match="'v0' does not know that layer 'v1' reads it"):
        model.verify()
    model = chain(2, "Relu")
    model.layers = model.layers[::-1]
    with pytest.raises(pf.ModelError, match="which no earlier layer makes"):
        model.verify()


def test_a_deep_model_tells_its_shapes() -> None:
    """A copy infers its values when they are asked for: more of them than Python's stack is deep."""
    assert str(chain(3000, "Relu").copy().layers[-1].output.spec.shape) == "(n, 4)"


def test_a_circle_is_an_error() -> None:
    first = Layer("Relu", "first", [Value("b")], ["a"])
    second = Layer("Neg", "second", [first.output], ["b"])
    first.inputs = [second.output]
    with pytest.raises(pf.ModelError, match="reads its own result"):
        _ = second.output.spec
    first.inputs = [first.output]
    with pytest.raises(pf.ModelError, match=r"'first' \(Relu\) reads its own result"):
        _ = first.output.spec


def test_a_layer_gives_its_inputs_and_attributes_by_name() -> None:
    model = load([node("Softmax", "x", "a", axis=0), node("Softmax", "a", "y")], {"x": [2, 3]}, optimize=False)
    first, second = model.layers
    assert first.x is model.inputs[0] and (first.axis, second.axis) == (0, -1)
    with pytest.raises(AttributeError, match="a layer Softmax has no input and no attribute 'aksis'"):
        _ = first.aksis


def test_a_copy_shares_nothing_but_arrays() -> None:
    model = load([node("Add", "x w", "y")], {"x": [2]}, constants={"w": np.ones(2, np.float32)}, optimize=False)
    copy = model.copy()
    copy.layers[0].op = "Mul"
    copy.inputs[0].declared = None
    assert model.layers[0].op == "Add" and model.inputs[0].declared is not None
    assert copy.constants["w"] is model.constants["w"] and copy.value("w") is not model.value("w")


def test_a_copy_has_the_shapes_of_its_own_inputs() -> None:
    model = chain(3, "Relu")
    model.infer()
    copy = model.copy()
    given = copy.inputs[0]
    given.declared = given.spec.with_shape(DynamicTensorShape([7, 4]))
    assert (str(copy.outputs[0].producer.output.spec.shape), str(specs(model)["v2"].shape)) == ("(7, 4)", "(n, 4)")


def test_the_same_is_not_inferred_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    infer = Declaration.outputs_for

    def count(self: Declaration, *given: Any) -> Any:
        calls.append(self.name)
        return infer(self, *given)

    model = chain(40, "Relu")
    monkeypatch.setattr(Declaration, "outputs_for", count)
    assert calls.count("Relu") == 0 and str(specs(model)["v39"].shape) == "(n, 4)"
    model.infer()
    assert calls.count("Relu") == 0, "the importer has inferred it"
    model.layers[3].op = "Neg"
    model.infer()
    assert calls.count("Neg") == 1 and calls.count("Relu") == 0
    model.inference = Inference()
    model.infer()
    assert calls.count("Neg") == 2 and calls.count("Relu") == 1


def test_layers_of_another_model_are_copied() -> None:
    model = load([node("Add", "x w", "a"), node("Relu", "a", "y")], {"x": [2]}, constants={"w": np.ones(2, np.float32)})
    before = [(layer, layer.inputs, layer.outputs) for layer in model.layers]
    longer = pf.Model(model.inputs, [Value("z", pf.DataType.FLOAT32)], [*model.layers, Layer("Neg", "n", ["y"], ["z"])])
    longer.verify()
    model.verify()
    assert before == [(layer, layer.inputs, layer.outputs) for layer in model.layers]
    x = np.float32([1, -3])
    np.testing.assert_array_equal(pf.run(longer, x)["z"], -pf.run(model, x)["y"])
