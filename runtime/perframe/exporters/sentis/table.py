"""The rules by which layers become records of a .sentis file. A layer without one is the kind of its name."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perframe.errors import ModelError
from perframe.exporters.sentis.program import Record
from perframe.importers.sentis.kinds import kinds
from perframe.ir import Layer, Value
from perframe.tensor import Array, DataType

Rule = Callable[["SentisLayer"], None]

_RULES: dict[str, Rule] = {}
# attributes that change nothing in layers that a file can hold
_HARMLESS = {"stash_type", "saturate", "round_mode", "storage_order"}


_ADVICE = {
    **dict.fromkeys(("If", "Loop", "Scan"), "Unity has no control flow: export the network without it"),
    **dict.fromkeys(("GRU", "RNN"), "of recurrent layers, Unity has the LSTM alone"),
    **dict.fromkeys(
        ("QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"),
        "Unity computes in floats: take the float model",
    ),
}


def rule(*ops: str) -> Callable[[Rule], Rule]:
    """Declare the rule of these operators of ONNX: it adds records."""

    def declare(function: Rule) -> Rule:
        for op in ops:
            assert op not in _RULES, op
            _RULES[op] = function
        return function

    return declare


class SentisLayer:
    """A layer on its way into a file: what its rule asks for, and adds."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.records: list[Record] = []
        self.folded: Array | None = None  # the value of the layer's output, if constants alone decide it
        self.op, self.name = layer.op, layer.name
        self.outputs = list(map(self._made, range(len(layer.outputs))))

    # --- records ---

    def add(self, kind: str, *inputs: Value | None, made: Value | DataType | None = None, **arguments: Any) -> Value:
        """Add a record with one output, and return it: `made`, or a new value of that dtype or that of an input."""
        if not isinstance(made, Value):
            dtypes = [value.dtype for value in inputs if value is not None]
            made = Value(self.name, made or dtypes[0])
        self.records.append(Record(kind, inputs, [made], arguments))
        return made

    def end(self, kind: str, *inputs: Value | None, **arguments: Any) -> None:
        """Add the record that makes the layer's only output."""
        if any(value is not None for value in self.layer.outputs[1:]):
            raise ModelError("its second output is read, and .sentis files do not have it")
        self.add(kind, *inputs, made=self.outputs[0], **arguments)

    def several(self, kind: str, inputs: Sequence[Value | None], count: int, **arguments: Any) -> None:
        """Add the record of a kind with `count` outputs: those of the layer, and new ones where it leaves some out."""
        self.records.append(Record(kind, inputs, list(map(self._made, range(count))), arguments))

    def _made(self, index: int) -> Value:
        """Return an output; a new value where the layer leaves it out."""
        found = self.layer.outputs[index] if index < len(self.layer.outputs) else None
        if found is not None:
            return found
        specs = self.layer.infer([None if value is None else value.spec for value in self.layer.inputs])
        return Value(f"{self.name} unread", specs[index].dtype)

    def constant(self, array: Array) -> Value:
        """Return a new constant."""
        return Value(f"{self.name} constant", constant=array)

    # --- facts ---

    def input(self, index: int) -> Value:
        """Return an input that the layer must have."""
        return self.layer.input(index)

    def optional(self, index: int) -> Value | None:
        """Return an input; None if it is absent."""
        return self.layer.inputs[index] if index < len(self.layer.inputs) else None

    def __getitem__(self, name: str) -> Any:
        """Return an attribute, or its default."""
        entry = self.layer.declaration
        return self.layer.attributes.get(name, entry.attributes[name])

    def must_be(self, advice: str, **wanted: Any) -> None:
        """Raise ModelError if an attribute is neither this value nor absent."""
        for name, value in wanted.items():
            if self[name] not in (value, None):
                raise ModelError(f"its {name} is {self[name]}: {advice}")

    def rank(self, value: Value) -> int:
        """Return the rank of a value. Raises ModelError if it is unknown."""
        shape = value.spec.shape
        if shape is None:
            raise ModelError(f"the rank of {value.name!r} is unknown: fix the sizes of the inputs with dims=")
        return len(shape)


def applied(layer: Layer) -> SentisLayer:
    """Apply a layer's rule. Raises ModelError with the reason if the file cannot express the layer."""
    own = SentisLayer(layer)
    found = rules().get(layer.op)
    if found is not None:
        found(own)
    elif layer.op in kinds():
        _same(own)
    else:
        raise ModelError(_ADVICE.get(layer.op, "Unity has no such layer: compose it of others"))
    return own


def _same(own: SentisLayer) -> None:
    """Add the record of a kind with the layer's own name, whose arguments are the layer's attributes."""
    kind, attributes = kinds()[own.op], own.layer.declaration.with_defaults(own.layer.attributes)
    names = {one.name for one in kind.arguments}
    for name, value in own.layer.attributes.items():
        if name not in names and name not in _HARMLESS and value != own.layer.declaration.attributes[name]:
            raise ModelError(f"its {name} is {value}, which .sentis files cannot say")
    inputs = [*own.layer.inputs]
    if not kind.is_variadic:
        if any(value is not None for value in inputs[len(kind.inputs) :]):
            raise ModelError(f"it has {len(inputs)} inputs, and the kind has {len(kind.inputs)}")
        inputs = [own.optional(index) for index in range(len(kind.inputs))]
    if len(own.outputs) > len(kind.outputs):
        raise ModelError("its second output is read, and .sentis files do not have it")
    own.several(kind.name, inputs, len(kind.outputs), **{name: attributes[name] for name in names})


@functools.cache
def rules() -> Mapping[str, Rule]:
    """All rules, by the operator."""
    from perframe.exporters.sentis import families

    for module in pkgutil.iter_modules(families.__path__):
        importlib.import_module(f"{families.__name__}.{module.name}")
    return _RULES
