"""The caller's GL state: we restore everything that we change."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from perframe.backends.gl.replay import CommandList
from perframe.backends.gl.texels import SHEETS
from perframe.errors import BackendError, ContextLostError
from perframe.graphics.functions import generate, get
from perframe.graphics.state_tables import (
    BLEND,
    PIXEL_BUFFERS,
    PIXEL_STORE,
    SCISSOR_TEST,
    clamps,
    pixel_transfer,
    switches,
)

CURRENT_PROGRAM, VERTEX_ARRAY, ACTIVE_TEXTURE, VIEWPORT = 0x8B8D, 0x85B5, 0x84E0, 0x0BA2
_DELETE_STATUS = 0x8B80
DRAW_FRAMEBUFFER, READ_FRAMEBUFFER, DRAW_BINDING, READ_BINDING = 0x8CA9, 0x8CA8, 0x8CA6, 0x8CAA
TEXTURE_2D, TEXTURE0, TEXTURE_2D_BINDING, SAMPLER_BINDING = 0x0DE1, 0x84C0, 0x8069, 0x8919
TEXTURE_BUFFER, TEXTURE_BUFFER_BINDING = 0x8C2A, 0x8C2C
TEXTURE_2D_ARRAY, TEXTURE_2D_ARRAY_BINDING = 0x8C1A, 0x8C1D
UNIFORM_BUFFER, UNIFORM_BINDING, UNIFORM_START, UNIFORM_SIZE = 0x8A11, 0x8A28, 0x8A29, 0x8A2A
STORAGE_BUFFER, STORAGE_BINDING, STORAGE_START, STORAGE_SIZE = 0x90D2, 0x90D3, 0x90D4, 0x90D5
POLYGON_MODE, FRONT, BACK, FRONT_AND_BACK, FILL = 0x0B40, 0x0404, 0x0405, 0x0408, 0x1B02
_BUFFERS = {0x8892: 0x8894, 0x88EB: 0x88ED, 0x88EC: 0x88EF, 0x8F36: 0x8F36, 0x8F37: 0x8F37}  # array, pack, unpack, copy
_TEXTURES = {TEXTURE_2D: TEXTURE_2D_BINDING, TEXTURE_2D_ARRAY: TEXTURE_2D_ARRAY_BINDING}
_TEXTURES[TEXTURE_BUFFER] = TEXTURE_BUFFER_BINDING
_COLOR_MASK, _ALL_CHANNELS, _MAX_VIEWPORTS = 0x0C23, 0x01010101, 0x825B
_STORE_PAIRS, _STORE_WANTED = list(PIXEL_STORE.items()), np.array(list(PIXEL_STORE.values()), np.int32)
_RENDER_MODE, _RENDER, _LIST_INDEX = 0x0C40, 0x1C00, 0x0B33
_QUERY_NO_WAIT, _CURRENT_QUERY, _SAMPLES_PASSED, _ANY_SAMPLES_PASSED = 0x8E14, 0x8865, 0x8914, 0x8C2F
_CONTEXT_FLAGS, _NO_ERROR_FLAG = 0x821E, 8
_INVALID_ENUM, _INVALID_VALUE, _INVALID_OPERATION = 0x500, 0x501, 0x502
_FEEDBACK_PAUSED, _FEEDBACK_ACTIVE = 0x8E23, 0x8E24


def refuse_old_modes(gl: Any) -> None:
    """Raise BackendError in a mode of the compatibility profile in which GL draws nothing, or only notes the calls."""
    if not gl.compatibility:
        return
    if get(gl, _RENDER_MODE) != _RENDER:
        raise BackendError(
            "glRenderMode is GL_SELECT or GL_FEEDBACK, and GL draws nothing: call perframe when it is GL_RENDER again"
        )
    if get(gl, _LIST_INDEX):
        raise BackendError("a display list is being compiled (glNewList): call perframe after glEndList")


class ConditionalRendering:
    """Detects active conditional rendering: between glBeginConditionalRender and its end, GL discards draws and
    dispatches, ours too, if a query saw nothing.

    GL can neither report nor suspend conditional rendering. But it refuses to begin a second one, and leaves the first
    as it was.
    """

    def __init__(self, gl: Any) -> None:
        self._gl, self._query = gl, 0
        self._has_errors = not get(gl, _CONTEXT_FLAGS) & _NO_ERROR_FLAG  # a context without errors refuses nothing

    def refuse(self) -> None:
        """Raise BackendError if conditional rendering is active."""
        gl = self._gl
        if not self._has_errors or not self._make_query():
            return
        pending = gl.glGetError()  # an error of the application, which it has not fetched yet
        gl.glBeginConditionalRender(self._query, _QUERY_NO_WAIT)
        error = gl.glGetError()
        self._provoke(pending)
        if not error:
            gl.glEndConditionalRender()
        if error == _INVALID_OPERATION:
            raise BackendError(
                "conditional rendering is active (glBeginConditionalRender, or moderngl's `with query.crender`), and "
                "GL may discard a worker's draws and dispatches: call perframe before it begins or after it ends"
            )
        if error:
            raise ContextLostError(
                f"GL reports the error 0x{error:X}: the GL context was lost; make a new one, and new workers"
            )

    def _make_query(self) -> int:
        """The query for conditional rendering; 0 while one of the application runs: none can be made beside it."""
        gl, active = self._gl, ctypes.c_int()
        if not self._query:
            for target in (_SAMPLES_PASSED, _ANY_SAMPLES_PASSED):
                gl.glGetQueryiv(target, _CURRENT_QUERY, ctypes.byref(active))
                if active.value:
                    return 0
            self._query = generate(gl, "Queries")
            gl.glBeginQuery(_ANY_SAMPLES_PASSED, self._query)
            gl.glEndQuery(_ANY_SAMPLES_PASSED)
        return self._query

    def _provoke(self, error: int) -> None:
        """Raise an error again that the application has yet to fetch. Conditional rendering is active here."""
        if error == _INVALID_ENUM:
            self._gl.glEnable(0xFFFF)
        elif error == _INVALID_VALUE:
            self._gl.glViewport(0, 0, -1, -1)
        elif error == _INVALID_OPERATION:
            self._gl.glBeginConditionalRender(self._query, _QUERY_NO_WAIT)


class _Saved(NamedTuple):
    """An argument: a number of the caller's state, by its index among those that were saved."""

    at: int


