"""The messages of an ONNX file, read without the onnx package: its import takes longer than loading a small model.

The classes have the names, fields and defaults of onnx.proto, as far as the importer reads them; other messages are
checked. Whatever is unusual raises NeedsLibrary: the file is then read again with the package, which explains errors,
too. The encoding is described at https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from typing import Any

MAX_DEPTH = 90  # of messages within messages; protobuf reads 100
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5  # encodings of a field

# number:name:kind of each field; a star marks repeated ones. Kinds: i (int64), n (int32), t (an attribute's type), l (a
# location of data), f(loat), d(ouble), s(tring), b(ytes), a message, or "-" for a field that needs the library.
_FIELDS = {
    "StringStringEntryProto": "1:key:s 2:value:s",
    "OperatorSetIdProto": "1:domain:s 2:version:i",
    "Dimension": "1:dim_value:i 2:dim_param:s",
    "TensorShapeProto": "1:dim:Dimension*",
    "Tensor": "1:elem_type:n 2:shape:TensorShapeProto",
    "Sequence": "1:elem_type:TypeProto",
    "Optional": "1:elem_type:TypeProto",
    "TypeProto": "1:tensor_type:Tensor 4:sequence_type:Sequence 5:map_type:- 7:opaque_type:- 8:sparse_tensor_type:- "
    "9:optional_type:Optional",
    "ValueInfoProto": "1:name:s 2:type:TypeProto 4:metadata_props:StringStringEntryProto*",
    "TensorProto": "1:dims:i* 2:data_type:n 3:segment:- 4:float_data:f* 5:int32_data:n* 6:string_data:b* "
    "7:int64_data:i* 8:name:s 9:raw_data:b 10:double_data:d* 11:uint64_data:i* "
    "13:external_data:StringStringEntryProto* 14:data_location:l 16:metadata_props:StringStringEntryProto*",
    "AttributeProto": "1:name:s 2:f:f 3:i:i 4:s:b 5:t:TensorProto 6:g:GraphProto 7:floats:f* 8:ints:i* 9:strings:b* "
    "10:tensors:TensorProto* 11:graphs:GraphProto* 14:tp:- 15:type_protos:- 20:type:t 21:ref_attr_name:s "
    "22:sparse_tensor:- 23:sparse_tensors:-",
    "NodeProto": "1:input:s* 2:output:s* 3:name:s 4:op_type:s 5:attribute:AttributeProto* 7:domain:s 8:overload:s "
    "9:metadata_props:StringStringEntryProto* 10:device_configurations:-",
    "GraphProto": "1:node:NodeProto* 2:name:s 5:initializer:TensorProto* 11:input:ValueInfoProto* "
    "12:output:ValueInfoProto* 13:value_info:ValueInfoProto* 14:quantization_annotation:- 15:sparse_initializer:- "
    "16:metadata_props:StringStringEntryProto*",
    "ModelProto": "1:ir_version:i 2:producer_name:s 3:producer_version:s 7:graph:GraphProto "
    "8:opset_import:OperatorSetIdProto* 14:metadata_props:StringStringEntryProto* 20:training_info:- 25:functions:- "
    "26:configuration:-",
}
_MOST_BYTES = 5  # of a field's number and length
_ONE_OF = {"Dimension", "TypeProto"}  # at most one field of theirs is set
_RANGES = {"i": (-(1 << 63), 1 << 63), "n": (-(1 << 31), 1 << 31), "t": (0, 15), "l": (0, 2)}
_ENCODINGS = {**dict.fromkeys(_RANGES, (_VARINT,)), "f": (_FIXED32,), "d": (_FIXED64,)}
_DEFAULTS: dict[str, Any] = {**dict.fromkeys(_RANGES, 0), "f": 0.0, "d": 0.0, "s": "", "b": b""}


class NeedsLibrary(Exception):
    """The file holds what only the onnx package reads."""


class Message:
    """A message with protobuf's interface. The instance has the fields that are set, and the class the defaults."""

    fields: dict[int, tuple[str, str, bool]]  # by number and encoding: the name, the kind, and whether it is repeated
    numbers: frozenset[int]

    def HasField(self, name: str) -> bool:
        """Whether a field is set."""
        return name in vars(self)

    def ClearField(self, name: str) -> None:
        """Give a field its default."""
        vars(self).pop(name, None)

    def WhichOneof(self, _group: str) -> str | None:
        """Return the field that is set, of a message in which at most one is."""
        return next(iter(vars(self)), None)


