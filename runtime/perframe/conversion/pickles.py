"""Reading of pickles without running them.

A pickle is a program that builds objects, and it may call any function of Python. Here its instructions are followed
with stand-ins: a call becomes a `PickleCall` that remembers what would be called, and nothing is called. See
https://docs.python.org/3/library/pickletools.html for the instructions.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from perframe.errors import ConversionError

MAX_STEPS = 4_000_000  # instructions of a pickle
MAX_ITEM = 64 << 20  # bytes of a text or a number in it


@dataclass(eq=False)
class PickleCall:
    """A call of a function or class that the pickle names; `state` is what the object would be given afterwards."""

    function: Any
    arguments: Any
    state: Any = None
    items: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Global:
    """A name that the pickle imports."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Persistent:
    """An object outside the pickle, such as a tensor's storage."""

    identity: Any


@dataclass
class Pickled:
    """The object that a pickle would build, and the names that it imports."""

    value: Any
    names: list[str]


class _Mark:
    pass


_MARK = _Mark()


class _PickleReader:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.names: dict[str, None] = {}

    def marked(self) -> list[Any]:
        at = len(self.stack) - 1
        while self.stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise ValueError("a list without a beginning")
        found = self.stack[at + 1 :]
        del self.stack[at:]
        return found

    def name(self, module: Any, name: Any) -> Global:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("an import without a name")
        made = Global(module, name)
        self.names[str(made)] = None
        return made

    def step(self, code: str, argument: Any) -> None:
        if code in _ARGUMENTS:
            self.stack.append(argument)
        elif code in _CONSTANTS:
            self.stack.append(_CONSTANTS[code]())
        elif code in _ACTIONS:
            _ACTIONS[code](self, argument)
        else:
            raise ValueError(f"the instruction {code}")


def _set_items(target: Any, pairs: list[Any]) -> None:
    items = target.items if isinstance(target, PickleCall) else target
    if not isinstance(items, dict) or len(pairs) % 2:
        raise ValueError("items of something that has none")
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        items[key if isinstance(key, (str, int, float, bytes, type(None))) else id(key)] = value


def _append(target: Any, values: list[Any]) -> None:
    if isinstance(target, list):
        target.extend(values)
    elif isinstance(target, (set, PickleCall)):
        return  # their elements are not looked at
    else:
        raise ValueError("elements of something that has none")


def _build(reader: _PickleReader, _argument: Any) -> None:
    state = reader.stack.pop()
    if isinstance(reader.stack[-1], PickleCall):
        reader.stack[-1].state = state


def _reduce(reader: _PickleReader, _argument: Any) -> None:
    arguments = reader.stack.pop()
    reader.stack.append(PickleCall(reader.stack.pop(), arguments))


def _reduce_with_names(reader: _PickleReader, _argument: Any) -> None:
    names, arguments = reader.stack.pop(), reader.stack.pop()
    reader.stack.append(PickleCall(reader.stack.pop(), (arguments, names)))


def _tuple(count: int) -> Callable[[_PickleReader, Any], None]:
    def step(reader: _PickleReader, _argument: Any) -> None:
        if len(reader.stack) < count:
            raise ValueError("too few values")
        made = tuple(reader.stack[-count:])
        del reader.stack[-count:]
        reader.stack.append(made)

    return step


def _object(reader: _PickleReader, _argument: Any) -> None:
    found = reader.marked()
    reader.stack.append(PickleCall(found[0], tuple(found[1:])))


def _global(reader: _PickleReader, argument: Any) -> None:
    module, _, name = argument.partition(" ")
    reader.stack.append(reader.name(module, name))


def _stack_global(reader: _PickleReader, _argument: Any) -> None:
    name = reader.stack.pop()
    reader.stack.append(reader.name(reader.stack.pop(), name))


def _pairs(reader: _PickleReader, _argument: Any) -> None:
    value = reader.stack.pop()
    key = reader.stack.pop()
    _set_items(reader.stack[-1], [key, value])


def _dict(reader: _PickleReader, _argument: Any) -> None:
    made = dict[Any, Any]()
    _set_items(made, reader.marked())
    reader.stack.append(made)


def _all_pairs(reader: _PickleReader, _argument: Any) -> None:
    found = reader.marked()
    _set_items(reader.stack[-1], found)


def _all_elements(reader: _PickleReader, _argument: Any) -> None:
    found = reader.marked()
    _append(reader.stack[-1], found)


def _element(reader: _PickleReader, _argument: Any) -> None:
    value = reader.stack.pop()
    _append(reader.stack[-1], [value])


_ARGUMENTS = (  # instructions that put their argument on the stack
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
)
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
    "MARK": lambda: _MARK,
}
_ACTIONS: dict[str, Callable[[_PickleReader, Any], Any]] = {
    "PROTO": lambda reader, argument: None,
    "FRAME": lambda reader, argument: None,
    "POP": lambda reader, argument: reader.stack.pop(),
    "POP_MARK": lambda reader, argument: reader.marked(),
    "DUP": lambda reader, argument: reader.stack.append(reader.stack[-1]),
    "PUT": lambda reader, argument: reader.memo.update({argument: reader.stack[-1]}),
    "BINPUT": lambda reader, argument: reader.memo.update({argument: reader.stack[-1]}),
    "LONG_BINPUT": lambda reader, argument: reader.memo.update({argument: reader.stack[-1]}),
    "MEMOIZE": lambda reader, argument: reader.memo.update({len(reader.memo): reader.stack[-1]}),
    "GET": lambda reader, argument: reader.stack.append(reader.memo[argument]),
    "BINGET": lambda reader, argument: reader.stack.append(reader.memo[argument]),
    "LONG_BINGET": lambda reader, argument: reader.stack.append(reader.memo[argument]),
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "NEWOBJ": _reduce,
    "NEWOBJ_EX": _reduce_with_names,
    "OBJ": _object,
    "BUILD": _build,
    "BINPERSID": lambda reader, argument: reader.stack.append(Persistent(reader.stack.pop())),
    "PERSID": lambda reader, argument: reader.stack.append(Persistent(argument)),
    "TUPLE": lambda reader, argument: reader.stack.append(tuple(reader.marked())),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "LIST": lambda reader, argument: reader.stack.append(reader.marked()),
    "DICT": _dict,
    "FROZENSET": lambda reader, argument: reader.stack.append(tuple(reader.marked())),
    "SETITEM": _pairs,
    "SETITEMS": _all_pairs,
    "APPEND": _element,
    "APPENDS": _all_elements,
    "ADDITEMS": _all_elements,
}


def read_pickle(file: IO[bytes], where: object, on_build: Callable[[Any], None] | None = None) -> Pickled:
    """Follow a pickle's instructions, from the file's position to the pickle's end. Nothing is called.

    `on_build` receives each object that has got its state, and may move the file's position over data behind it.

    Raises ConversionError if the pickle is cut, damaged or of an unknown form.
    """
    reader = _PickleReader()
    try:
        for steps, (instruction, argument, _) in enumerate(pickletools.genops(file)):
            if instruction.name == "STOP":
                return Pickled(reader.stack.pop(), [*reader.names])
            if steps > MAX_STEPS or (isinstance(argument, (str, bytes)) and len(argument) > MAX_ITEM):
                raise ValueError("it is too long")
            reader.step(instruction.name, argument)
            if on_build is not None and instruction.name == "BUILD":
                on_build(reader.stack[-1])
        raise ValueError("it has no end")
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, MemoryError) as error:
        raise ConversionError(f"{where}: its pickle cannot be read: {error!s:.300}: copy it again") from error
