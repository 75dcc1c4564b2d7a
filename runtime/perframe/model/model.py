"""A model: inputs, outputs, layers in run order, constants. Values have names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InferenceError, ModelError, PerframeError
from perframe.layers.base import Declaration, Known, declaration
from perframe.layers.channels_last import Seen, channels_last_outputs, is_data
from perframe.layers.epilogue import Stage
from perframe.layers.twins import inference_key, signature
from perframe.model.dims import check_dims, shape_with
from perframe.model.report import OptimizationReport
from perframe.safety import notebooks
from perframe.tensor import DataType
from perframe.tensor.partial import DynamicTensorShape, PartialTensor

Array = NDArray[Any]
Evaluate = Callable[["Layer", Sequence[Array | None]], list[Array]]


@dataclass(frozen=True)
class Value:
    """A model's input or output: its name, dtype and shape (None if the rank is unknown)."""

    name: str
    dtype: DataType
    shape: DynamicTensorShape | None
    kind: str = "tensor"  # or "sequence" of tensors, or "optional"
    element_kind: str = "tensor"  # of an optional

    @property
    def spec(self) -> PartialTensor:
        """The declared dtype, kind and shape, as a partial tensor."""
        return PartialTensor(self.dtype, self.shape, kind=self.kind, element_kind=self.element_kind)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} {'of unknown rank' if self.shape is None else self.shape}"


@dataclass(eq=False)
class Layer:
    """One operation. Inputs and outputs are names of values; the name of an absent optional one is "".

    `epilogue` is applied to each element of the first output. A layer with `on_host` is shape arithmetic and runs on
    the CPU, whatever the backend. With `channels_last` the layer's data (not its weights) has the channels as the last
    dim, instead of the second. A layer that `is_wide` may read or make integers that 32 bits do not hold.
    """

    op: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    epilogue: tuple[Stage, ...] = ()
    on_host: bool = False
    channels_last: bool = False
    is_wide: bool = False

    @property
    def declaration(self) -> Declaration:
        """The declaration of its operator."""
        return declaration(self.op)

    @property
    def family(self) -> str:
        """The family whose kernels run it."""
        return self.declaration.family

    def form(self, inputs: Sequence[Known | None], outputs: Sequence[Known | None]) -> Any:
        """Return the canonical form of its family for these shapes.

        Raises ModelError if the operator has no form, and InferenceError if the inputs or attributes do not fit.
        """
        entry = self.declaration
        if entry.form_of is None:
            raise ModelError(f"layer {self.name!r} ({self.op}) has no canonical form")
        seen, made = inputs, outputs
        if self.channels_last:
            seen = [Seen.channels_first(value) if is_data(entry, i) else value for i, value in enumerate(inputs)]
            made = [Seen.channels_first(value) for value in outputs]
        try:
            return entry.form_of(seen, made, **entry.with_defaults(self.attributes))
        except PerframeError as error:
            raise self._named(error, inputs) from None
        except Exception as error:  # a file may say anything
            raise self._named(error, inputs) from error

    def _named(self, error: Exception, inputs: Sequence[Any]) -> InferenceError:
        """Return an error that names the layer and its inputs."""
        listed = ", ".join(
            f"{name or '(absent)'}: {'' if value is None else f'{value.dtype} {value.shape}'}"
            for name, value in zip(self.inputs, inputs, strict=False)
        )
        said = str(error) or type(error).__name__
        return InferenceError(f"layer {self.name!r} ({self.op}): {said} [inputs {listed}]")

    def infer(self, inputs: Sequence[PartialTensor | None]) -> tuple[PartialTensor, ...]:
        """Return its outputs as partial tensors.

        Raises InferenceError that names the layer and its inputs.
        """
        trimmed = list(inputs)
        while trimmed and trimmed[-1] is None and not self.declaration.variadic:
            trimmed.pop()
        try:
            if self.channels_last:
                results = channels_last_outputs(self.declaration, trimmed, self.attributes)
            else:
                results = self.declaration.outputs_for(trimmed, self.attributes)
            if len(results) < len(self.outputs):
                raise InferenceError(
                    f"from these inputs it makes {len(results)} output(s), and the model names {len(self.outputs)}"
                )
            if self.epilogue:  # the declaration knows the values before it
                results = (results[0].with_shape(results[0].shape), *results[1:])
            return results
        except PerframeError as error:
            raise self._named(error, inputs) from None

    def __str__(self) -> str:
        return f"{self.op} {self.name!r}: {', '.join(self.inputs)} -> {', '.join(self.outputs)}"


