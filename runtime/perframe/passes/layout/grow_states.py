"""States that grow: an output is its input with more appended, as the keys and values of attention are. They are laid
out with that axis first. New elements then follow the old ones, and a run writes nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perframe.ir import Layer, Model, Value
from perframe.ir.declaration import normalize_axis
from perframe.ir.geometry import Ints
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Growth:
    """An output that is the input `source` with more appended. Dim i of its layout is dim `perm[i]` of the file."""

    output: str
    source: str
    perm: Ints

    @property
    def inverse(self) -> Ints:
        """The permutation that brings the dims back into the order of the file."""
        return tuple(self.perm.index(axis) for axis in range(len(self.perm)))

    def laid_out(self, shape: DynamicTensorShape) -> DynamicTensorShape:
        """Return a shape of the file in the order of the layout."""
        return DynamicTensorShape(shape[axis] for axis in self.perm)


def growths(model: Model, pairs: Mapping[str, str]) -> list[Growth]:
    """Find the states that grow along a dim that is open. `pairs` maps outputs to the inputs that later take them."""
    return [growth for output, source in pairs.items() if (growth := _growth(model, output, source)) is not None]


def lay_out(model: Model, grown: Sequence[Growth]) -> Model:
    """Return a copy of the model whose states are laid out so."""
    made = model.copy()
    for growth in grown:
        _put_out_itself(made, growth.output)
        _lay_out(made, growth)
    made.verify()
    return made


def _put_out_itself(model: Model, output: str) -> None:
    """Let the model output what it copies to an output now."""
    whole = _named(model.outputs, output)
    copied = _copied(whole)
    if copied is whole or copied.is_output or copied in model.inputs:
        return
    model.rename(whole, f"copy of {output}")
    model.rename(copied, output)
    model.replace_uses(whole, copied)
    model.outputs = [copied if value is whole else value for value in model.outputs]


def _copied(value: Value) -> Value:
    """Return the value that layers only copy to this one."""
    while (layer := value.producer) is not None and layer.op == "Identity" and not layer.epilogue:
        value = layer.input(0)
    return value


def _lay_out(model: Model, growth: Growth) -> None:
    given, whole = _named(model.inputs, growth.source), _named(model.outputs, growth.output)
    shape, join, joins = given.shape, whole.producer, _joins(given, whole)
    assert shape is not None and given.declared is not None
    declared, given.declared = given.declared.with_shape(growth.laid_out(shape)), None
    model.rename(given, f"{given.name} as in the file")
    model.rename(whole, f"{whole.name} as in the file")
    laid_out, made = Value.of(growth.source, declared), Value(growth.output)
    back = Layer("Transpose", f"{growth.source}/back", [laid_out], [given], {"perm": growth.inverse})
    model.insert(back, before=model.layers[0])
    if join is not None and joins:
        turns = [_turned(value, growth, index) for index, value in enumerate(join.operands[1:], 1)]
        parts = [laid_out, *(turn.output for turn in turns)]
        again = Layer("Transpose", f"{growth.output}/back", [made], [whole], {"perm": growth.inverse})
        model.replace(join, *turns, Layer("Concat", join.name, parts, [made], {"axis": 0}), again)
    else:  # a branch that leaves the state alone, or computes all of it
        turn = _turned(whole, growth, 0)
        turn.outputs = [made]
        model.insert(turn)
    model.inputs = [laid_out if value is given else value for value in model.inputs]
    model.outputs = [made if value is whole else value for value in model.outputs]


def _turned(value: Value, growth: Growth, index: int) -> Layer:
    """Return a layer that brings a value into the layout; one with a Transpose that made the value."""
    name, perm, turn = f"{growth.output}/part{index}", growth.perm, value.producer
    if turn is not None and turn.op == "Transpose" and not turn.epilogue and not turn.channels_last:
        order = turn.perm or tuple(range(len(perm)))[::-1]
        value, perm = turn.input(0), tuple(order[axis] for axis in perm)
    return Layer("Transpose", name, [value], [name], {"perm": perm})


def _growth(model: Model, output: str, source: str) -> Growth | None:
    given, whole = _named(model.inputs, source), _copied(_named(model.outputs, output))
    join, shape = whole.producer, given.shape
    if join is None or shape is None or not _joins(given, whole):
        return None
    axis = normalize_axis(join.axis, len(shape))
    order = axis, *(other for other in range(len(shape)) if other != axis)
    return None if isinstance(shape[axis], int) else Growth(output, source, order)


def _joins(given: Value, whole: Value) -> bool:
    """Whether an output is an input with more appended."""
    join = whole.producer
    if join is None or join.op != "Concat" or join.epilogue or join.channels_last or given.is_output:
        return False
    return join.inputs[0] is given and join.operands.count(given) == 1 < len(join.operands)


def _named(values: Sequence[Value], name: str) -> Value:
    return next(value for value in values if value.name == name)
