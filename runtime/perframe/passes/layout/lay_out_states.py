"""States in another layout than that of the file, so that a run writes few elements of them.

A state that grows is its input with more appended, as the keys and values of attention are. It is laid out with that
axis first: new elements follow the old ones. A state of which PyTorch's `cache[:, :, at] = rows` replaces rows is
transposed twice, before and after. It is laid out as between the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perframe.ir import Layer, Model, Value
from perframe.ir.declaration import normalize_axis
from perframe.ir.geometry import Ints
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class StateLayout:
    """The layout of a state, which the input `source` reads. Dim i is dim `perm[i]` of the file. If it `grows`, its
    output is that input with more appended.
    """

    output: str
    source: str
    perm: Ints
    grows: bool

    @property
    def inverse(self) -> Ints:
        """The permutation that brings the dims back into the order of the file."""
        return tuple(self.perm.index(axis) for axis in range(len(self.perm)))

    def laid_out(self, shape: DynamicTensorShape) -> DynamicTensorShape:
        """Return a shape of the file in the order of the layout."""
        return DynamicTensorShape(shape[axis] for axis in self.perm)


def state_layouts(model: Model, pairs: Mapping[str, str]) -> list[StateLayout]:
    """Find the states that grow along a dim that is open, and those of which rows are replaced between two transposes.
    `pairs` maps outputs to the inputs that later take them.
    """
    return [layout for output, source in pairs.items() if (layout := _layout(model, output, source)) is not None]


def lay_out(model: Model, layouts: Sequence[StateLayout]) -> Model:
    """Return a copy of the model whose states are laid out so."""
    made = model.copy()
    for layout in layouts:
        _put_out_itself(made, layout.output)
        _lay_out(made, layout)
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


def _lay_out(model: Model, layout: StateLayout) -> None:
    given, whole = _named(model.inputs, layout.source), _named(model.outputs, layout.output)
    shape, join, joins = given.shape, whole.producer, _joins(given, whole)
    assert shape is not None and given.declared is not None
    declared, given.declared = given.declared.with_shape(layout.laid_out(shape)), None
    model.rename(given, f"{given.name} as in the file")
    model.rename(whole, f"{whole.name} as in the file")
    laid_out, made = Value.of(layout.source, declared), Value(layout.output)
    back = Layer("Transpose", f"{layout.source}/back", [laid_out], [given], {"perm": layout.inverse})
    model.insert(back, before=model.layers[0])
    if join is not None and joins:
        turns = [_turned(value, layout, index) for index, value in enumerate(join.operands[1:], 1)]
        parts = [laid_out, *(turn.output for turn in turns)]
        again = Layer("Transpose", f"{layout.output}/back", [made], [whole], {"perm": layout.inverse})
        model.replace(join, *turns, Layer("Concat", join.name, parts, [made], {"axis": 0}), again)
    elif (rows := _rows(given, whole)) is not None and not layout.grows:
        turn = rows.x.producer
        model.replace_uses(rows.output, made)
        model.replace(rows, Layer("ScatterND", rows.name, [laid_out, rows.indices, rows.updates], [made]))
        for unused in (turn, back):
            if unused is not None and not unused.output.users and not unused.output.is_output:
                model.remove(unused)
    else:  # a branch that leaves the state alone, or computes all of it
        turn = _turned(whole, layout, 0)
        turn.outputs = [made]
        model.insert(turn)
    model.inputs = [laid_out if value is given else value for value in model.inputs]
    model.outputs = [made if value is whole else value for value in model.outputs]


def _turned(value: Value, layout: StateLayout, index: int) -> Layer:
    """Return a layer that brings a value into the layout; one with a Transpose that made the value."""
    name, perm, turn = f"{layout.output}/part{index}", layout.perm, value.producer
    if turn is not None and _turns(turn):
        order = turn.perm or tuple(range(len(perm)))[::-1]
        value, perm = turn.input(0), tuple(order[axis] for axis in perm)
    return Layer("Transpose", name, [value], [name], {"perm": perm})


def _layout(model: Model, output: str, source: str) -> StateLayout | None:
    given, whole = _named(model.inputs, source), _copied(_named(model.outputs, output))
    join, shape = whole.producer, given.shape
    if join is None or shape is None:
        return None
    if not _joins(given, whole):
        rows = _rows(given, whole)
        turn = None if rows is None else rows.x.producer
        return None if turn is None else StateLayout(output, source, _perm(turn, given), grows=False)
    axis = normalize_axis(join.axis, len(shape))
    order = axis, *(other for other in range(len(shape)) if other != axis)
    return None if isinstance(shape[axis], int) else StateLayout(output, source, order, grows=True)


def _rows(given: Value, whole: Value) -> Layer | None:
    """Return the ScatterND that replaces rows of an input between two Transposes, of which the last makes `whole`."""
    back = whole.producer
    rows = back.input(0).producer if back is not None and _turns(back) else None
    if back is None or rows is None or rows.op != "ScatterND" or rows.reduction != "none" or rows.epilogue:
        return None
    if rows.output.is_output:  # it keeps its name
        return None
    turn = rows.x.producer
    if turn is None or not _turns(turn) or turn.input(0) is not given or given.is_output:
        return None
    perm, inverse = _perm(turn, given), _perm(back, given)
    return rows if [perm[axis] for axis in inverse] == sorted(perm) else None


def _turns(layer: Layer) -> bool:
    return layer.op == "Transpose" and not layer.epilogue and not layer.channels_last


def _perm(turn: Layer, given: Value) -> Ints:
    """Return the order of dims that a Transpose makes; of all, if it has none: it reverses them."""
    assert given.shape is not None
    return turn.perm or tuple(range(len(given.shape)))[::-1]


def _joins(given: Value, whole: Value) -> bool:
    """Whether an output is an input with more appended."""
    join = whole.producer
    if join is None or join.op != "Concat" or join.epilogue or join.channels_last or given.is_output:
        return False
    return join.inputs[0] is given and join.operands.count(given) == 1 < len(join.operands)


def _named(values: Sequence[Value], name: str) -> Value:
    return next(value for value in values if value.name == name)
