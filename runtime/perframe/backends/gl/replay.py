"""Command lists: GL calls that are recorded once, and replayed by native code.

A row of a list is the address of a GL function, six words with its arguments first, and a word for its result. Every
calling convention of a 64-bit system passes integers in words, and a function ignores the words after its
arguments.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perframe.tensor.locks import new_lock

_ARGUMENTS = 6  # their words of a row after the address: on Arm and on Linux, all of them travel in registers
_ROW = 1 + _ARGUMENTS + 1
_BARRIERS = 0x2000 | 0x8  # of storage buffers, and of textures that read them
_TEXTURE0 = 0x84C0

Array = NDArray[Any]


class Name(NamedTuple):
    """An argument: the GL name that an object has in an attribute. Another object may take the owner's place."""

    owner: Any
    attribute: str


class SizeAt(NamedTuple):
    """An argument that depends on sizes: its place among the numbers of a program."""

    place: int


Argument = int | Name | SizeAt


class CommandList:
    """GL calls in order. `bound` maps owners of names to the objects that have taken their places."""

    def __init__(self, gl: Any, bound: Mapping[Any, Any]) -> None:
        self._addresses: dict[str, int] = gl.addresses
        self._bound = bound
        self._rows: list[list[int]] = []
        self._places: dict[Any, list[tuple[int, int, str]]] = {}  # by owner: row, word and attribute of its names
        self._sizes: list[tuple[int, int, int]] = []  # row and word of each argument that depends on sizes, its place
        self._pauses: list[tuple[int, Callable[[Any], None], Any]] = []  # functions to call before a row
        self._state: dict[tuple[Argument | str, ...], tuple[Argument, ...]] = {}  # as the list has set it
        self._read, self._written = set[Any](), set[Any]()  # by kernels since the last barrier
        self._words = np.empty((0, _ROW), np.int64)
        self._address = 0
        self._size_words = self._size_places = np.empty(0, np.intp)
        self.moves = 0  # the device's `moves` when the names were written
        self.numbers: Any = None  # the numbers that were written for sizes

    def __len__(self) -> int:
        return len(self._rows)

    def call(self, function: str | int, *arguments: Argument) -> None:
        """Record a call of a GL function by its name, or of another function at an address."""
        address = function if isinstance(function, int) else self._addresses[function]
        row = [address, *(0,) * (_ROW - 1)]
        for word, argument in enumerate(arguments, 1):
            if isinstance(argument, Name):
                owner, attribute = argument
                self._places.setdefault(owner, []).append((len(self._rows), word, attribute))
                row[word] = attrgetter(attribute)(self._bound.get(owner, owner))
            elif isinstance(argument, SizeAt):
                self._sizes.append((len(self._rows), word, argument.place))
            else:
                row[word] = argument
        self._rows.append(row)

    def set(self, keys: int, function: str, *arguments: Argument) -> None:
        """Record a call that sets GL state, unless the list has set it so. `keys` arguments name the state."""
        part, value = (function, *arguments[:keys]), arguments[keys:]
        if self._state.get(part) != value:
            self._state[part] = value
            self.call(function, *arguments)

    def set_texture(self, unit: int, target: int, name: Argument, sampler: int | None = None) -> None:
        """Set the texture of a unit, and its sampler."""
        part = ("texture", unit, target)
        if self._state.get(part) != (name,):
            self._state[part] = (name,)
            self.set(0, "glActiveTexture", _TEXTURE0 + unit)
            self.call("glBindTexture", target, name)
        if sampler is not None:
            self.set(1, "glBindSampler", unit, sampler)

    def order(self, reads: Iterable[Any], writes: Any) -> None:
        """Let a kernel begin after those whose results it reads, and after those that use the storage it writes.

        GL orders draws by itself, but not the accesses of compute shaders to buffers.
        """
        reads = set(reads)
        if writes in self._read or writes in self._written or reads & self._written:
            self._end_kernels()
        self._read |= reads
        self._written.add(writes)

    def _end_kernels(self) -> None:
        if self._written:
            self.call("glMemoryBarrier", _BARRIERS)
        self._read, self._written = set(), set()

    def pause(self, function: Callable[[Any], None], owner: Any) -> None:
        """Record a call of a Python function with `owner`, or the object in its place. It may change GL's state."""
        self._end_kernels()
        self._state.clear()
        self._pauses.append((len(self._rows), function, owner))

    def finish(self) -> CommandList:
        """End the recording: later work sees what the list's kernels write. Return the list."""
        self._end_kernels()
        self._words = np.array(self._rows, np.int64).reshape(-1, _ROW)
        self._address = self._words.ctypes.data
        self._size_words = np.array([row * _ROW + word for row, word, _ in self._sizes], np.intp)
        self._size_places = np.array([place for *_, place in self._sizes], np.intp)
        return self

    def refresh(self, moves: int) -> None:
        """Write all names again if storages have got other GL objects since: the device counts its `moves`."""
        if moves != self.moves:
            for owner in self._places:
                self.replace(owner, self._bound.get(owner, owner))
            self.moves = moves

    def replace(self, owner: Any, new: Any) -> None:
        """Let `new` take the owner's place in all rows."""
        names: dict[str, int] = {}
        for row, word, attribute in self._places.get(owner, ()):
            if attribute not in names:
                names[attribute] = attrgetter(attribute)(new)
            self._words[row, word] = names[attribute]

    def uses(self, owners: Collection[Any]) -> bool:
        """Whether a row has a name of one of these owners."""
        return any(self._bound.get(owner, owner) in owners for owner in self._places)

    def fill(self, rows: Array, words: Array | int, values: Array) -> None:
        """Write numbers into these words of these rows. Word 0 is the function's address."""
        self._words[rows, words] = values

    def fill_sizes(self, numbers: Array) -> None:
        """Write the arguments that depend on sizes, unless they are there."""
        if numbers is not self.numbers:
            self.numbers = numbers
            self._words.reshape(-1)[self._size_words] = numbers[self._size_places]

    def flags(self, rows: Sequence[int] | slice) -> Array:
        """Whether the calls of these rows have returned a GLboolean that is true."""
        found: Array = (self._words[rows, -1] & 0xFF) != 0  # a GLboolean is one byte
        return found

    def run(self) -> None:
        """Make the calls. The context is current, and its state guarded."""
        replay, begin = _native(), 0
        for end, function, owner in self._pauses:
            replay(self._address, begin, end)
            function(self._bound.get(owner, owner))
            begin = end
        replay(self._address, begin, len(self._rows))

    def run_some(self, begin: int, end: int) -> None:
        """Make the calls of some rows. No function is called in between."""
        _native()(self._address, begin, end)


