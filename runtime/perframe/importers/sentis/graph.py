"""Import of a .sentis file: its layers become layers of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from perframe.errors import InferenceError, ModelError, PerframeError, Problem, UnsupportedOperatorError
from perframe.importers.builder import Builder
from perframe.importers.sentis.file import ABSENT, SentisOperation, read
from perframe.importers.sentis.kinds import kinds
from perframe.importers.sentis.node import SentisNode
from perframe.importers.sentis.table import find_adapter
from perframe.ir import Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType

REPORTED = 64  # layers between two reports of progress
_PLAIN = (DataType.FLOAT32, DataType.INT32)


def load_sentis(data: bytes, name: str, progress: Callable[[str, float], None] = lambda _what, _done: None) -> Model:
    """Import a .sentis model. Raises ModelError; UnsupportedOperatorError lists all that cannot be imported."""
    progress("reads the file", 0)
    return _SentisImport(data, name, progress).run()


class _SentisImport:
    """The import of one file: its tensors, and the values that they became."""

    def __init__(self, data: bytes, name: str, progress: Callable[[str, float], None]) -> None:
        self.file, self.progress = read(data, name), progress
        self.version = self.file.version
        self.builder = Builder()
        self.values: dict[int, Value] = {}
        self.origins: dict[Value, Value] = {}
        self.problems: list[Problem] = []
        self.guessed: set[int] = set()  # values that layers with problems would make

    def run(self) -> Model:
        file, inputs = self.file, list[Value]()
        names = [name for name, _ in file.inputs]
        outputs = [f"{name}:output" if name in names else name for name, _ in file.outputs]
        twice = [name for name, count in Counter([*names, *outputs]).items() if count > 1]
        if twice or len({number for _, number in file.inputs}) < len(names):
            raise ModelError(f"{file.name}: two inputs or outputs are the same: {(twice or names)[0]!r}")
        for name in (*names, *outputs):
            self.builder.names.free(name)
        for name, number in file.inputs:
            inputs.append(self._input(name, number))
            self.values[number] = inputs[-1]
        for index, operation in enumerate(file.operations):
            if index % REPORTED == 0:
                self.progress(f"imports {len(file.operations)} layers", index / len(file.operations))
            self._add(operation, f"{operation.kind}_{index}")
        if self.problems:
            raise UnsupportedOperatorError(file.name, self.problems, "file version")
        made = [self._output(number, name) for (_, number), name in zip(file.outputs, outputs, strict=True)]
        model = Model(inputs, made, self.builder.layers, name=file.name)
        model.verify()
        return model

    def value(self, number: int) -> Value:
        """Return the value of a tensor. Raises ModelError if no earlier layer makes it."""
        found = self.values.get(number)
        if found is None:
            array = self.file.constant(number)
            if array is None:
                raise ModelError(f"{self.file.name}: value {number} is read, and no earlier layer makes it")
            found = self.values[number] = self.builder.constant(array)
        return found

    def _input(self, name: str, number: int) -> Value:
        info = self.file.tensor(number, f"{self.file.name}: input {name!r}")
        dtype = info.dtype(f"{self.file.name}: input {name!r}")
        if dtype not in _PLAIN or info.segment is not None:
            raise ModelError(f"{self.file.name}: input {name!r} is {dtype}, and .sentis files have float32 and int32")
        return Value(name, dtype, None if info.shape is None else DynamicTensorShape(info.shape))

    def _output(self, number: int, name: str) -> Value:
        """Give the value of an output its name, and return it."""
        value = self.value(number)
        if value.producer is None or value.is_output:
            (value,) = self.builder.layer("Identity", name, [value], 1, name, {})
        value.name, value.is_output = name, True
        value.declared = value.spec
        return value

    def _add(self, operation: SentisOperation, name: str) -> None:
        """Import a layer. One that cannot be imported is noted as a problem, so that all problems are found."""
        kind, reason = kinds().get(operation.kind), "perframe does not know this kind of layer"
        if kind is not None:
            try:
                node = SentisNode(self, operation, kind, name)
                results = find_adapter(kind.name)(node)
                listed = [results] if isinstance(results, Value) else list(results)
                self._define(operation, node, listed)
                return
            except InferenceError as error:
                reason = str(error)
                if not self.problems:
                    raise InferenceError(f"{self.file.name}: {reason}") from None
            except PerframeError:
                raise
            except NotImplementedError as error:
                reason = str(error)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                reason = f"its inputs or arguments do not fit: {error}"
        if kind is None or not self.guessed.intersection(operation.inputs):
            given = [self.values[number] for number in operation.inputs if number in self.values]
            shown = ", ".join(map(str, given))
            self.problems.append(Problem(name, operation.kind, "Sentis", self.version, reason, shown))
        for number in operation.outputs:  # so that later layers are examined too
            self.guessed.add(number)
            self.values.setdefault(number, self.builder.input(name, DataType.FLOAT32, None))

    def _define(self, operation: SentisOperation, node: SentisNode, results: list[Value]) -> None:
        if len(results) < len(operation.outputs):
            raise ValueError(f"it has {len(operation.outputs)} outputs, and {len(results)} are expected")
        for index, (number, made) in enumerate(zip(operation.outputs, results, strict=False)):
            if number == ABSENT:
                continue
            info = self.file.tensor(number, f"{self.file.name}: an output of layer {node.like!r}")
            if number in self.values or info.segment is not None:
                raise ModelError(f"{self.file.name}: value {number} is made twice, by layer {node.like!r} too")
            form = node.kind.outputs[index] if index < len(node.kind.outputs) else ""
            self.values[number] = node.int32(made) if form else made
