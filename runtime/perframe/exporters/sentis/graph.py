"""Export of a model to a .sentis file: layers are spelled in ONNX's operators, and these become kinds of the file."""

from __future__ import annotations

import numpy as np

from perframe.errors import ModelError
from perframe.exporters.sentis.program import Record, SentisProgram, as_stored, encoded
from perframe.exporters.sentis.table import applied
from perframe.exporters.spelling import spelled
from perframe.files.tensors import Buffer
from perframe.importers.sentis.file import MAX_RANK
from perframe.importers.sentis.kinds import kinds
from perframe.ir import Layer, Model, Value
from perframe.ir.declaration import find_declaration
from perframe.tensor import DataType

_TAKEN = (DataType.FLOAT32, DataType.INT32, DataType.INT64, DataType.BOOL)  # the last two become int32
_CONSTANT = (*_TAKEN, DataType.FLOAT16, DataType.UINT8)
_HINTS = {
    DataType.FLOAT64: ": load the model with narrow_doubles=True",
    DataType.FLOAT16: ": use the float32 model",
    DataType.INT8: ": use the float model",
    DataType.UINT8: ": use the float model, or feed floats",
}


def to_sentis(model: Model) -> list[Buffer]:
    """Return the bytes of a .sentis file, in the oldest version that has all layers.

    Raises ModelError that lists every layer that such a file cannot express.
    """
    model.verify()
    model.infer()
    return _Export(model).program().buffers()


class _Export:
    """The export of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.records: list[Record] = []
        self.problems: list[str] = []
        self.folded: dict[Value, Value] = {}  # results that are constants in the file

    def program(self) -> SentisProgram:
        """Return the content of the file. Raises ModelError."""
        for value in self.model.inputs:
            self._check_input(value)
        for layer in self.model.layers:
            self._add(layer)
        outputs = [self._output(value, index) for index, value in enumerate(self.model.outputs)]
        if self.problems:
            raise ModelError(
                f"{self.model.name}: a .sentis file cannot express {len(self.problems)} part(s) of it:\n  "
                + "\n  ".join(self.problems)
            )
        return SentisProgram(self.model.inputs, outputs, self.records)

    def _check_input(self, value: Value) -> None:
        where = f"input {value.name!r}"
        if value.kind != "tensor" or value.dtype not in _TAKEN:
            self.problems.append(f"{where}: it is {_other(value)}")
        elif value.shape is None:
            self.problems.append(f"{where}: its rank is unknown, and Unity takes it for 0: declare its shape")
        elif len(value.shape) > MAX_RANK:
            self.problems.append(f"{where}: it has {len(value.shape)} dims, and Unity has at most {MAX_RANK}")

    def _output(self, value: Value, index: int) -> tuple[str, Value]:
        """Return an output under its name. One that no layer makes, or that is there twice, becomes an Identity's."""
        name = value.name
        if value.producer is not None and value not in (*self.folded, *self.model.outputs[:index]):
            return name, value
        made = Value(name, value.dtype)
        self._append([Record("Identity", [value], [made])], f"output {name!r}")
        return name, made

    def _add(self, layer: Layer) -> None:
        where = f"layer {layer.name!r} ({layer.op})"
        try:
            parts = spelled(layer)
            if len(parts) != 1 or parts[0] is not layer:
                for part in parts:
                    if find_declaration(part.op) is None:  # no shape rule; it makes what the layer made
                        for value in part.results:
                            value.spec = layer.output.spec
                    self._add(part)
                return
            found = applied(layer)
        except ModelError as error:
            self.problems.append(f"{where}: {error}")
            return
        if found.folded is not None:
            self.folded[layer.output] = Value(layer.output.name, constant=found.folded)
        self._append(found.records, where)

    def _append(self, records: list[Record], where: str) -> None:
        """Add records, if the file can hold all their values and arguments."""
        try:
            for record in records:
                record.inputs = [value and self.folded.get(value, value) for value in record.inputs]
                _check(record)
        except ModelError as error:
            self.problems.append(f"{where}: {error}")
            return
        self.records += records


def _check(record: Record) -> None:
    """Raise ModelError if a value or an argument of a record cannot be written."""
    for one in kinds()[record.kind].arguments:
        value = record.arguments.get(one.name)
        if value is not None:
            encoded(one, value)
    for value in (*record.inputs, *record.outputs):
        if value is None:
            continue
        if value.kind != "tensor" or value.dtype not in (_TAKEN if value.constant is None else _CONSTANT):
            raise ModelError(f"{value.name!r} is {_other(value)}")
        shape = value.shape
        if shape is not None and len(shape) > MAX_RANK:
            raise ModelError(f"{value.name!r} has {len(shape)} dims, and Unity has at most {MAX_RANK}")
        if value.constant is not None:
            as_stored(np.asarray(value.constant), value.name)


def _other(value: Value) -> str:
    """What a value of another type is, and what to do."""
    kind = str(value.dtype) if value.kind == "tensor" else f"a {value.kind}"
    return f"{kind}, and Unity has float32 and int32 tensors{_HINTS.get(value.dtype, '')}"
