"""Einstein summation: products of tensors, summed over the indices that the output does not name."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.declaration import Known, layer
from perframe.ir.geometry import Ints, collapse, row_major
from perframe.ir.sizes.partial import Dim, PartialTensor, broadcast_dim
from perframe.safety.records import dataclass

_ELLIPSIS = "..."
Term = tuple[str, ...]  # indices: letters, and "0", "1", ... for the dims of an ellipsis, counted from the last


@dataclass(frozen=True)
class Contraction:
    """Output element o is the sum over the reduced dims of the product of one element of each operand.

    `kept` holds the dims of the output and `reduced` the dims that are summed over; both are collapsed. The strides are
    one tuple for each operand. `terms` names the dims of the operands, and then those of the output.
    """

    terms: tuple[Term, ...]
    kept: Ints
    kept_strides: tuple[Ints, ...]
    reduced: Ints
    reduced_strides: tuple[Ints, ...]

    @property
    def count(self) -> int:
        """The number of products that one output element sums up."""
        return math.prod(self.reduced)


def _split(equation: str, operands: int) -> tuple[list[str], str | None]:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    allowed = set(string.ascii_letters)
    for term in (*terms, right):
        if term.count(_ELLIPSIS) > 1 or set(term.replace(_ELLIPSIS, "")) - allowed:
            raise InferenceError(f"{term!r} in the equation {equation!r} is not a list of indices")
    if len(terms) != operands:
        raise InferenceError(f"the equation {equation!r} has {len(terms)} operands, and {operands} are given")
    return terms, right if arrow else None


def _indices(term: str, hidden: int) -> Term:
    before, dots, after = term.partition(_ELLIPSIS)
    return (*before, *(map(str, range(hidden - 1, -1, -1)) if dots else ()), *after)


def _hidden(term: str, rank: int) -> int:
    """Return the number of dims that the ellipsis of a term stands for."""
    count = rank - len(term.replace(_ELLIPSIS, ""))
    if count < 0 or (count and _ELLIPSIS not in term):
        raise InferenceError(f"{term!r} does not name the {rank} dims of its operand")
    return count


def parse(equation: str, ranks: Sequence[int]) -> tuple[Term, ...]:
    """Return the indices of each operand and of the output. Raises InferenceError if the equation does not fit."""
    terms, right = _split(equation, len(ranks))
    hidden = [_hidden(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    given = [_indices(term, count) for term, count in zip(terms, hidden, strict=True)]
    if right is None:
        letters = "".join(terms).replace(_ELLIPSIS, "")
        right = _ELLIPSIS + "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    output = _indices(right, max(hidden))
    if set(output) - {index for term in given for index in term} or len(set(output)) != len(output):
        raise InferenceError(f"the output of {equation!r} names an index twice, or one that no operand has")
    return (*given, output)


def _dims(terms: Sequence[Term], shapes: Sequence[Sequence[Dim]], equation: str) -> dict[str, Dim]:
    """Return the size of each index; a dim of 1 is repeated."""
    sizes: dict[str, Dim] = {}
    for term, shape in zip(terms, shapes, strict=False):
        for index, dim in zip(term, shape, strict=True):
            try:
                sizes[index] = broadcast_dim(sizes.get(index, 1), dim)
            except InferenceError:
                raise InferenceError(f"index {index!r} of {equation!r} is both {sizes[index]} and {dim}") from None
    return sizes


@layer()
def Einsum(*operands: PartialTensor, equation: str) -> PartialTensor:
    if not operands:
        raise InferenceError("Einsum needs an operand")
    shapes = [operand.shape for operand in operands if operand.shape is not None]
    if len(shapes) < len(operands):
        _, right = _split(equation, len(operands))
        fixed = right is not None and _ELLIPSIS not in right
        return operands[0].with_shape((None,) * len(right) if fixed and right is not None else None)
    terms = parse(equation, [len(shape) for shape in shapes])
    sizes = _dims(terms, shapes, equation)
    return operands[0].with_shape(sizes[index] for index in terms[-1])


@Einsum.form
def _einsum(inputs: Sequence[Known], outputs: Sequence[Known], *, equation: str) -> Contraction:
    shapes = [tuple(value.shape) for value in inputs]
    terms = parse(equation, [len(shape) for shape in shapes])
    sizes = {index: dim for index, dim in _dims(terms, shapes, equation).items() if isinstance(dim, int)}
    output = terms[-1]
    rest = [index for index in sizes if index not in output]
    steps = [_steps(term, shape) for term, shape in zip(terms, shapes, strict=False)]
    kept, kept_strides = collapse([sizes[i] for i in output], [tuple(step.get(i, 0) for i in output) for step in steps])
    reduced, reduced_strides = collapse([sizes[i] for i in rest], [tuple(s.get(i, 0) for i in rest) for s in steps])
    return Contraction(terms, kept, kept_strides, reduced, reduced_strides)


def _steps(term: Term, shape: Sequence[int]) -> dict[str, int]:
    """Return the distance between the elements of each index; an index that a term repeats walks a diagonal."""
    steps: dict[str, int] = {}
    for index, dim, stride in zip(term, shape, row_major(shape), strict=True):
        steps[index] = steps.get(index, 0) + (stride if dim != 1 else 0)
    return steps
