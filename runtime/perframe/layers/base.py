"""How a layer is declared: one function that gives its outputs' shapes, and what the families need besides.

A declaration's positional parameters are the layer's inputs (None where an optional one is absent), its keyword-
only parameters the attributes with their defaults. The registry finds the declarations by importing every file of
this folder.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from perframe.errors import InferenceError, ModelError, PerframeError
from perframe.layers.attributes import ANYTHING, Kind, kind_by_default, kind_of
from perframe.layers.entries import Entries
from perframe.sizes.traced import is_followed
from perframe.tensor import DataType, TensorShape
from perframe.tensor.checks import too_large
from perframe.tensor.partial import FOLLOWED, MAX_ENTRIES, PartialTensor

Attributes = Mapping[str, Any]
MAX_RANK = 64  # dims of a NumPy array
MAX_ACCEPTED = 1024  # values of attributes that a declaration remembers,
MAX_LENGTH = 64  # none of them longer
_FIXED = (tuple, int, float, str, DataType)
Infer = Callable[..., PartialTensor | tuple[PartialTensor, ...]]


class Known(Protocol):
    """An input or output whose shape and dtype are known, and its values if they are constant."""

    @property
    def shape(self) -> TensorShape:
        """The concrete shape."""

    @property
    def dtype(self) -> DataType:
        """The data type that the model declares."""

    @property
    def value(self) -> Any | None:
        """The values as an ndarray where they are known before the run."""


@dataclass(eq=False)
class Declaration:
    """All that is known of an operator: its inputs, attributes, shape rule, and the form its family's kernels take.

    `host` names the inputs whose values must be known before the layer can be planned (a shape, axes, ...). `alias`
    says that the output is the first input's data with another shape, `on_host` that the layer runs between plans, on
    arrays, because its output's shape depends on data or its values are no tensors. `joins` says that the output is
    the inputs side by side, and `cuts` that each output may be a piece of the first input: a backend need not copy them
    where they can lie so. `reads_values` is false where the inputs' shapes are all that matters. `limits` says between
    which numbers a formula clips its first input, from its parameters, and `body_for` which of a branch's bodies runs,
    from the value of its first input. `form` gives the family's canonical form for concrete shapes.
    """

    name: str
    family: str
    infer: Infer
    host: frozenset[str] = frozenset()
    alias: bool = False
    pure: bool = True
    on_host: bool = False
    joins: bool = False
    cuts: bool = False
    formula: Callable[..., Any] | None = None
    choose: Callable[..., Callable[..., Any] | None] | None = None
    domain: tuple[tuple[float, float], ...] = ()
    dtypes: str = "float"
    form_of: Callable[..., Any] | None = None
    reads_values: bool = True
    limits: Callable[..., tuple[float, float]] | None = None
    body_for: Callable[[Any], str] | None = None
    inputs: tuple[str, ...] = field(init=False)
    variadic: bool = field(init=False)
    takes_absent: bool = field(init=False)  # whether those of any number may be absent too
    required: int = field(init=False)
    attributes: dict[str, Any] = field(init=False)
    added: dict[str, Any] = field(init=False, default_factory=dict)
    _accepted: dict[tuple[str, int], Any] = field(init=False, default_factory=dict)  # they live on, so ids are theirs

    def __post_init__(self) -> None:
        parameters = inspect.signature(self.formula or self.infer).parameters.values()
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        variadic = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
        self.variadic, self.takes_absent = bool(variadic), any("None" in str(p.annotation) for p in variadic)
        self.inputs = tuple(p.name for p in positional)
        self.required = sum(p.default is p.empty for p in positional)
        self.attributes = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        self._needed = [name for name, default in self.attributes.items() if default is inspect.Parameter.empty]

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        """The formula on arrays, with NumPy: what every kernel of it is compared with."""
        if self.formula is None:
            raise ModelError(f"{self.name} has no formula")
        return self.formula(*inputs, **attributes)

    def form(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the canonical form: `function(inputs, outputs, **attributes)`."""
        self.form_of = function
        return function

    def with_defaults(self, attributes: Attributes) -> dict[str, Any]:
        """The attributes with their defaults filled in.

        Raises ModelError for unknown or missing ones, and InferenceError for values that they may not have.
        """
        bound = {**self.attributes, **attributes}
        if len(bound) != len(self.attributes):
            unknown = sorted(map(str, set(attributes) - set(self.attributes)))
            raise ModelError(f"{self.name} has no attribute {', '.join(unknown)}; it has {sorted(self.attributes)}")
        missing = [name for name in self._needed if name not in attributes]
        if missing:
            raise ModelError(f"{self.name} needs the attribute {', '.join(missing)}")
        for name, value in attributes.items():
            if self._accepted.get((name, id(value))) is not value:
                self._check(name, value)
        return bound

    def _check(self, name: str, value: Any) -> None:
        """Raise InferenceError for a value that an attribute may not have. A model's layers are bound again and again:
        what nobody can change is looked at once, unless it is long: what is remembered outlives its model.
        """
        kind = self.kinds[name]
        if not kind.accepts(value):
            raise InferenceError(f"the attribute {name} of {self.name} is {kind.one}, and not {value!r:.200}")
        if type(value) in _FIXED and not (type(value) in (tuple, str) and len(value) > MAX_LENGTH):
            if len(self._accepted) >= MAX_ACCEPTED:
                self._accepted.clear()
            self._accepted[name, id(value)] = value

    @functools.cached_property
    def kinds(self) -> dict[str, Kind]:
        """What each attribute may be."""
        function = self.formula or self.infer
        scope = {**getattr(function, "shared_scope", {}), **function.__globals__}
        kinds = dict.fromkeys(self.attributes, ANYTHING)
        for p in inspect.signature(function).parameters.values():
            if p.kind is p.KEYWORD_ONLY and p.annotation is not p.empty:
                said = eval(p.annotation, scope) if isinstance(p.annotation, str) else p.annotation  # our own source
                kinds[p.name] = kind_of(said)
            elif p.kind is p.KEYWORD_ONLY:
                kinds[p.name] = kind_by_default(p.default)
        return kinds | {name: kind_of(said) for name, said in self.added.items()}

    def add_attributes(self, **defaults: tuple[Any, Any]) -> None:
        """Declare attributes besides those of the parameters: (default, what it may be)."""
        self.attributes |= {name: default for name, (default, _) in defaults.items()}
        self.added |= {name: said for name, (_, said) in defaults.items()}

    def is_host(self, index: int) -> bool:
        """Whether the values of input `index` must be known before the layer is planned."""
        return index < len(self.inputs) and self.inputs[index] in self.host

    def outputs_for(self, inputs: Sequence[PartialTensor | None], attributes: Attributes) -> tuple[PartialTensor, ...]:
        """What is known of the outputs. Raises InferenceError with a reason."""
        if len(inputs) < self.required or None in inputs[: self.required]:
            raise InferenceError(f"{self.name} needs {self.required} input(s) {self.inputs}, and has {len(inputs)}")
        if self.variadic and not self.takes_absent and None in inputs[len(self.inputs) :]:
            raise InferenceError(f"{self.name} takes any number of inputs, and none of these may be absent")
        if len(inputs) > len(self.inputs) and not self.variadic:
            raise InferenceError(f"{self.name} takes at most {len(self.inputs)} input(s), and has {len(inputs)}")
        if not self.on_host and any([value is not None and value.kind != "tensor" for value in inputs]):
            raise InferenceError(f"{self.name} takes tensors, and an input is a sequence or an optional")
        bound = self.with_defaults(attributes)
        try:
            result = self.infer(*inputs, **bound)
            outputs = result if isinstance(result, tuple) else (result,)
            for output in outputs:
                if any([isinstance(dim, int) and dim < 0 for dim in output.shape or ()]):
                    raise InferenceError(f"an output would be {output}, and no dim may be negative")
                if output.shape is not None and len(output.shape) > MAX_RANK:
                    raise InferenceError(f"an output would have {len(output.shape)} dims, and {MAX_RANK} are the most")
                reason = too_large(output.shape, output.dtype) if output.shape else ""
                if reason:
                    raise InferenceError(f"an output would be too large: {reason}")
            return self._with_entries(inputs, outputs, bound)
        except PerframeError:
            raise
        except Exception as error:  # a file may say anything
            said = str(error) or type(error).__name__
            raise InferenceError(f"malformed inputs or attributes {dict(attributes)!r:.500}: {said}") from error

    def _with_entries(
        self, inputs: Sequence[PartialTensor | None], outputs: tuple[PartialTensor, ...], bound: Attributes
    ) -> tuple[PartialTensor, ...]:
        """The outputs with what follows for their values from those of the inputs, where the form says what does."""
        if not (self.alias or self.form_of is not None):
            return outputs
        given = [(index, value) for index, value in enumerate(inputs) if value is not None]
        if not given or not all(
            [value.is_followed and (value.value is not None or not self.is_host(i)) for i, value in given]
        ):
            return outputs
        if not all(map(_is_small, outputs)):
            return outputs
        source, shape = given[0][1].value, outputs[0].shape
        if self.alias and source is not None and shape is not None:
            return (PartialTensor(outputs[0].dtype, shape, source.reshape(shape.to_shape())), *outputs[1:])
        if self.alias:
            forms: list[Any] = [_AsItIs()]
        else:
            assert self.form_of is not None
            form = self.form_of(inputs, outputs, **bound)
            forms = form if isinstance(form, list) else [form]
        made = list(outputs)
        for index, (form, output) in enumerate(zip(forms, outputs, strict=False)):
            if hasattr(form, "of_entries") and output.shape is not None:
                entries = form.of_entries(inputs, output).reshape(output.shape.to_shape())
                made[index] = PartialTensor.of_entries(output.dtype, entries)
        return tuple(made)


