"""Cases for elementwise layers, which follow from the declared ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perframe.errors import ModelError
from perframe.ir.declaration import Declaration
from perframe.testing.cases import Case, Draw

Shapes = tuple[tuple[int, ...], ...]

# The shapes of one, two and three operands: scalars, empty tensors, primes, and dims that broadcast.
SHAPES: Mapping[int, tuple[Shapes, ...]] = {
    1: (
        ((),),
        ((1,),),
        ((7,),),
        ((0,),),
        ((2, 0, 3),),
        ((3, 5),),
        ((2, 3, 5, 7),),
        ((2, 1, 3, 1, 5),),
    ),
    2: (
        ((), ()),
        ((), (4,)),
        ((7,), (1,)),
        ((1,), (0,)),
        ((0, 3), (1, 3)),
        ((3, 5), (5,)),
        ((5,), (3, 5)),
        ((3, 1), (1, 5)),
        ((2, 3, 4, 5), (3, 1, 1)),
        ((2, 3, 1, 5), (3, 7, 1)),
        ((1, 7, 1), (2, 1, 3, 1, 5)),
        ((3, 2, 13), (3, 2, 13)),
    ),
    3: (
        ((), (), ()),
        ((3, 5), (3, 5), (3, 5)),
        ((3, 1), (5,), ()),
        ((2, 1, 1, 7), (3, 1, 1), (1, 5, 1)),
        ((5,), (2, 3, 1), (1,)),
        ((0,), (1,), (2, 1)),
    ),
}
DTYPES = {"float": "float32", "int": "int32", "bool": "bool"}
RTOL, ATOL = 1e-5, 2e-6  # of floats; integers are exact


def formula_cases(
    declaration: Declaration, attributes: Sequence[Mapping[str, Any]] = ({},), seed: int = 0
) -> Iterator[Case]:
    """Yield a case for each shape, dtype and set of attributes of an elementwise layer of up to three operands.

    The inputs are drawn from the layer's ranges. The reference is the formula itself, run by NumPy.
    """
    draw = Draw(seed)
    domain, _, op = declaration.name.rpartition("::")
    arity = 2 if declaration.variadic else len(declaration.inputs)
    for chosen in attributes:
        for kind in declaration.dtypes.split():
            for shapes in SHAPES[arity]:
                inputs = [
                    draw(*shape, low=low, high=high, dtype=DTYPES[kind])
                    for shape, (low, high) in zip(shapes, ranges_of(declaration, arity), strict=True)
                ]
                yield Case(
                    title(DTYPES[kind], shapes, chosen),
                    op,
                    inputs,
                    dict(chosen),
                    reference="declaration",
                    rtol=RTOL if kind == "float" else 0,
                    atol=ATOL if kind == "float" else 0,
                    domain=domain,
                )


def ranges_of(declaration: Declaration, arity: int) -> list[tuple[float, float]]:
    """Return the range of each operand of an elementwise layer; the last range that is declared repeats.

    Raises ModelError if the layer declares none.
    """
    declared = declaration.ranges
    if not declared:
        raise ModelError(f"{declaration.name} declares no ranges to draw values from: @pf.layers.elementwise((-1, 1))")
    return [declared[min(index, len(declared) - 1)] for index in range(arity)]


def title(dtype: str, shapes: Shapes, attributes: Mapping[str, Any]) -> str:
    """Return the name of a case."""
    dims = ",".join("x".join(map(str, shape)) or "scalar" for shape in shapes)
    return " ".join([dtype, dims, *(f"{key}={value}" for key, value in attributes.items())])
