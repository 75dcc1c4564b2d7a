"""Import of a LiteRT file: the operators of its first graph become the layers of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from perframe.errors import InferenceError, ModelError, PerframeError, Problem, UnsupportedOperatorError
from perframe.importers.builder import Builder
from perframe.importers.litert.dilated import with_dilations
from perframe.importers.litert.file import GraphInfo, LiteRTFile, Operation, Signature, read
from perframe.importers.litert.node import LiteRTNode
from perframe.importers.litert.table import ImportRule, table
from perframe.importers.litert.tensors import Array, GraphTensors
from perframe.ir import Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape

REPORTED = 64  # operators between two reports of progress
MAX_DEPTH = 32  # subgraphs within subgraphs
MAX_OPERATIONS = 50_000  # operators after subgraphs that are called several times are written out


def load_litert(
    data: bytes,
    name: str,
    progress: Callable[[str, float], None] = lambda _what, _done: None,
    signature: str | None = None,
) -> Model:
    """Import a LiteRT model: the graph of a signature, or the first one. Raises ModelError; UnsupportedOperatorError
    lists all that cannot be imported.
    """
    progress("reads the file", 0)
    file = read(data, name)
    chosen = file.signature(signature)
    try:
        return _Import(file, progress).run(chosen)
    except InferenceError as error:
        raise InferenceError(f"{name}: {error}") from None


class _Import:
    """The import of one file, and what its scopes share."""

    def __init__(self, file: LiteRTFile, progress: Callable[[str, float], None]) -> None:
        self.file, self.progress = file, progress
        self.problems: list[Problem] = []
        self.open: list[int] = []  # the subgraphs that are being imported, from the outside in
        self.operations = 0
        self.arrays: dict[tuple[int, int], Array] = {}

    def run(self, signature: Signature) -> Model:
        builder = Builder()
        scope = Scope(self, signature.graph, builder)
        graph = self.file.graphs[signature.graph]
        inputs = [self._named(graph, index, signature.input_names) for index in graph.inputs]
        outputs = [self._named(graph, index, signature.output_names) for index in graph.outputs]
        outputs = [f"{name}:output" if name in inputs else name for name in outputs]
        for what, names in (("inputs", inputs), ("outputs", outputs)):
            twice = [name for name in names if names.count(name) > 1]
            if twice or len(set(graph.inputs)) < len(graph.inputs):
                raise ModelError(f"{self.file.name}: two {what} are called {(twice or names)[0]!r}")
        for name in (*inputs, *outputs):
            builder.names.free(name)
        values = []
        for index, name in zip(graph.inputs, inputs, strict=True):
            values.append(Value(name, scope.dtype(index), DynamicTensorShape(graph.tensors[index].shape)))
            scope.values[index] = values[-1]
        scope.run()
        if self.problems:
            raise UnsupportedOperatorError(self.file.name, self.problems, "version")
        made = [scope.output(index, name) for index, name in zip(graph.outputs, outputs, strict=True)]
        model = Model(values, made, builder.layers, name=self.file.name)
        model.verify()
        return model

    def _named(self, graph: GraphInfo, index: int, names: Mapping[int, str]) -> str:
        name = names.get(index) or graph.tensors[index].name if index >= 0 else ""
        if not name:
            raise ModelError(f"{self.file.name}: an input or output of the model has no name (tensor {index})")
        return name


class Scope(GraphTensors):
    """A graph of a file that is being imported into a builder."""

    def __init__(self, around: _Import, index: int, builder: Builder) -> None:
        if index in around.open or len(around.open) >= MAX_DEPTH:
            raise ModelError(
                f"{around.file.name}: subgraph {index} contains itself, or lies more than {MAX_DEPTH} deep"
            )
        if not 0 <= index < len(around.file.graphs):
            raise ModelError(f"{around.file.name}: there is no subgraph {index}")
        super().__init__(around.file, index, builder, around.arrays)
        self.around = around

    def run(self) -> None:
        """Import all operators of the graph."""
        self.around.open.append(self.index)
        listed = with_dilations(self.graph, lambda tensor: self.array(tensor) if tensor >= 0 else None)
        for number, operation in enumerate(listed):
            self.around.operations += 1
            if number % REPORTED == 0 and len(self.around.open) == 1:
                self.around.progress(f"imports {len(listed)} operators", number / len(listed))
            if self.around.operations > MAX_OPERATIONS:
                raise ModelError(f"{self.file.name}: its subgraphs call each other too often")
            self._add(operation, f"{operation.name}_{number}")
        self.around.open.pop()

    def inline(self, index: int, inputs: Sequence[Value], builder: Builder | None = None) -> list[Value]:
        """Import another subgraph for these inputs, which are stored values, and return its outputs."""
        inner = Scope(self.around, index, builder or self.builder)
        if len(inner.graph.inputs) != len(inputs) or -1 in (*inner.graph.inputs, *inner.graph.outputs):
            raise ModelError(
                f"{self.file.name}: subgraph {index} takes {len(inner.graph.inputs)} inputs, and gets {len(inputs)}"
            )
        inner.values.update(zip(inner.graph.inputs, inputs, strict=True))
        inner.run()
        return [inner.stored(tensor) for tensor in inner.graph.outputs]

    def _add(self, operation: Operation, name: str) -> None:
        """Import an operator. One that cannot be imported is noted as a problem, so that all problems are found."""
        entry = table().get(operation.name)
        reason = _reason(operation)
        if entry is not None:
            try:
                self._import(operation, entry)
                return
            except InferenceError as error:
                reason = str(error)
                if not self.around.problems:
                    raise InferenceError(f"operator {name!r}: {reason}") from None
            except PerframeError:
                raise
            except NotImplementedError as error:
                reason = str(error)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                reason = f"its inputs or options do not fit the operator: {error}"
        given = [self.graph.tensors[index] for index in operation.inputs if index >= 0]
        listed = ", ".join(f"{one.name}: {one.kind.lower()} {DynamicTensorShape(one.shape)}" for one in given)
        self.around.problems.append(Problem(name, operation.name, "LiteRT", operation.version, reason, listed))
        for tensor in operation.outputs:
            if tensor >= 0:
                info = self.graph.tensors[tensor]
                shape = DynamicTensorShape(info.shape)
                self.values[tensor] = self.builder.input(info.name or name, self.dtype(tensor), shape)

    def _import(self, operation: Operation, entry: ImportRule) -> None:
        node = LiteRTNode(self, operation, entry.moves and self.is_exact(operation), self.inline)
        results = entry.adapter(node)
        listed = [results] if isinstance(results, Value) else list(results)
        if entry.family not in ("recurrent", "control"):  # there the activation lies within
            listed[:1] = [node.activated(value) for value in listed[:1]]
        if len(listed) < len(operation.outputs):
            raise NotImplementedError(f"it has {len(operation.outputs)} outputs, and {len(listed)} are expected")
        for tensor, made in zip(operation.outputs, listed, strict=False):
            if tensor in self.values or (tensor >= 0 and self.graph.tensors[tensor].data is not None):
                raise ModelError(f"{self.file.name}: {self.graph.tensors[tensor].name!r} is made twice")
            if tensor >= 0:
                self.values[tensor] = node.stored(made, tensor)


def _reason(operation: Operation) -> str:
    if operation.custom.startswith("Flex"):
        return "it needs TensorFlow itself (a Flex operator): convert the model without SELECT_TF_OPS"
    if operation.custom:
        return "perframe does not know this custom operator"
    return "perframe has no such operator"