class Names:
    """The taken names of a model, so that new values and layers get unique names."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    def free(self, like: str) -> str:
        """Take and return a free name: `like`, or `like:1`, `like:2`, ... if `like` is taken."""
        name, count = like, self._counts.get(like, 0)
        while name in self._taken:
            count += 1
            name = f"{like}:{count}"
        self._counts[like] = count
        self._taken.add(name)
        return name

    def release(self, names: Iterable[str]) -> None:
        """Make names free again."""
        self._taken.difference_update(names)


@dataclass(frozen=True)
class _Inferred:
    """The inferred outputs of a layer, with the state of the layer and the inputs that they were inferred from."""

    layer: Layer
    op: str
    attributes: dict[str, Any]
    epilogue: tuple[Stage, ...]
    channels_last: bool
    given: list[PartialTensor | None]
    results: tuple[PartialTensor, ...]

    def is_of(self, layer: Layer, given: list[PartialTensor | None]) -> bool:
        """Whether the results still hold for this layer and these inputs. The inputs must be the same objects."""
        return (
            self.layer is layer
            and len(self.given) == len(given)
            and all([one is other for one, other in zip(self.given, given, strict=True)])
            and self.epilogue is layer.epilogue
            and self.channels_last == layer.channels_last
            and self.op == layer.op
            and self.attributes == layer.attributes
        )


class Model:
    """A network that can be optimized, saved, and run by a worker. Passes change it; workers only read it."""

    def __init__(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        layers: Sequence[Layer],
        constants: Mapping[str, Array],
        name: str = "model",
    ) -> None:
        self.name = name
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.layers = list(layers)
        self.constants = dict(constants)
        self.producer = ""  # the program that made the file, with its version
        self.opsets: dict[str, int] = {}  # of the file, by domain
        self.fixed_inputs: frozenset[str] = frozenset()  # inputs of the file that have a value there: constants here
        self.optimized = False  # whether all passes have run; who changes the layers by hand sets it back
        self.preparations: int | None = None  # the passes of a backend that may change it, in number; None for all
        self.report: OptimizationReport | None = None  # of the passes; None if they did not run
        self.check_file: Callable[[], None] | None = None  # raises ModelError if a mapped file has changed in place
        self._inferred: dict[Hashable, tuple[PartialTensor, ...]] = {}  # outputs by `inference_key`
        self._remembers = False
        self._before: dict[int, _Inferred] = {}  # the last inference of each layer, by its id
        self._specs: dict[str, tuple[Any, PartialTensor]] = {}  # of constants and inputs

    def producers(self) -> dict[str, Layer]:
        """Return the layer that makes each value, by the value's name."""
        return {name: layer for layer in self.layers for name in layer.outputs if name}

    def users(self) -> dict[str, list[Layer]]:
        """Return the layers that read each value, by the value's name; each layer once."""
        users: dict[str, list[Layer]] = {}
        for layer in self.layers:
            for name in dict.fromkeys(layer.inputs):
                if name:
                    users.setdefault(name, []).append(layer)
        return users

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return [value.name for value in self.outputs]

    def rename(self, old: str, new: str) -> None:
        """Make every layer that reads `old` read `new`."""
        for layer in self.layers:
            layer.inputs = [new if name == old else name for name in layer.inputs]

    @property
    def names(self) -> Names:
        """The names of all current values."""
        made = (name for layer in self.layers for name in layer.outputs)
        return Names((*(value.name for value in self.inputs), *self.constants, *made))

    def add_constant(self, name: str, value: Array) -> str:
        """Add a constant under a free name like `name`, and return that name."""
        unique, count = name, 0
        while (
            unique in self.constants
            or any([value.name == unique for value in self.inputs])
            or any([unique in layer.outputs for layer in self.layers])
        ):
            count += 1
            unique = f"{name}_{count}"
        self.constants[unique] = value
        return unique

    def fix_dims(self, dims: Mapping[str, int]) -> None:
        """Fix open dims of the inputs, and dims of the outputs that have the same names. A dim without a name is called
        INPUT:AXIS.

        Raises ModelError for a name that no input has, and for a value that is not a size.
        """
        check_dims(self.name, self.inputs, dims)
        self.inputs[:] = [replace(value, shape=shape_with(value, dims)) for value in self.inputs]
        self.outputs[:] = [
            value if value.shape is None else replace(value, shape=value.shape.with_dims(dims))
            for value in self.outputs
        ]

    def keep_outputs(self, names: Sequence[str]) -> None:
        """Make these values the outputs, in this order: outputs, or intermediate values. The layers that no output
        needs go with the next pass. Raises ModelError for any other name.
        """
        if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
            raise ModelError(f"outputs are names of values, such as ['scores'], not {names!r}")
        declared, made = {value.name: value for value in self.outputs}, self.producers()
        unknown = [name for name in names if name not in declared and name not in made]
        if unknown:
            close = get_close_matches(unknown[0], [*declared, *made], 3)
            raise ModelError(
                f"{self.name} makes no value named {', '.join(map(repr, unknown))}; "
                f"{'close are ' + ', '.join(map(repr, close)) if close else 'its outputs are ' + ', '.join(declared)}"
            )
        if len(set(names)) < len(names):
            raise ModelError(f"an output is named twice: {', '.join(names)}")
        known = self.infer() if any(name not in declared for name in names) else {}
        specs = {name: known[name] for name in names if name not in declared}
        declared |= {name: Value(name, s.dtype, s.shape, s.kind, s.element_kind) for name, s in specs.items()}
        self.outputs = [declared[name] for name in names]

    def infer(self, inputs: Mapping[str, PartialTensor] | None = None) -> dict[str, PartialTensor]:
        """Return every value as a partial tensor. `inputs` may refine the declared shapes of the inputs.

        Raises InferenceError.
        """
        known = {name: self._spec_of(name, value) for name, value in self.constants.items()}
        known |= {value.name: self._spec_of(value.name, value) for value in self.inputs}
        known |= inputs or {}
        for layer in self.layers:
            given = [known[name] if name else None for name in layer.inputs]
            before = self._before.get(id(layer))
            if before is None or not before.is_of(layer, given):
                before = self._infer(layer, given)
            results = before.results
            known.update([(name, spec) for name, spec in zip(layer.outputs, results, strict=False) if name])
        return known

    def _spec_of(self, name: str, value: Array | Value) -> PartialTensor:
        """Return the PartialTensor of a constant or an input; the same object as long as the value does not change."""
        cached, spec = self._specs.get(name, (None, None))
        if cached is not value or spec is None:
            spec = value.spec if isinstance(value, Value) else PartialTensor.of(value)
            if self._remembers:
                self._specs[name] = value, spec
        return spec

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Remember inferred values within the `with` block. No array may be changed in place there."""
        outer, self._remembers = self._remembers, True
        try:
            yield
        finally:
            self._remembers = outer
            if not outer:
                self._before.clear()
                self._specs.clear()

    def _infer(self, layer: Layer, given: list[PartialTensor | None]) -> _Inferred:
        """Infer a layer, or reuse the result of a layer like it: passes infer again and again, and layers are alike."""
        same = signature(layer)
        key = None if same is None else inference_key(layer, same, given)
        results = None if key is None else self._inferred.get(key)
        if results is None:
            results = layer.infer(given)
            if key is not None:
                self._inferred[key] = results
        made = _Inferred(
            layer, layer.op, dict(layer.attributes), layer.epilogue, layer.channels_last, given, tuple(results)
        )
        if same is not None and self._remembers:
            self._before[id(layer)] = made
        return made

    def verify(self) -> None:
        """Raise ModelError if a value is read before it is made, made twice, or missing."""
        made = {value.name for value in self.inputs} | set(self.constants)
        for layer in self.layers:
            missing = [name for name in layer.inputs if name and name not in made]
            if missing:
                raise ModelError(
                    f"{self.name}: layer {layer.name!r} ({layer.op}) reads {missing[0]!r}, which no earlier layer makes"
                )
            for name in layer.outputs:
                if name and name in made:
                    raise ModelError(f"{self.name}: {name!r} is made twice, the second time by layer {layer.name!r}")
                made.add(name)
        missing = [name for name in self.output_names if name not in made]
        if missing:
            raise ModelError(f"{self.name}: no layer makes the output {missing[0]!r}")

    @property
    def parameter_count(self) -> int:
        """The number of elements of all constants."""
        return sum(int(np.size(value)) for value in self.constants.values())

    def _repr_html_(self) -> str | None:
        """The graph page, for notebooks."""
        page = notebooks.pages.get("Model")
        return None if page is None else page(self)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {len(self.layers)} layers, {self.parameter_count} parameters)"
