"""A model as JSON, without the values of its tensors: these have keys into the file.

A list stands for a tuple. An object with one member stands for what JSON does not have: {"tensor": key},
{"dtype": "float32"}, {"float": "nan"}, {"list": [...]}, {"bodies": {...}}, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from perframe.errors import ModelError, Problem
from perframe.ir import Layer, Model, Value
from perframe.ir.arrangement import Arrangement
from perframe.ir.declaration import find_declaration
from perframe.ir.epilogue import Stage
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.safety.records import dataclass
from perframe.tensor import DataType

Array = NDArray[Any]
T = TypeVar("T")
MAX_DEPTH = 64  # of bodies in bodies, and of lists in lists


# --- from a model ---


def described(model: Model, key_of: Callable[[str, Array], str]) -> dict[str, Any]:
    """Return a model as JSON. `key_of(name, array)` stores an array and returns its key. Raises ModelError."""
    return {
        "name": model.name,
        "inputs": [_value(value) for value in model.inputs],
        "outputs": [_value(value) for value in model.outputs],
        "constants": {name: key_of(name, array) for name, array in model.constants.items()},
        "layers": [_layer(layer, key_of) for layer in model.layers],
    }


def checked_metadata(model: Model) -> dict[str, str]:
    """Return a model's metadata. Raises ModelError if they are not texts by name."""
    for name, text in model.metadata.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise ModelError(
                f"{model.name}: metadata are texts by name, and {name!r:.80} is {text!r:.80}: convert both to str"
            )
    return dict(model.metadata)