def _declared(name: str, text: str) -> type[Message]:
    fields: dict[int, tuple[str, str, bool]] = {}
    defaults: dict[str, Any] = {}
    for number, field, kind in (entry.split(":") for entry in text.split()):
        repeated, kind = kind.endswith("*"), kind.removesuffix("*")
        defaults[field] = () if repeated or kind == "-" else _DEFAULTS.get(kind)
        for encoding in (*_ENCODINGS.get(kind, ()), *((_LENGTH,) if repeated or kind not in _ENCODINGS else ())):
            fields[int(number) << 3 | encoding] = field, kind, repeated
    return type(name, (Message,), {**defaults, "fields": fields, "numbers": frozenset(key >> 3 for key in fields)})


def _all_declared() -> dict[str, type[Message]]:
    classes = {name: _declared(name, text) for name, text in _FIELDS.items()}
    for made in classes.values():
        for field, kind, is_repeated in made.fields.values():
            if kind in classes and not is_repeated:
                setattr(made, field, classes[kind]())
    return classes


_CLASSES = _all_declared()


def is_a(value: Any, kind: str) -> bool:
    """Whether a value is an ONNX message of this kind, such as "GraphProto": one of ours, or of the onnx package."""
    return type(value).__name__ == kind and hasattr(value, "HasField")


def parsed(data: bytes) -> Any:
    """Return the ModelProto in these bytes. Raises NeedsLibrary."""
    try:
        return _message("ModelProto", data, 0, len(data), 0)
    except (IndexError, struct.error, UnicodeDecodeError):  # it is damaged
        raise NeedsLibrary from None


def _message(name: str, data: bytes, at: int, end: int, depth: int) -> Message:
    kind = _CLASSES[name]
    message, fields = kind(), kind.fields
    found = vars(message)
    while at < end:
        key = data[at]
        at += 1
        if key > 127:
            key, at = _varint(data, at - 1, _MOST_BYTES)
        encoding, stop = key & 7, at
        if encoding == _LENGTH:
            size = data[at]
            at += 1
            if size > 127:
                size, at = _varint(data, at - 1, _MOST_BYTES)
            stop = at + size
        elif encoding == _VARINT:
            value, stop = _varint(data, at)
        elif encoding in (_FIXED32, _FIXED64):
            stop = at + (4 if encoding == _FIXED32 else 8)
        else:
            raise NeedsLibrary
        if stop > end:
            raise NeedsLibrary
        field = fields.get(key)
        if field is None:
            if not key >> 3 or key >> 3 in kind.numbers:
                raise NeedsLibrary
        else:
            name, what, repeated = field
            if repeated and encoding == _LENGTH and what in _ENCODINGS:
                found.setdefault(name, []).extend(_packed(what, data, at, stop))
            else:
                if encoding == _VARINT:
                    one: Any = _integer(what, value)
                elif what == "s":
                    one = data[at:stop].decode()
                elif what == "b":
                    one = data[at:stop]
                elif what in _ENCODINGS:
                    (one,) = struct.unpack_from("<f" if what == "f" else "<d", data, at)
                elif what == "-" or depth > MAX_DEPTH or (name in found and not repeated):
                    raise NeedsLibrary
                else:
                    one = _message(what, data, at, stop, depth + 1)
                if repeated:
                    found.setdefault(name, []).append(one)
                else:
                    found[name] = one
        at = stop
    if len(found) > 1 and kind.__name__ in _ONE_OF:
        raise NeedsLibrary
    return message


def _varint(data: bytes, at: int, most_bytes: int = 10) -> tuple[int, int]:
    """Return a number of at most 64 bits, and the position after it."""
    value = shift = 0
    for byte in data[at : at + most_bytes]:
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                break
            return value, at
        shift += 7
    raise NeedsLibrary


def _integer(kind: str, value: int) -> int:
    if value >> 63:
        value -= 1 << 64
    least, end = _RANGES[kind]
    if not least <= value < end:
        raise NeedsLibrary
    return value


def _packed(kind: str, data: bytes, at: int, end: int) -> list[Any]:
    """Return the numbers of a repeated field that is written as one."""
    if kind in "fd":
        return list(struct.unpack(f"<{(end - at) // (4 if kind == 'f' else 8)}{kind}", data[at:end]))
    numbers: list[int] = []
    while at < end:
        value, at = _varint(data, at)
        numbers.append(_integer(kind, value))
    if at > end:
        raise NeedsLibrary
    return numbers
