"""Declarations of layers: one function gives the shapes of a layer's outputs, and decorators add the rest.

The positional parameters of that function are the layer's inputs; an absent optional input is None. Its keyword-only
parameters are the attributes, with their defaults. A declaration is found by its operator's name: `ir/index.py` tells
the file of `layers/`, and only that file is imported.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

from perframe.errors import InferenceError, ModelError, PerframeError
from perframe.ir.attributes import ANYTHING, Kind, kind_by_default, kind_of
from perframe.ir.family_files import family_at
from perframe.ir.form import Followed
from perframe.ir.index import FILE_OF
from perframe.ir.installed import import_installed
from perframe.ir.known import Known as Known
from perframe.ir.shape_arithmetic import FOLLOWED, MAX_VALUES, Values, is_followed, numbers_of
from perframe.ir.sizes.partial import PartialTensor
from perframe.ir.sizes.size import is_symbolic, plain
from perframe.ir.traits import FAMILIES_OF_NUMBERS, Drawn, Pointwise, Traits
from perframe.safety.records import dataclass
from perframe.safety.wording import did_you_mean
from perframe.tensor import DataType
from perframe.tensor.checks import too_large

Attributes = Mapping[str, Any]
ONNX_DOMAINS = ("", "ai.onnx")
LAYERS = "perframe.layers"  # the package of the layers, and the entry points that name those of installed packages
MAX_RANK = 64  # dims of a NumPy array
MAX_ACCEPTED = 1024  # values of attributes that a declaration remembers
MAX_LENGTH = 64  # a declaration does not remember a longer tuple or text
DATA_ERRORS = (ValueError, LookupError, ArithmeticError, MemoryError)  # which numbers in a file cause in a right rule
_FIXED = (tuple, int, float, str, DataType)
Infer = Callable[..., PartialTensor | tuple[PartialTensor, ...]]
Input = TypeVar("Input")


@dataclass(eq=False)
class Declaration(Traits, Pointwise, Drawn):
    """An operator's inputs, attributes, shape rule, and the canonical form that its family's kernels take.

    `form` declares a function that gives the family's canonical form for concrete shapes, and `compute` one that
    computes the outputs with NumPy. The name of a layer from outside is "domain::operator".
    """

    name: str
    family: str
    infer: Infer
    form_of: Callable[..., Any] | None = field(init=False, default=None)
    computed_by: Callable[..., Any] | None = field(init=False, default=None)
    inputs: tuple[str, ...] = field(init=False)
    variadic: bool = field(init=False)
    takes_absent: bool = field(init=False)  # whether variadic inputs may be absent too
    required: int = field(init=False)
    attributes: dict[str, Any] = field(init=False)
    added: dict[str, Any] = field(init=False, default_factory=dict)
    _accepted: dict[tuple[str, int], Any] = field(init=False, default_factory=dict)  # keeps values alive for their ids

    def __post_init__(self) -> None:
        parameters = inspect.signature(self.formula or self.infer).parameters.values()
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        variadic = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
        self.variadic, self.takes_absent = bool(variadic), any("None" in str(p.annotation) for p in variadic)
        self.inputs = tuple(p.name for p in positional)
        self.required = sum(p.default is p.empty for p in positional)
        self.attributes = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        self._needed = [name for name, default in self.attributes.items() if default is inspect.Parameter.empty]

    @property
    def is_pointwise(self) -> bool:
        """Whether each element comes from the elements at its place alone. Its dims may then have any order."""
        return self.family == "elementwise" and not self.channelwise

    @property
    def origin(self) -> str:
        """The module and the name of the function that declares the layer."""
        function = self.formula or self.infer
        return f"{function.__module__}.{function.__qualname__}"

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        """Apply the formula to arrays with NumPy. Tests compare every kernel of the formula with this."""
        if self.formula is None:
            raise ModelError(f"{self.name} has no formula")
        return self.formula(*inputs, **attributes)

    def form(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the canonical form: `function(inputs, outputs, **attributes)`. An absent input is None."""
        self.form_of = function
        return function

    def compute(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the values, instead of a family: `function(inputs, outputs, **attributes)` returns a list of arrays.

        `inputs` are arrays, None where one is absent. `outputs` have the shapes and dtypes that the arrays are to have.
        """
        self.computed_by = function
        return function

    def complete(self, inputs: Sequence[Input | None]) -> Sequence[Input | None]:
        """Return the inputs with None for each absent one at the end."""
        absent = 0 if self.variadic else len(self.inputs) - len(inputs)
        return (*inputs, *(None,) * absent) if absent > 0 else inputs

    def canonical(self, inputs: Sequence[Any], outputs: Sequence[Any], attributes: Attributes) -> Any:
        """Return the canonical form for these inputs, outputs and attributes, all of them given.

        Raises ModelError if the operator has none.
        """
        if self.form_of is None:
            raise ModelError(f"{self.name} has no canonical form")
        return self.form_of(self.complete(inputs), outputs, **attributes)

    def with_defaults(self, attributes: Attributes) -> dict[str, Any]:
        """Return the attributes, with defaults for those that are not given.

        Raises ModelError for an unknown or a missing attribute, and InferenceError for a value that is not allowed.
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
        """Raise InferenceError for a value that the attribute may not have.

        A model's layers are bound again and again, so an immutable value is checked only once. Long values are checked
        each time: a remembered value outlives its model.
        """
        kind = self.kinds[name]
        if not kind.accepts(value):
            raise InferenceError(f"the attribute {name} of {self.name} is {kind.one}, not {value!r:.200}")
        if type(value) in _FIXED and not (type(value) in (tuple, str) and len(value) > MAX_LENGTH):
            if len(self._accepted) >= MAX_ACCEPTED:
                self._accepted.clear()
            self._accepted[name, id(value)] = value

    @functools.cached_property
    def kinds(self) -> dict[str, Kind]:
        """The values that each attribute may have."""
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
        """Declare further attributes, each as (default, annotation of the values that it may have)."""
        self.attributes |= {name: default for name, (default, _) in defaults.items()}
        self.added |= {name: said for name, (_, said) in defaults.items()}

    def is_host(self, index: int) -> bool:
        """Whether the values of input `index` must be known before the layer is planned."""
        return index < len(self.inputs) and self.inputs[index] in self.host

    def is_followed(self, index: int) -> bool:
        """Whether templates of plans can follow the numbers of input `index`."""
        return index < len(self.inputs) and self.inputs[index] in self.followed

    def is_spatial(self, index: int) -> bool:
        """Whether input `index` has the channels last where the layer has. Weights, biases and scales never do."""
        return index < len(self.inputs) and self.inputs[index] in self.spatial

    def outputs_for(self, inputs: Sequence[PartialTensor | None], attributes: Attributes) -> tuple[PartialTensor, ...]:
        """Return the outputs as partial tensors. Raises InferenceError with a reason."""
        if len(inputs) < self.required or None in inputs[: self.required]:
            raise InferenceError(f"{self.name} needs {self.required} input(s) {self.inputs}, and has {len(inputs)}")
        if self.variadic and not self.takes_absent and None in inputs[len(self.inputs) :]:
            raise InferenceError(f"{self.name} takes any number of inputs, and none of these may be absent")
        if len(inputs) > len(self.inputs) and not self.variadic:
            raise InferenceError(f"{self.name} takes at most {len(self.inputs)} input(s), and has {len(inputs)}")
        if not self.on_host and any([value is not None and value.kind != "tensor" for value in inputs]):
            raise InferenceError(f"{self.name} takes tensors, and an input is a sequence or an optional")
        if self.family in FAMILIES_OF_NUMBERS and not self.strings:
            for index, value in enumerate(inputs):
                if value is not None and value.dtype is DataType.STRING:
                    name = repr(self.inputs[index]) if index < len(self.inputs) else index
                    raise InferenceError(f"{self.name} takes numbers, and its input {name} holds strings")
        bound = self.with_defaults(attributes)
        try:
            result = self.infer(*inputs, **bound)
            outputs = result if isinstance(result, tuple) else (result,)
            if not (self.alias or self.on_host):  # a rule that returns an input means its shape, and not its values
                outputs = tuple([x.with_shape(x.shape) if x in inputs else x for x in outputs])
            for output in outputs:
                if any([isinstance(dim, int) and dim < 0 for dim in output.shape or ()]):
                    raise InferenceError(f"an output would be {output}, and no dim may be negative")
                if output.shape is not None and len(output.shape) > MAX_RANK:
                    raise InferenceError(
                        f"an output would have {len(output.shape)} dims, and at most {MAX_RANK} are possible"
                    )
                if output.is_static() and (reason := too_large(map(plain, output.shape or ()), output.dtype)):
                    raise InferenceError(f"an output would be too large: {reason}")
            return self._with_values(inputs, outputs, bound)
        except PerframeError:
            raise
        except DATA_ERRORS as error:
            raise InferenceError(f"malformed inputs or attributes {dict(attributes)!r:.500}: {_said(error)}") from error
        except Exception as error:  # it ends in an error of ours even so: a file may have brought it about
            raise InferenceError(f"the shape rule of {self.name} has a fault: {_said(error)}") from error

    def _with_values(
        self, inputs: Sequence[PartialTensor | None], outputs: tuple[PartialTensor, ...], bound: Attributes
    ) -> tuple[PartialTensor, ...]:
        """Return the outputs with the values that follow from the values of the inputs, if the form computes them."""
        if not (self.alias or self.form_of is not None):
            return outputs
        given = [(index, value) for index, value in enumerate(inputs) if value is not None]
        if not given or not all(
            [is_followed(value) and (value.value is not None or not self.is_host(i)) for i, value in given]
        ):
            return outputs
        if not all(map(_is_small, outputs)):
            return outputs
        source, shape = given[0][1].value, outputs[0].shape
        if self.alias and source is not None and shape is not None:
            return (PartialTensor(outputs[0].dtype, shape, source.reshape(shape.to_shape())), *outputs[1:])
        if self.alias:
            forms: list[Any] = [_SameValues()]
        else:
            form = self.canonical(inputs, outputs, bound)
            forms = form if isinstance(form, list) else [form]
        made = list(outputs)
        for index, (form, output) in enumerate(zip(forms, outputs, strict=False)):
            if isinstance(form, Followed) and output.shape is not None:
                values = form.of_values(inputs, output).reshape(output.shape.to_shape())
                made[index] = PartialTensor.of_values(output.dtype, values)
        return tuple(made)


def _said(error: Exception) -> str:
    """What an error says, and the line that raised it."""
    import traceback  # imported late: only errors need it

    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{str(error) or type(error).__name__} ({Path(at.filename).name}, line {at.lineno})"


class _SameValues(Followed):
    """The form of a layer that gives its input another shape."""

    def of_values(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Values:
        """Return the values of the first input."""
        assert inputs[0] is not None
        return numbers_of(inputs[0])


def _is_small(output: PartialTensor) -> bool:
    if output.shape is None or output.dtype not in FOLLOWED:
        return False
    size = output.shape.size
    return size is not None and not is_symbolic(size) and size <= MAX_VALUES


REGISTRY: dict[str, Declaration] = {}  # what was imported so far; a file that is being imported may be incomplete
FOUND: dict[str, Declaration] = {}  # the declarations that were looked up; their files are complete


def register(declaration: Declaration) -> Declaration:
    """Add a declaration. Raises ModelError if its name is declared elsewhere.

    A function that is read again, as in a notebook, replaces its earlier declaration.
    """
    if not declaration.origin.startswith(f"{LAYERS}."):
        _import_file_of(declaration.name)
    earlier = REGISTRY.get(declaration.name)
    if earlier is not None and earlier.origin != declaration.origin:
        raise ModelError(f"layer {declaration.name} is declared twice: in {earlier.origin} and in {declaration.origin}")
    REGISTRY[declaration.name] = declaration
    FOUND.pop(declaration.name, None)
    return declaration


def full_name(operator: str, domain: str) -> str:
    """Return the name under which an operator is declared: "domain::operator", or the operator if it is ONNX's own."""
    return f"{domain}::{operator}" if domain not in ONNX_DOMAINS else operator


def attributes_of(other: Callable[..., Any]) -> Callable[[Infer], Infer]:
    """Give a shape rule the attributes of another function too, as `**attributes`. Stands below `layer`."""
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
    followed: Sequence[str] = (),
    spatial: Sequence[str] = (),
    alias: bool = False,
    pure: bool = True,
    on_host: bool = False,
    joins: bool = False,
    cuts: bool = False,
    family: str | None = None,
    domain: str = "",
) -> Callable[[Infer], Declaration]:
    """Declare a layer by its shape rule.

    `family` names a family of perframe whose form the layer has; by default the family's files are the layer's own.
    `domain` is that of the operator in ONNX models. The other parameters are those of `Traits`.
    """

    def declare(infer: Infer) -> Declaration:
        name, place = full_name(infer.__name__, domain), family or family_at(infer.__module__, infer.__name__)
        flags: dict[str, Any] = {"alias": alias, "pure": pure, "on_host": on_host, "joins": joins, "cuts": cuts}
        names: dict[str, Any] = {
            "host": frozenset(host),
            "followed": frozenset(followed),
            "spatial": frozenset(spatial),
        }
        return register(Declaration(name, place, infer, **names, **flags))

    return declare


@functools.cache
def registry() -> Mapping[str, Declaration]:
    """All declarations, by operator name. It imports every file of `layers/`."""
    from pkgutil import iter_modules  # imported late: models need a few files only

    for module in iter_modules(importlib.import_module(LAYERS).__path__):
        importlib.import_module(f"{LAYERS}.{module.name}")
    return REGISTRY


def _import_file_of(operator: str) -> None:
    if operator in FILE_OF:
        importlib.import_module(f"{LAYERS}.{FILE_OF[operator]}")


def find_declaration(name: str) -> Declaration | None:
    """Return the declaration of an operator; None if there is none. Other domains are looked for in installed packages.

    Raises ModelError if a package that names layers cannot be imported.
    """
    found = FOUND.get(name)
    if found is None:
        _import_file_of(name)
        found = REGISTRY.get(name) or registry().get(name)
        if found is None and "::" in name:
            import_installed(LAYERS, "layers")
            found = REGISTRY.get(name)
        if found is not None:
            FOUND[name] = found
    return found


def declaration(name: str) -> Declaration:
    """The declaration of an operator. Raises ModelError."""
    found = find_declaration(name)
    if found is None:
        hint = did_you_mean(name, {*FILE_OF, *REGISTRY}).strip() or "import the file that declares it" * ("::" in name)
        raise ModelError(f"there is no layer {name!r}{': ' * bool(hint)}{hint}")
    return found


def normalize_axis(axis: int, rank: int) -> int:
    """Return the axis counted from the front. Raises InferenceError if the tensor has no such axis."""
    if not -rank <= axis < max(rank, 1):
        raise InferenceError(f"axis {axis} is outside a tensor of rank {rank}")
    return axis % rank if rank else 0


def normalize_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the axes counted from the front, in ascending order.

    Raises InferenceError if the tensor has no such axis, or an axis is given twice.
    """
    result = tuple(sorted(normalize_axis(axis, rank) for axis in axes))
    if len(set(result)) != len(result):
        raise InferenceError(f"axes {tuple(axes)} name an axis twice")
    return result
