"""An Einsum of two operands that is a matrix product becomes a product between transpositions.

An index of both operands and of the output counts matrices, an index of one operand and of the output counts rows or
columns, and an index of both operands alone is summed over. Several rows, columns or sums become one dim, if their
sizes are known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from perframe.ir import Layer, Model, Value
from perframe.ir.sizes.partial import Dim
from perframe.layers.einsum import Term, parse
from perframe.passes.lower.substitute import Substitute
from perframe.passes.match import all_float32
from perframe.passes.patterns import AnyValue, Op, Rules

run = Rules()


@run.rule(Op("Einsum", AnyValue("x"), AnyValue("y")))
def _replace(model: Model, root: Layer, x: Value, y: Value) -> int:
    product = _product(model, root) if len(root.inputs) == 2 else None
    if product is None or not product.is_possible():
        return 0
    model.replace(root, *product.layers())
    return 1


def _product(model: Model, layer: Layer) -> _Product | None:
    """The layer as a product; None if it has a diagonal, a sum over one operand, or sums of sizes that may differ."""
    shapes = [value.spec.shape for value in layer.operands]
    known = [tuple(shape) for shape in shapes if shape is not None]
    if layer.epilogue or len(known) < 2 or not all_float32(layer):
        return None
    terms = parse(layer.equation, [len(shape) for shape in known])
    if any(len(set(term)) < len(term) for term in terms):
        return None
    dims: dict[str, list[Dim]] = {}
    for term, shape in zip(terms[:2], known, strict=True):
        for index, dim in zip(term, shape, strict=True):
            dims.setdefault(index, []).append(dim)
    summed = [found for index, found in dims.items() if index not in terms[2]]
    if not summed or any(len(found) == 1 or found[0] != found[1] or found[0] is None for found in summed):
        return None
    return _Product(model, layer, terms, {index: found[0] for index, found in dims.items()})


class _Product(Substitute):
    """An Einsum as a product of batches of matrices: two operands, and their indices in groups. A group is one dim."""

    def __init__(self, model: Model, layer: Layer, terms: Sequence[Term], sizes: Mapping[str, Dim]) -> None:
        super().__init__(model, layer)
        self._sizes = sizes
        (*operands, self._output) = terms
        given = list(zip(layer.operands, operands, strict=True))
        if self._output and self._output[-1] not in operands[1]:  # columns are those of the second operand
            given.reverse()
        (self._x, self._x_term), (self._y, self._y_term) = given
        batch = [[index] for index in self._output if index in self._x_term and index in self._y_term]
        rows = [index for index in self._output if index not in self._y_term]
        columns = [index for index in self._output if index not in self._x_term]
        depth = [index for index in self._x_term if index not in self._output]
        row_groups = [rows] if batch else [[index] for index in rows]  # without a batch, rows may have several dims
        self._x_groups = [*batch, *row_groups, depth]
        self._y_groups = [*batch, depth, columns]
        self._groups = [*batch, *row_groups, columns]

    def is_possible(self) -> bool:
        """Whether all sizes are known that layers would need: those from the first group on that is not one dim."""
        for groups in (self._x_groups, self._y_groups, self._groups):
            changed = next((k for k, group in enumerate(groups) if len(group) != 1), len(groups))
            if not all(isinstance(self._sizes[index], int) for group in groups[changed:] for index in group):
                return False
        return True

    def layers(self) -> list[Layer]:
        """The layers that take the Einsum's place."""
        x = self._arranged(self._x, self._x_term, self._x_groups)
        y = self._arranged(self._y, self._y_term, self._y_groups)
        value = self._then("MatMul", x, y)
        if any(len(group) != 1 for group in self._groups):
            value = self._then("Reshape", value, self._ints("shape", self._shape(self._groups, merged=False)))
        order = [index for group in self._groups for index in group]
        if order != list(self._output):
            self._then("Transpose", value, perm=[order.index(index) for index in self._output])
        self._made[-1].outputs = self._layer.outputs
        return self._made

    def _arranged(self, value: Value, term: Term, groups: Sequence[Sequence[str]]) -> Value:
        """An operand with its indices in another order, and a dim for each group of them."""
        perm = [term.index(index) for group in groups for index in group]
        if perm != sorted(perm):
            value = self._then("Transpose", value, perm=perm)
        if any(len(group) != 1 for group in groups):
            value = self._then("Reshape", value, self._ints("shape", self._shape(groups, merged=True)))
        return value

    def _shape(self, groups: Sequence[Sequence[str]], merged: bool) -> list[int]:
        """The shape for a Reshape. Dims before the first group that is not one dim stay as they are, which 0 means."""
        changed = next(k for k, group in enumerate(groups) if len(group) != 1)
        sizes = [[dim for dim in map(self._sizes.get, group) if isinstance(dim, int)] for group in groups[changed:]]
        new = [math.prod(group) for group in sizes] if merged else [dim for group in sizes for dim in group]
        return [0] * changed + new
