"""Reductions on GL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.gl.steps import Binding, ints, kind_of
from perframe.layers.formula import translate
from perframe.layers.reduce import Reduction

_JOIN = {"sum": "((a) + (b))", "product": "((a) * (b))", "largest": "maximum(a, b)", "smallest": "minimum(a, b)"}
_START = {
    ("sum", "float"): "0.0",
    ("sum", "int"): "0",
    ("product", "float"): "1.0",
    ("product", "int"): "1",
    ("largest", "float"): "(-1.0 / 0.0)",
    ("largest", "int"): "(-2147483647 - 1)",
    ("smallest", "float"): "(1.0 / 0.0)",
    ("smallest", "int"): "2147483647",
}


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """Integers have no quotients and no logarithms here."""
    form: Reduction = layer.form(inputs, outputs)
    kind = kind_of(outputs[0].dtype)
    if kind == "int" and form.finish.__name__ != "keep":
        return f"{layer.op} of {outputs[0].dtype} has no GL kernel"
    return ""


def lower(
    layer: LayerLike,
    form: Reduction,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
    constant: Callable[[Any], Operand],
) -> list[Binding]:
    """One kernel text for all of them; the formulas and the way to combine are its variants."""
    x = inputs[0]
    assert x is not None
    kind = kind_of(x.dtype)
    prepare, _ = translate(form.prepare, [kind], "glsl")
    finish, _ = translate(form.finish, [kind, kind], "glsl")
    functions = f"{prepare}\n{finish}\n#define formula {form.prepare.__name__}\n#define epilogue {form.finish.__name__}"
    defines = {"JOIN(a, b)": _JOIN[form.combine], "START": _START[form.combine, kind]}
    params = {
        "kept": ints(form.kept),
        "kept_strides": ints(form.kept_strides),
        "reduced": ints(form.reduced),
        "reduced_strides": ints(form.reduced_strides),
        "kept_rank": len(form.kept),
        "reduced_rank": len(form.reduced),
        "count": form.count,
    }
    return [Binding(layer.name, "reduce", {"X": x}, outputs[0], params, defines, functions)]