def metadata_of(said: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata that JSON describes; older files have none. Raises ModelError."""
    found = said.get("metadata", {})
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise ModelError(f"its metadata are not texts by name: {found!r:.200}")
    return found


def _value(value: Value) -> dict[str, Any]:
    shape = None if value.shape is None else list(value.shape)
    made: dict[str, Any] = {"name": value.name, "dtype": value.dtype.value, "shape": shape}
    if value.kind != "tensor":
        made |= {"kind": value.kind, "element_kind": value.element_kind}
    return made


def _layer(layer: Layer, key_of: Callable[[str, Array], str]) -> dict[str, Any]:
    try:
        attributes = {name: _said(value, f"{layer.name}.{name}", key_of) for name, value in layer.attributes.items()}
        epilogue = [_stage(stage, layer.name, key_of) for stage in layer.epilogue]
    except ModelError as error:
        raise ModelError(f"layer {layer.name!r} ({layer.op}) cannot be saved: {error}") from None
    made: dict[str, Any] = {
        "op": layer.op,
        "name": layer.name,
        "inputs": layer.input_names,
        "outputs": layer.output_names,
    }
    optional = {
        "attributes": attributes,
        "epilogue": epilogue,
        "on_host": layer.on_host,
        "channels_last": layer.channels_last,
    }
    return made | {name: value for name, value in optional.items() if value}


def _stage(stage: Stage, name: str, key_of: Callable[[str, Array], str]) -> dict[str, Any]:
    operands = [_said(operand, name, key_of) for operand in stage.operands]
    return {
        "op": stage.op,
        "attributes": {key: _said(value, f"{name}.{key}", key_of) for key, value in stage.attributes},
        "operands": operands,
    }


def _said(value: Any, name: str, key_of: Callable[[str, Array], str]) -> Any:
    """Return a value of an attribute as JSON. Raises ModelError for an object that JSON has no form of."""

    def say(item: Any) -> Any:
        return _said(item, name, key_of)

    match value:
        case DataType():
            return {"dtype": value.value}
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": str(value)}
        case np.generic() if not isinstance(value.item(), np.generic):
            return say(value.item())
        case np.ndarray():
            return {"tensor": key_of(name, value)}
        case bytes():
            return {"bytes": value.hex()}
        case tuple() if value and all(isinstance(item, Stage) for item in value):
            return {"stages": [_stage(item, name, key_of) for item in value]}
        case tuple():
            return [say(item) for item in value]
        case list():
            return {"list": [say(item) for item in value]}
        case Arrangement():
            return {"arrangement": [say(value.dims), say(value.starts)]}
        case dict() if all(isinstance(body, Model) for body in value.values()):
            return {"bodies": {attribute: described(body, key_of) for attribute, body in value.items()}}
    raise ModelError(f"{name} is a {type(value).__name__}, which no file can hold")


# --- to a model ---


@dataclass
class GraphReader:
    """Makes models of JSON. `arrays` are the file's tensors; layers of unknown operators are added to `problems`."""

    arrays: Mapping[str, Array]
    problems: list[Problem] = field(default_factory=list)

    def model(self, said: Any, depth: int = 0) -> Model:
        """Return the model that JSON describes. Raises ModelError."""
        if depth > MAX_DEPTH:
            raise ModelError(f"bodies are nested more than {MAX_DEPTH} deep")
        constants = _of(said, "constants", dict, "the graph")
        return Model(
            [_read_value(item, "an input") for item in _of(said, "inputs", list, "the graph")],
            [_read_value(item, "an output") for item in _of(said, "outputs", list, "the graph")],
            [self._layer(item, index, depth) for index, item in enumerate(_of(said, "layers", list, "the graph"))],
            {name: self._array(key, f"constant {name!r:.200}") for name, key in constants.items()},
            _of(said, "name", str, "the graph"),
        )

    def _layer(self, said: Any, index: int, depth: int) -> Layer:
        name, op = _of(said, "name", str, f"layer {index}"), _of(said, "op", str, f"layer {index}")
        where = f"layer {name!r:.200} ({op:.200})"
        if find_declaration(op) is None:
            domain, _, operator = op.rpartition("::")
            self.problems.append(Problem(name, operator, domain, 0, "perframe has no such layer"))
        return Layer(
            op,
            name,
            _names(said, "inputs", where),
            _names(said, "outputs", where),
            self._attributes(_of(said, "attributes", dict, where, {}), where, depth),
            self._stages(_of(said, "epilogue", list, where, []), where, 0),
            _of(said, "on_host", bool, where, False),
            _of(said, "channels_last", bool, where, False),
        )

    def _attributes(self, said: dict[str, Any], where: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, item in said.items():
            match item:
                case {"bodies": dict(bodies)}:
                    found[name] = {key: self.model(body, depth + 1) for key, body in bodies.items()}
                case _:
                    found[name] = self._value(item, f"{where}: its attribute {name!r:.200}", 0)
        return found

    def _stages(self, said: list[Any], where: str, nested: int) -> tuple[Stage, ...]:
        made = []
        for one in said:
            op = _of(one, "op", str, f"{where}: a stage of its epilogue")
            inside = f"{where}: {op:.200} in its epilogue"
            attributes = [
                (name, self._value(item, inside, nested + 1))
                for name, item in _of(one, "attributes", dict, inside).items()
            ]
            operands = [self._value(item, inside, nested + 1) for item in _of(one, "operands", list, inside)]
            made.append(Stage(op, tuple(attributes), tuple(operands)))
        return tuple(made)

    def _value(self, said: Any, where: str, nested: int) -> Any:
        if nested > MAX_DEPTH:
            raise ModelError(f"{where} nests too deeply")
        match said:
            case None | bool() | int() | float() | str():
                return said
            case list():
                return tuple([self._value(item, where, nested + 1) for item in said])
            case {"list": list(items)}:
                return [self._value(item, where, nested + 1) for item in items]
            case {"tensor": key}:
                return self._array(key, where)
            case {"dtype": dtype}:
                return read_dtype(dtype, where)
            case {"float": "nan" | "inf" | "-inf" as number}:
                return float(number)
            case {"bytes": str(text)} if len(text) % 2 == 0 and set(text) <= set("0123456789abcdef"):
                return bytes.fromhex(text)
            case {"stages": list(items)}:
                return self._stages(items, where, nested + 1)
            case {"arrangement": [list(dims), list(starts)]}:
                return Arrangement(self._value(dims, where, nested + 1), self._value(starts, where, nested + 1))
        raise ModelError(f"{where} is {said!r:.200}, which has no meaning")

    def _array(self, key: Any, where: str) -> Array:
        if type(key) is not str or key not in self.arrays:
            raise ModelError(f"{where} is the tensor {key!r:.200}, which the file does not have")
        return self.arrays[key]


def _of(said: Any, member: str, kind: type[T], where: str, default: T | None = None) -> T:
    """Return a member of an object. Raises ModelError if it is missing or of another type."""
    if not isinstance(said, dict):
        raise ModelError(f"{where} is {said!r:.200}, and should be an object")
    found = said.get(member, default)
    if type(found) is not kind:
        raise ModelError(f"{where}: its {member} is {found!r:.200}, and should be of type {kind.__name__}")
    return found


def _names(said: Any, member: str, where: str) -> list[str]:
    names = _of(said, member, list, where)
    if not all([type(name) is str for name in names]):
        raise ModelError(f"{where}: its {member} are {names!r:.200}, and should be names")
    return names


def read_dtype(said: Any, where: str) -> DataType:
    """Return the dtype of this name. Raises ModelError."""
    try:
        return DataType(said)
    except ValueError:
        raise ModelError(f"{where}: there is no dtype {said!r:.200}") from None


def _read_value(said: Any, what: str) -> Value:
    name = _of(said, "name", str, what)
    where = f"{what}, {name!r:.200}"
    shape = said.get("shape")
    if shape is not None:
        for dim in _of(said, "shape", list, where):
            if not (dim is None or type(dim) is str or (type(dim) is int and 0 <= dim < 1 << 63)):
                raise ModelError(f"{where} has a dim of {dim!r:.200}")
        shape = DynamicTensorShape(shape)
    kind, element_kind = (_of(said, member, str, where, "tensor") for member in ("kind", "element_kind"))
    for said_kind in (kind, element_kind):
        if said_kind not in ("tensor", "sequence", "optional"):
            raise ModelError(f"{where} is of the unknown kind {said_kind!r:.200}")
    return Value(name, read_dtype(said.get("dtype"), where), shape, kind, element_kind)