class StateGuard:
    """Saves the GL state on entry and restores it on exit. In between, everything that would spoil a draw or a transfer
    of pixels has its initial value (see perframe/graphics/state_tables.py).

    Native code asks for all numbers at once, and sets most of them at both ends; what callers rarely change is set only
    where they did. A guard is made once for a context, and holds one state at a time.
    """

    def __init__(self, gl: Any, units: Sequence[int], storage_bindings: int, extensions: Collection[str] = ()) -> None:
        self._gl, self._save, self._restore = gl, CommandList(gl, {}), CommandList(gl, {})
        self._numbers = np.zeros(2048, np.int32)
        self._taken = 0
        self._places: list[tuple[int, int, int]] = []  # row and word of the restoring list, and the number there
        self._toggles: list[tuple[int, int, int, int]] = []  # rows that ask and set, addresses to enable and to disable
        self._feedback = False
        self._transfer = pixel_transfer(gl.compatibility, extensions)
        self._record(units, storage_bindings, switches(gl.version, gl.compatibility, extensions))
        self._save.finish()
        self._restore.finish()
        self._rows, self._words, self._indices = np.array(self._places, np.intp).T
        self._asked, self._set, self._enable, self._disable = np.array(self._toggles, np.int64).T

    def _ask(self, function: str, *arguments: int) -> _Saved:
        """Save up to four numbers."""
        index, self._taken = self._taken, self._taken + 4
        if self._taken > self._numbers.size:
            raise AssertionError("a guard saves more numbers than it has room for")
        self._save.call(function, *arguments, self._address(index))
        return _Saved(index)

    def _address(self, index: int) -> int:
        return int(self._numbers.ctypes.data) + 4 * index

    def _set_again(self, function: str, *arguments: int | _Saved) -> None:
        """Set saved state on exit."""
        for word, argument in enumerate(arguments, 1):
            if isinstance(argument, _Saved):
                self._places.append((len(self._restore), word, argument.at))
        self._restore.call(function, *(0 if isinstance(argument, _Saved) else argument for argument in arguments))

    def _switch_off(self, name: int, count: int = 0) -> None:
        """Save a capability of glEnable, or its first `count` indexed ones, and disable it until the exit."""
        asks, *toggles = (
            ("glIsEnabledi", "glEnablei", "glDisablei") if count else ("glIsEnabled", "glEnable", "glDisable")
        )
        for index in range(count or 1):
            self._toggles.append(
                (len(self._save), len(self._restore), *(self._gl.addresses[toggle] for toggle in toggles))
            )
            arguments = (name, index) if count else (name,)
            self._save.call(asks, *arguments)
            self._restore.call(toggles[0], *arguments)
        self._save.call("glDisable", name)  # all values of a switch

    def _record(self, units: Sequence[int], storage_bindings: int, switched: Sequence[int]) -> None:
        ask, get_, again, functions = self._ask, "glGetIntegerv", self._set_again, self._gl.addresses
        self._has_feedback = "glPauseTransformFeedback" in functions
        feedback = (_FEEDBACK_ACTIVE, _FEEDBACK_PAUSED) if self._has_feedback else ()
        self._feedback_states = [ask(get_, name).at for name in feedback]
        program = ask(get_, CURRENT_PROGRAM)
        self._program = program.at
        again("glUseProgram", program)
        again("glBindVertexArray", ask(get_, VERTEX_ARRAY))
        again("glBindFramebuffer", DRAW_FRAMEBUFFER, ask(get_, DRAW_BINDING))
        again("glBindFramebuffer", READ_FRAMEBUFFER, ask(get_, READ_BINDING))
        viewports = self._record_viewports()
        mode = ask(get_, POLYGON_MODE).at
        for face, at in ((FRONT, mode), (BACK, mode + 1)) if self._gl.compatibility else ((FRONT_AND_BACK, mode),):
            again("glPolygonMode", face, _Saved(at))
        self._masks = [ask("glGetBooleani_v", _COLOR_MASK, index).at for index in range(SHEETS)]
        stored = {name: ask(get_, name) for name in PIXEL_STORE}
        self._store = [number.at for number in stored.values()]
        for name, number in stored.items():  # moderngl changes them too
            again("glPixelStorei", name, number)
        self._transfers = [ask("glGetFloatv", name).at for name in self._transfer]
        for name in clamps(self._gl.compatibility):
            again("glClampColor", name, ask(get_, name))
            self._save.call("glClampColor", name, 0)
        self._switch_off(SCISSOR_TEST, viewports)
        self._switch_off(BLEND, SHEETS)
        for name in switched:
            self._switch_off(name)
        self._record_bindings(units, storage_bindings)
        for target in PIXEL_BUFFERS:
            self._save.call("glBindBuffer", target, 0)
        self._save.call("glPolygonMode", FRONT_AND_BACK, FILL)

    def _record_viewports(self) -> int:
        """Save the viewports, and return their number; 0 where GL has one. glViewport sets them all."""
        if "glViewportArrayv" not in self._gl.addresses:
            first = self._ask("glGetIntegerv", VIEWPORT).at
            self._set_again("glViewport", *(_Saved(first + k) for k in range(4)))
            return 0
        count = get(self._gl, _MAX_VIEWPORTS)
        places = [self._ask("glGetFloati_v", VIEWPORT, index).at for index in range(count)]  # one after the other
        self._restore.call("glViewportArrayv", 0, count, self._address(places[0]))
        return count

    def _record_bindings(self, units: Sequence[int], storage_bindings: int) -> None:
        ask, get_, again = self._ask, "glGetIntegerv", self._set_again
        active = ask(get_, ACTIVE_TEXTURE)
        for unit in units:
            self._save.call("glActiveTexture", TEXTURE0 + unit)
            again("glActiveTexture", TEXTURE0 + unit)
            for target, binding in _TEXTURES.items():
                again("glBindTexture", target, ask(get_, binding))
            again("glBindSampler", unit, ask(get_, SAMPLER_BINDING))
        again("glActiveTexture", active)
        ranges = [(UNIFORM_BUFFER, UNIFORM_BINDING, UNIFORM_START, 0)]
        ranges += [(STORAGE_BUFFER, STORAGE_BINDING, STORAGE_START, index) for index in range(storage_bindings)]
        self._ranges = [
            (target, index, *(ask("glGetInteger64i_v", name, index).at for name in (binding, start, start + 1)))
            for target, binding, start, index in ranges
        ]
        for target, index, name, _, _ in self._ranges:
            again("glBindBufferBase", target, index, _Saved(name))
        self._sizes = [size for *_, size in self._ranges]
        general = {UNIFORM_BUFFER: UNIFORM_BINDING} | ({STORAGE_BUFFER: STORAGE_BINDING} if storage_bindings else {})
        self._general = [(target, ask(get_, binding).at) for target, binding in general.items()]
        for target, binding in _BUFFERS.items():
            again("glBindBuffer", target, ask(get_, binding))

    def __enter__(self) -> None:
        gl, numbers = self._gl, self._numbers
        self._save.run()
        if numbers[self._program]:  # GL keeps a deleted program only while it is current
            gl.glGetProgramiv(int(numbers[self._program]), _DELETE_STATUS, self._address(self._program + 1))
            if numbers[self._program + 1]:
                numbers[self._program] = 0
        if self._has_feedback:  # GL allows no other program while it is active
            is_active, is_paused = numbers[self._feedback_states]
            self._feedback = bool(is_active and not is_paused)
            if self._feedback:
                gl.glPauseTransformFeedback()
        self._masked = np.flatnonzero(numbers[self._masks] != _ALL_CHANNELS).tolist()
        for index in self._masked:
            gl.glColorMaski(index, 1, 1, 1, 1)
        for k in np.flatnonzero(numbers[self._store] != _STORE_WANTED):
            gl.glPixelStorei(*_STORE_PAIRS[k])
        self._transferred = self._changed_transfers() if self._transfers else ()
        for name, _ in self._transferred:
            gl.glPixelTransferf(name, self._transfer[name])

    def _changed_transfers(self) -> Sequence[tuple[int, float]]:
        """The names of glPixelTransferf that the caller has changed, and its values."""
        values = self._numbers.view(np.float32)[self._transfers].tolist()
        return [
            (name, value) for (name, first), value in zip(self._transfer.items(), values, strict=True) if value != first
        ]

    def __exit__(self, *_: object) -> None:
        gl, numbers = self._gl, self._numbers
        self._restore.fill(self._rows, self._words, numbers[self._indices])
        is_on = self._save.flags(self._asked)
        self._restore.fill(self._set, 0, np.where(is_on, self._enable, self._disable))
        self._restore.run()
        if numbers[self._sizes].any():
            for target, index, name, start, size in self._ranges:
                if numbers[name] and (wide := self._wide(size)):
                    gl.glBindBufferRange(target, index, int(numbers[name]), self._wide(start), wide)
        for target, index in self._general:  # the indexed bindings have changed them
            gl.glBindBuffer(target, int(numbers[index]))
        for index in self._masked:
            at = self._masks[index]
            gl.glColorMaski(index, *numbers[at : at + 1].view(np.uint8).tolist())
        for name, value in self._transferred:
            gl.glPixelTransferf(name, value)
        if self._feedback:
            gl.glResumeTransformFeedback()

    def _wide(self, index: int) -> int:
        """A saved number of 64 bits."""
        return int(self._numbers[index : index + 2].view(np.int64)[0])