_lock = new_lock()


@cache
def _engine() -> Any:
    """The owner of the native code: a dozen instructions, translated in milliseconds, so that no file keeps them."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_assembly()), machine)
    engine.finalize_object()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))  # it outlives llvmlite, which it calls when it ends
    return engine


@cache
def _native() -> Callable[[int, int, int], None]:
    """The function (address, begin, end) that makes the calls of the rows from `begin` up to `end`."""
    with _lock:  # two engines would be made for two threads, and the code of the one that is not kept would be freed
        return ctypes.CFUNCTYPE(None, *(ctypes.c_int64,) * 3)(_engine().get_function_address("replay"))


def _assembly() -> str:
    """The loop over rows in LLVM's language."""
    from llvmlite import ir

    word, nothing = ir.IntType(64), ir.VoidType()
    loop = ir.Function(ir.Module("replay"), ir.FunctionType(nothing, [word] * 3), "replay")
    table, begin, end = loop.args
    entry, head, body, done = (loop.append_basic_block(name) for name in ("entry", "head", "body", "done"))
    builder = ir.IRBuilder(entry)
    builder.branch(head)
    builder.position_at_end(head)
    row = builder.phi(word)
    row.add_incoming(begin, entry)
    builder.cbranch(builder.icmp_signed("<", row, end), body, done)
    builder.position_at_end(body)
    first = builder.add(table, builder.mul(row, word(8 * _ROW)))
    pointers = [builder.inttoptr(builder.add(first, word(8 * k)), word.as_pointer()) for k in range(_ROW)]
    function, *arguments = [builder.load(pointer) for pointer in pointers[:-1]]
    kind = ir.FunctionType(word, [word] * _ARGUMENTS)
    called = builder.call(builder.inttoptr(function, kind.as_pointer()), arguments, attrs=("nounwind",))
    builder.store(called, pointers[-1])
    row.add_incoming(builder.add(row, word(1)), body)
    builder.branch(head)
    builder.position_at_end(done)
    builder.ret_void()
    return str(loop.module)
