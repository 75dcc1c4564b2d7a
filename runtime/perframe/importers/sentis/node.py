"""A layer of a .sentis file on its way to our layers: what its adapter asks for, and adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from perframe.importers.builder import Builder
from perframe.importers.node import LayerMaker
from perframe.importers.sentis.file import ABSENT, SentisOperation
from perframe.importers.sentis.file import Value as Stored
from perframe.importers.sentis.kinds import ACTIVATIONS, DTYPES, ENUMERATIONS, KindArgument, LayerKind
from perframe.ir import Value
from perframe.tensor import DataType

INT_MAX = 2**31 - 1
_TYPES: Mapping[str, type] = {"f": float, "b": bool, "s": str, "I": tuple, "F": tuple}


class Tensors(Protocol):
    """The tensors of a file that is being imported."""

    builder: Builder
    version: int
    origins: dict[Value, Value]  # of int32 values, the int64 or bool values that they were cast from

    def value(self, number: int) -> Value:
        """Return the value of a tensor."""
        ...


class SentisNode(LayerMaker):
    """One layer of a file. Its inputs and arguments are read by the names in `kinds.py`."""

    def __init__(self, tensors: Tensors, operation: SentisOperation, kind: LayerKind, like: str) -> None:
        super().__init__(tensors.builder, like)
        self.tensors, self.operation, self.kind = tensors, operation, kind
        given, named = operation.inputs, kind.inputs
        least = sum(not one.is_optional for one in named)
        if not kind.is_variadic and not least <= len(given) <= len(named):
            raise ValueError(f"it has {len(given)} inputs")
        absent = (*given, *(ABSENT,) * (len(named) - len(given)))
        self._inputs = {one.name: (one, number) for one, number in zip(named, absent, strict=False)}
        self._arguments = _arguments(operation.arguments, kind, tensors.version)

    # --- inputs ---

    def has(self, name: str) -> bool:
        """Whether the layer has this input."""
        return self._inputs[name][1] != ABSENT

    def x(self, name: str) -> Value:
        """Return an input in the form that layers of ours take: int64 or bool where `kinds.py` says so."""
        declared, number = self._inputs[name]
        if number == ABSENT:
            raise ValueError(f"its input {name} is absent")
        value = self.tensors.value(number)
        return self.long(value) if declared.form == "#" else self.truth(value) if declared.form == "!" else value

    def optional(self, name: str) -> Value | None:
        """Return an input; None if it is absent."""
        return self.x(name) if self.has(name) else None

    def all(self) -> list[Value]:
        """Return all inputs. Raises ValueError if there are none, or one is absent."""
        if not self.operation.inputs or ABSENT in self.operation.inputs:
            raise ValueError("one of its inputs is absent")
        return [self.tensors.value(number) for number in self.operation.inputs]

    def long(self, value: Value) -> Value:
        """Return an int32 value as int64; the int64 value that it was made of, if there is one."""
        origin = self.tensors.origins.get(value)
        return origin if origin is not None and origin.spec.dtype is DataType.INT64 else super().long(value)

    def truth(self, value: Value) -> Value:
        """Return an int32 value as bool: whether it is not 0."""
        origin = self.tensors.origins.get(value)
        return origin if origin is not None and origin.spec.dtype is DataType.BOOL else self.cast(value, DataType.BOOL)

    def int32(self, value: Value) -> Value:
        """Return an int64 or bool value as int32, the dtype of the file's integers."""
        if value.spec.dtype is DataType.INT32:
            return value
        made = self.cast(value, DataType.INT32)
        self.tensors.origins[made] = value
        return made

    def whole(self, name: str) -> int:
        """Return an input that is one integer. Raises NotImplementedError if it is not known."""
        return self.wholes(name, 1)[0]

    def wholes(self, name: str, count: int | None = None) -> list[int]:
        """Return an input that lists integers. Raises NotImplementedError if they are not known."""
        found = self.known(self.x(name))
        if found is None:
            raise NotImplementedError(f"its input {name} is not a constant")
        if found.dtype.kind not in "iu" or (count is not None and found.size != count):
            raise ValueError(f"its input {name} is {found.dtype} of shape {found.shape}")
        return [int(number) for number in found.reshape(-1)]

    # --- arguments ---

    def __getitem__(self, name: str) -> Any:
        """Return an argument."""
        return self._arguments[name]

    def attributes(self) -> dict[str, Any]:
        """Return all arguments but those that are None."""
        return {name: value for name, value in self._arguments.items() if value is not None}

    def seed(self) -> dict[str, Any]:
        """Return the seed of random numbers, if the layer has one, as an attribute."""
        return {"seed": float(self["seed"])} if self["has_seed"] else {}

    def activated(self, value: Value) -> Value:
        """Return a value after the activation that the layer fuses."""
        return self(self["activation"], value) if self["activation"] else value


def _arguments(given: Sequence[Stored], kind: LayerKind, version: int) -> dict[str, Any]:
    """Return the arguments by name. Raises ValueError if one is missing or of another type."""
    stored = kind.stored(version)
    if version == 1 and len(given) == len(stored) + 1 and isinstance(given[-1], str):
        given = given[:-1]  # the first writer added the layer's name
    if len(given) != len(stored):
        raise ValueError(f"it has {len(given)} arguments, and version {version} has {len(stored)}")
    found = {one.name: _decoded(one, value) for one, value in zip(stored, given, strict=True)}
    for one in kind.arguments:
        if one.name not in found:
            found[one.name] = None if one.default is None else _decoded(one, _default(one))
    return found


def _default(argument: KindArgument) -> Stored:
    number = argument.default or 0
    return bool(number) if argument.code == "b" else float(number) if argument.code == "f" else number


def _decoded(argument: KindArgument, value: Stored) -> Any:
    code = argument.code
    wanted = _TYPES.get(code, int)
    if value is None and code in "IF":
        return None
    if type(value) is not wanted:
        raise ValueError(f"its argument {argument.name} is {value!r}, and must be {wanted.__name__}")
    if code == "b":
        return int(bool(value))
    if isinstance(value, tuple) and not all(type(one) is (int if code == "I" else float) for one in value):
        raise ValueError(f"its argument {argument.name} is {value!r}")
    names = DTYPES if code == "t" else ENUMERATIONS.get(code)
    if names is None or not isinstance(value, int):
        return value
    if not 0 <= value < len(names):
        raise ValueError(f"its argument {argument.name} is {value}, and must be 0 to {len(names) - 1}")
    return names[value]


def activation_names(numbers: Sequence[int]) -> tuple[str, ...]:
    """Return the names of a recurrent layer's activations. Raises ValueError for a number without a name."""
    if any(not 0 <= number < len(ACTIVATIONS) for number in numbers):
        raise ValueError(f"its activations are {tuple(numbers)}, and must be 0 to {len(ACTIVATIONS) - 1}")
    return tuple(ACTIVATIONS[number] for number in numbers)
