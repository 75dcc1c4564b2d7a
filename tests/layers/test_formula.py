"""The formula compiler: random formulas agree with NumPy on every backend, and errors name the line."""

from __future__ import annotations

import importlib.util
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import perframe as pf
from perframe.ir import Value
from perframe.ir import declaration as base
from perframe.ir.broadcasting import elementwise
from perframe.ir.formula import translate

HEADER = "from perframe.layers.activation import Softplus\nfrom perframe.ir.vocabulary import *\n\n"
BOUNDED = settings(
    deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
_count = itertools.count()


def formula(folder: Path, source: str) -> Callable[..., Any]:
    """Import the function from a file with this text, since formulas are read from their files."""
    number = next(_count)
    path = folder / f"formulas_{number}.py"
    path.write_text(HEADER + source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Callable[..., Any] = module.Drawn
    return made


@pytest.fixture
def run(tmp_path: Path, backend: str, backend_context: Any) -> Iterator[Callable[..., Any]]:
    """Run a formula's text as a layer on the backend. Return its result and NumPy's."""

    def run(source: str, *inputs: Any, dtypes: str = "float") -> tuple[Any, Any]:
        function = formula(tmp_path, source)
        elementwise((-1, 1), dtypes=dtypes)(function)
        try:
            values = [
                Value(f"x{i}", pf.DataType.of(x.dtype), pf.DynamicTensorShape(x.shape)) for i, x in enumerate(inputs)
            ]
            layer = pf.Layer("Drawn", "drawn", [value.name for value in values], ["y"])
            model = pf.Model(values, [Value("y", values[0].dtype, None)], [layer], {})
            fed = {value.name: x for value, x in zip(values, inputs, strict=True)}
            made = pf.run(model, fed, backend, strict=backend != "cpu", ctx=backend_context)["y"]
        finally:
            base.REGISTRY.pop("Drawn", None)
        with np.errstate(all="ignore"):
            return made, function(*inputs)

    return run


def expressions(leaves: st.SearchStrategy[str], grow: Callable[[Any], Any]) -> st.SearchStrategy[str]:
    return st.recursive(leaves, grow, max_leaves=8)


def of(template: str, *parts: Any) -> Any:
    return st.tuples(*parts).map(lambda drawn: template.format(*drawn))


NUMBERS = st.sampled_from(["0.5", "2", "-1.25", "3", "0"])
CONDITIONS = of(
    "{0} {1} {2}",
    st.sampled_from("xy"),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.sampled_from(["x", "y", "0.5"]),
)
FLOATS = expressions(
    st.one_of(st.sampled_from("xyk"), NUMBERS),
    lambda e: st.one_of(
        of("({} {} {})", e, st.sampled_from(["+", "-", "*"]), e),
        of("(-{})", st.sampled_from("xyk")),
        of("({} / (abs({}) + 1))", e, e),
        of("{}({}, {})", st.sampled_from(["minimum", "maximum"]), e, st.sampled_from("xyk")),
        of("clamp({} + x, -1, {})", e, st.sampled_from(["2", "0.5"])),
        of("{}({} + y)", st.sampled_from(["sin", "cos", "tanh", "atan", "erf", "abs", "Softplus"]), e),
        of("exp(clamp({} - x, -3, 3))", e),
        of("{}(abs({} * y) + 0.5)", st.sampled_from(["sqrt", "log", "log1p"]), e),
        of("power(abs({} + x) + 0.5, 1.5)", e),
        of("where({}, {}, {} + x)", CONDITIONS, e, e),
        of("where(({}) & ~({}), {} + x, y)", CONDITIONS, CONDITIONS, e),
        of("where(is_nan({} + x) | ({}), {} + x, y)", e, CONDITIONS, e),
    ),
)
INTS = expressions(
    st.sampled_from(["x", "y", "(x + 3)", "(y - 7)"]),
    lambda e: st.one_of(
        of("({} {} {})", e, st.sampled_from(["+", "-", "&", "|", "^"]), e),
        of("(~{})", e),
        of("(-{})", e),
        of("(({} & 15) * ({} & 7))", e, e),
        of("{}({}, {} & 7 | 1)", st.sampled_from(["trunc_div", "floor_mod", "trunc_mod"]), e, e),
        of("{}({}, {})", st.sampled_from(["minimum", "maximum"]), e, e),
        of("{}({})", st.sampled_from(["abs", "sign"]), e),
        of("(({} & 255) << 3)", e),
        of("({} >> 2)", e),
        of("where({} < {}, {}, x)", e, e, e),
    ),
)
X, Y = (
    side.reshape(-1)
    for side in np.meshgrid(np.linspace(-2, 2, 17, dtype=np.float32), np.linspace(-1.5, 2.5, 13, dtype=np.float32))
)


@pytest.mark.slow
@given(first=FLOATS, second=FLOATS)
@BOUNDED
def test_drawn_formulas_agree_with_numpy(first: str, second: str, run: Callable[..., Any]) -> None:
    source = f"def Drawn(x, y):\n    k = {first.replace('k', 'y')} + x\n    k = k * 0.5\n    return {second} + k\n"
    made, want = run(source, X, Y)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, want, 1e-3, 1e-3 * max(1, float(np.abs(want).max())))


@pytest.mark.slow
@given(expression=INTS)
@BOUNDED
def test_drawn_formulas_of_integers_agree_with_numpy(expression: str, run: Callable[..., Any]) -> None:
    a, b = (side.reshape(-1).astype(np.int32) for side in np.meshgrid(np.arange(-9, 10), [-100, -7, -1, 0, 1, 5, 64]))
    made, want = run(f"def Drawn(x, y):\n    return {expression} + x\n", a, b, dtypes="int")
    np.testing.assert_array_equal(made, want)


def test_a_literal_does_not_widen_to_float64(tmp_path: Path) -> None:
    text, kind = translate(formula(tmp_path, "def Drawn(x):\n    return x * 0.1 + 2\n"), ["float"], "python")
    assert kind == "float" and "float32(0.1)" in text and "float32(2.0)" in text


def test_a_formula_of_formulas_brings_them_along(tmp_path: Path) -> None:
    function = formula(tmp_path, "def Drawn(x):\n    return Softplus(x) + Softplus(x * 2)\n")
    for language in ("python", "glsl"):
        text, _ = translate(function, ["float"], language)
        assert text.count("def Softplus" if language == "python" else "float Softplus") == 1


def test_an_attribute_is_a_parameter_of_the_text(tmp_path: Path) -> None:
    text, _ = translate(formula(tmp_path, "def Drawn(x, *, alpha=0.5):\n    return x * alpha\n"), ["float"], "glsl")
    assert re.match(r"float Drawn\w*\(float x, float alpha\)", text)


WRONG = {
    "an operator": ("def Drawn(x):\n    a = x + 1\n    return a // 2\n", 6, "FloorDiv of float: write floor(x / y)"),
    "a power": ("def Drawn(x):\n    return x ** 2\n", 5, "Pow of float: write power(x, y)"),
    "an integer division": ("def Drawn(x):\n    return (x < 0) / 2\n", 5, "/"),
    "an unknown name": ("def Drawn(x):\n    return x + z\n", 5, "'z'"),
    "an unknown function": ("def Drawn(x):\n    return print(x)\n", 5, "print"),
    "a statement": ("def Drawn(x):\n    while x:\n        x = 1\n    return x\n", 5, "while"),
    "an if": ("def Drawn(x):\n    y = x\n    if x > 0:\n        y = 1\n    return y\n", 6, "'if x > 0:': write where("),
    "an if within": ("def Drawn(x):\n    return x if x > 0 else 0\n", 5, "write where("),
    "an and": ("def Drawn(x):\n    return where(x > 0 and x < 1, x, 0)\n", 5, "write & or |"),
    "Python's max": ("def Drawn(x):\n    return max(x, 0)\n", 5, "write maximum()"),
    "NumPy's": ("def Drawn(x):\n    return np.tanh(x)\n", 5, "by their names alone"),
    "an attribute": ("def Drawn(x):\n    return x.real\n", 5, "x.real"),
    "a chain of comparisons": ("def Drawn(x):\n    return where(0 < x < 1, x, 0)\n", 5, "0 < x < 1"),
    "a where without a comparison": ("def Drawn(x):\n    return where(x, x, 0)\n", 5, "comparison"),
    "a mixture": ("def Drawn(x):\n    return x + (x < 0)\n", 5, "mixes"),
    "a text": ("def Drawn(x):\n    return 'x'\n", 5, "'x'"),
}


@pytest.mark.parametrize("language", ["python", "glsl"])
@pytest.mark.parametrize(("source", "line", "words"), WRONG.values(), ids=WRONG)
def test_what_it_does_not_know_is_an_error_with_a_line(
    source: str, line: int, words: str, language: str, tmp_path: Path
) -> None:
    function = formula(tmp_path, source)
    with pytest.raises(pf.FormulaError) as caught:
        translate(function, ["float"], language)
    assert f".py:{line}: formula Drawn" in str(caught.value)
    assert words in str(caught.value)


def test_a_float_function_of_an_integer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(pf.FormulaError, match="floor"):
        translate(formula(tmp_path, "def Drawn(x):\n    return floor(x)\n"), ["int"], "glsl")
