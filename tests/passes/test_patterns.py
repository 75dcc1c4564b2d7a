"""Patterns and rules: what they match, and when they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import perframe as pf
from perframe.backends import evaluator
from perframe.ir import Layer, Model, Value
from perframe.ir.report import noting
from perframe.passes.patterns import AnyValue, Constant, Op, Rules
from small import load, node

ONES = {"w": np.ones(2, np.float32)}


def model_of(*nodes: str, outputs: str = "y") -> pf.Model:
    made = [node(op, inputs, output) for op, inputs, output in (one.split("|") for one in nodes)]
    return load(made, {"x": [2], "z": [2]}, outputs, constants=ONES, optimize=False)


def matched(pattern: Op, model: pf.Model) -> list[dict[str, str]]:
    return [
        {name: one.name for name, one in found.items()} for layer in model.layers for found in pattern.match(layer, {})
    ]


def test_inputs_have_names_and_a_name_means_one_value() -> None:
    twice = Op("Mul", AnyValue("x"), Op("Sigmoid", AnyValue("x"), name="gate", shared=True))
    assert matched(twice, model_of("Sigmoid|x|s", "Mul|x s|y")) == [{"x": "x", "gate": "s"}]
    assert matched(twice, model_of("Sigmoid|z|s", "Mul|x s|y")) == []
    assert matched(twice, model_of("Sigmoid|x|s", "Mul|s x|y")) == []
    anyhow = Op("Mul", AnyValue("x"), Op("Sigmoid", AnyValue("x")), in_any_order=True)
    assert matched(anyhow, model_of("Sigmoid|x|s", "Mul|s x|y")) == [{"x": "x"}]


@pytest.mark.parametrize(("operands", "wanted"), [("x w", 1), ("w x", 1), ("x z", 0)])
def test_a_constant_is_a_constant(operands: str, wanted: int) -> None:
    pattern = Op("Add", AnyValue("x"), Constant("w"), in_any_order=True)
    assert len(matched(pattern, model_of(f"Add|{operands}|y"))) == wanted


def test_families_and_operators() -> None:
    model = model_of("Neg|x|a", "Softmax|a|y")
    assert len(matched(Op(family="elementwise"), model)) == 1
    assert len(matched(Op("Softmax", family="elementwise"), model)) == 2
    assert len(matched(Op("Softmax", Op(family="norm")), model)) == 0


def neg_of_neg() -> Rules:
    run = Rules()

    @run.rule(Op("Neg", Op("Neg", AnyValue("x"), name="inner")))
    def _cancel(model: Model, root: Layer, inner: Layer, x: Value) -> int | str:
        if root.output.is_output:
            return "it makes an output"
        model.replace_uses(root.output, x)
        model.remove(root, inner)
        return 2

    return run


def test_a_rule_rewrites() -> None:
    model = model_of("Neg|x|a", "Neg|a|b", "Exp|b|y")
    assert neg_of_neg()(model, evaluator()) == 2
    model.verify()
    assert [layer.op for layer in model.layers] == ["Exp"] and model.layers[0].x is model.inputs[0]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (model_of("Neg|x|a", "Neg|a|y"), "it makes an output"),
        (model_of("Neg|x|a", "Neg|a|b", "Add|a b|y"), "other layers read the result of 'a' too"),
        (model_of("Neg|x|a", "Neg|a|b", "Exp|b|y", outputs="y a"), "the model outputs the result of 'a' too"),
    ],
    ids=["a check", "another reader", "an output"],
)
def test_a_rule_refuses_with_a_reason(model: pf.Model, reason: str) -> None:
    before = model.layers
    with noting() as refusals:
        assert neg_of_neg()(model, evaluator()) == 0
    assert [one.reason for one in refusals] == [reason] and model.layers == before


def test_layers_with_epilogues_match_only_if_asked() -> None:
    model = model_of("MatMul|x w|a", "Exp|a|y")
    pf.passes.load_pass("fuse_activation")(model, evaluator())
    assert model.layers[0].epilogue
    assert len(matched(Op("MatMul"), model)) == 0 and len(matched(Op("MatMul", epilogue=True), model)) == 1


@pytest.mark.parametrize("pattern", [Op("Mull"), Op("Mul", Op("Neg Nog")), Op(family="convolution")])
def test_a_pattern_of_an_unknown_operator_is_an_error(pattern: Op) -> None:
    run = Rules()
    run.rule(pattern)(lambda model, root: 0)
    for _ in range(2):
        with pytest.raises(pf.ModelError, match="there is no such operator or family"):
            run(model_of("Neg|x|y"), evaluator())


def test_a_rule_takes_the_names_of_its_pattern() -> None:
    with pytest.raises(TypeError, match=r"'source'; its pattern gives the model and \['root', 'x'\]"):
        Rules().rule(Op("Neg", AnyValue("x")))(lambda model, root, source: 0)
    Rules().rule(Op("Neg", AnyValue("x")))(lambda model, root, **found: 0)


def test_a_rule_that_returns_nothing_is_an_error() -> None:
    run = Rules()
    run.rule(Op("Neg"))(lambda model, root: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="returned None"):
        run(model_of("Neg|x|y"), evaluator())