class _AsItIs:
    """The form of a layer that gives its input another shape."""

    def of_entries(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Entries:
        """The first input's."""
        assert inputs[0] is not None and inputs[0].known is not None
        return inputs[0].known


def _is_small(output: PartialTensor) -> bool:
    if output.shape is None or output.dtype not in FOLLOWED:
        return False
    size = output.shape.size
    return size is not None and not is_followed(size) and size <= MAX_ENTRIES


_REGISTRY: dict[str, Declaration] = {}


def register(declaration: Declaration) -> Declaration:
    """Add a declaration; a name can be declared once."""
    if declaration.name in _REGISTRY:
        raise ValueError(f"layer {declaration.name} is declared twice")
    _REGISTRY[declaration.name] = declaration
    return declaration


def attributes_of(other: Callable[..., Any]) -> Callable[[Infer], Infer]:
    """Below `layer`: besides its own attributes the shape rule takes those of another function, as `**attributes`."""
    shared = [p for p in inspect.signature(other).parameters.values() if p.kind is p.KEYWORD_ONLY]

    def extend(infer: Infer) -> Infer:
        own = [p for p in inspect.signature(infer).parameters.values() if p.kind is not p.VAR_KEYWORD]
        first = [p for p in own if p.kind is not p.KEYWORD_ONLY]
        infer.__signature__ = inspect.Signature([*first, *shared, *own[len(first) :]])  # type: ignore[attr-defined]
        infer.shared_scope = other.__globals__  # type: ignore[attr-defined]  # where their annotations were written
        return infer

    return extend


def layer(
    *,
    host: Sequence[str] = (),
    alias: bool = False,
    pure: bool = True,
    on_host: bool = False,
    joins: bool = False,
    cuts: bool = False,
    family: str | None = None,
) -> Callable[[Infer], Declaration]:
    """Declare a layer by its shape rule. The family is the name of the file, unless said otherwise."""

    def declare(infer: Infer) -> Declaration:
        home = family or infer.__module__.rsplit(".", 1)[-1]
        needed = frozenset(host)
        return register(Declaration(infer.__name__, home, infer, needed, alias, pure, on_host, joins, cuts))

    return declare


@functools.cache
def registry() -> Mapping[str, Declaration]:
    """All declarations, by operator name."""
    import perframe.layers as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"perframe.layers.{module.name}")
    return _REGISTRY


def declaration(name: str) -> Declaration:
    """The declaration of an operator. Raises ModelError."""
    found = registry().get(name)
    if found is None:
        raise ModelError(f"there is no layer {name!r}")
    return found


def normalize_axis(axis: int, rank: int) -> int:
    """An axis counted from the front. Raises InferenceError."""
    if not -rank <= axis < max(rank, 1):
        raise InferenceError(f"axis {axis} is outside a tensor of rank {rank}")
    return axis % rank if rank else 0


def normalize_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, in ascending order. Raises InferenceError."""
    result = tuple(sorted(normalize_axis(axis, rank) for axis in axes))
    if len(set(result)) != len(result):
        raise InferenceError(f"axes {tuple(axes)} name one axis twice")
    return result
