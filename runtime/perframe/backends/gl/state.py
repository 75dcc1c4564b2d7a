"""The caller's GL state: we restore everything that we change."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perframe.backends.gl.replay import CommandList
from perframe.backends.gl.texels import SHEETS
from perframe.errors import BackendError, ContextLostError
from perframe.graphics.functions import generate, get

CURRENT_PROGRAM, VERTEX_ARRAY, ACTIVE_TEXTURE, VIEWPORT = 0x8B8D, 0x85B5, 0x84E0, 0x0BA2
DRAW_FRAMEBUFFER, READ_FRAMEBUFFER, DRAW_BINDING, READ_BINDING = 0x8CA9, 0x8CA8, 0x8CA6, 0x8CAA
TEXTURE_2D, TEXTURE0, TEXTURE_2D_BINDING, SAMPLER_BINDING = 0x0DE1, 0x84C0, 0x8069, 0x8919
TEXTURE_BUFFER, TEXTURE_BUFFER_BINDING = 0x8C2A, 0x8C2C
TEXTURE_2D_ARRAY, TEXTURE_2D_ARRAY_BINDING = 0x8C1A, 0x8C1D
UNIFORM_BUFFER, UNIFORM_BINDING, UNIFORM_START, UNIFORM_SIZE = 0x8A11, 0x8A28, 0x8A29, 0x8A2A
STORAGE_BUFFER, STORAGE_BINDING, STORAGE_START, STORAGE_SIZE = 0x90D2, 0x90D3, 0x90D4, 0x90D5
BLEND, POLYGON_MODE, FRONT_AND_BACK, FILL = 0x0BE2, 0x0B40, 0x0408, 0x1B02
_BUFFERS = {0x8892: 0x8894, 0x88EB: 0x88ED, 0x88EC: 0x88EF, 0x8F36: 0x8F36, 0x8F37: 0x8F37}  # array, pack, unpack, copy
# depth, stencil, scissor, cull, logic op, polygon offset, sRGB, discard, sample mask, sample coverage,
# sample alpha to coverage
SWITCHES: tuple[int, ...] = (0x0B71, 0x0B90, 0x0C11, 0x0B44, 0x0BF2, 0x8037, 0x8DB9, 0x8C89, 0x8E51, 0x80A0, 0x809E)
SWITCHES += tuple(range(0x3000, 0x3008))  # and clip distances
_TEXTURES = {TEXTURE_2D: TEXTURE_2D_BINDING, TEXTURE_2D_ARRAY: TEXTURE_2D_ARRAY_BINDING}
_TEXTURES[TEXTURE_BUFFER] = TEXTURE_BUFFER_BINDING
_COLOR_MASK, _ALL_CHANNELS = 0x0C23, 0x01010101
# swap bytes, row length, skip rows, skip pixels, image height, skip images, alignment
_UNPACK = (0x0CF0, 0x0CF2, 0x0CF3, 0x0CF4, 0x806E, 0x806D, 0x0CF5)
_PACK = (0x0D00, 0x0D02, 0x0D03, 0x0D04, 0x806C, 0x806B, 0x0D05)
_PIXEL_STORE = dict(zip(_UNPACK + _PACK, (0, 0, 0, 0, 0, 0, 4) * 2, strict=True))
_STORE_PAIRS, _STORE_WANTED = list(_PIXEL_STORE.items()), np.array(list(_PIXEL_STORE.values()), np.int32)
_QUERY_NO_WAIT, _CURRENT_QUERY, _SAMPLES_PASSED, _ANY_SAMPLES_PASSED = 0x8E14, 0x8865, 0x8914, 0x8C2F
_CONTEXT_FLAGS, _NO_ERROR_FLAG = 0x821E, 8
_INVALID_ENUM, _INVALID_VALUE, _INVALID_OPERATION = 0x500, 0x501, 0x502
_FEEDBACK_PAUSED, _FEEDBACK_ACTIVE = 0x8E23, 0x8E24


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
        """The query that conditional rendering needs; 0 while a query of the application runs, since none can be made
        beside it.
        """
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
        """Raise an error again that belongs to the application, which has yet to fetch it. Conditional rendering is
        active here.
        """
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
    """Saves the GL state on entry and restores it on exit. In between, every switch that would spoil a blit is off.

    Native code asks for all numbers at once, and sets most of them at the end; what callers rarely change is set only
    where they did. A guard is made once for a context, and holds one state at a time.
    """

    def __init__(self, gl: Any, units: Sequence[int], storage_bindings: int) -> None:
        self._gl, self._save, self._restore = gl, CommandList(gl, {}), CommandList(gl, {})
        self._numbers = np.zeros(1024, np.int32)
        self._taken = 0
        self._places: list[tuple[int, int, int]] = []  # row and word of the restoring list, and the number there
        self._feedback = False
        self._record(units, storage_bindings)
        self._save.finish()
        self._restore.finish()
        self._rows, self._words, self._indices = np.array(self._places, np.intp).T

    def _ask(self, function: str, *arguments: int) -> _Saved:
        """Save up to four numbers."""
        index, self._taken = self._taken, self._taken + 4
        if self._taken > self._numbers.size:
            raise AssertionError("a guard saves more numbers than it has room for")
        self._save.call(function, *arguments, self._numbers.ctypes.data + 4 * index)
        return _Saved(index)

    def _ask_switch(self, function: str, *arguments: int) -> int:
        """Save a switch: return the row whose result it is."""
        self._save.call(function, *arguments)
        return len(self._save) - 1

    def _set_again(self, function: str, *arguments: int | _Saved) -> None:
        """Set saved state on exit."""
        for word, argument in enumerate(arguments, 1):
            if isinstance(argument, _Saved):
                self._places.append((len(self._restore), word, argument.at))
        self._restore.call(function, *(0 if isinstance(argument, _Saved) else argument for argument in arguments))

    def _record(self, units: Sequence[int], storage_bindings: int) -> None:
        ask, get_, again = self._ask, "glGetIntegerv", self._set_again
        self._has_feedback = "glPauseTransformFeedback" in self._gl.addresses
        feedback = (_FEEDBACK_ACTIVE, _FEEDBACK_PAUSED) if self._has_feedback else ()
        self._feedback_states = [ask(get_, name).at for name in feedback]
        again("glUseProgram", ask(get_, CURRENT_PROGRAM))
        again("glBindVertexArray", ask(get_, VERTEX_ARRAY))
        again("glBindFramebuffer", DRAW_FRAMEBUFFER, ask(get_, DRAW_BINDING))
        again("glBindFramebuffer", READ_FRAMEBUFFER, ask(get_, READ_BINDING))
        first = ask(get_, VIEWPORT).at
        again("glViewport", *(_Saved(first + k) for k in range(4)))
        again("glPolygonMode", FRONT_AND_BACK, ask(get_, POLYGON_MODE))
        self._masks = [ask("glGetBooleani_v", _COLOR_MASK, index).at for index in range(SHEETS)]
        self._blends = [self._ask_switch("glIsEnabledi", BLEND, index) for index in range(SHEETS)]
        self._switches = [self._ask_switch("glIsEnabled", switch) for switch in SWITCHES]
        stored = {name: ask(get_, name) for name in _PIXEL_STORE}
        self._store = [number.at for number in stored.values()]
        for name, number in stored.items():  # moderngl changes them too
            again("glPixelStorei", name, number)
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
        for target in (0x88EB, 0x88EC):
            self._save.call("glBindBuffer", target, 0)
        self._save.call("glPolygonMode", FRONT_AND_BACK, FILL)

    def __enter__(self) -> None:
        gl, numbers = self._gl, self._numbers
        self._save.run()
        if self._has_feedback:  # GL allows no other program while it is active
            is_active, is_paused = numbers[self._feedback_states]
            self._feedback = bool(is_active and not is_paused)
            if self._feedback:
                gl.glPauseTransformFeedback()
        self._on = [SWITCHES[k] for k in self._save.which(self._switches)]
        for switch in self._on:
            gl.glDisable(switch)
        self._blended = self._save.which(self._blends)
        for index in self._blended:
            gl.glDisablei(BLEND, index)
        self._masked = np.flatnonzero(numbers[self._masks] != _ALL_CHANNELS).tolist()
        for index in self._masked:
            gl.glColorMaski(index, 1, 1, 1, 1)
        for k in np.flatnonzero(numbers[self._store] != _STORE_WANTED):
            gl.glPixelStorei(*_STORE_PAIRS[k])

    def __exit__(self, *_: object) -> None:
        gl, numbers = self._gl, self._numbers
        self._restore.fill(self._rows, self._words, numbers[self._indices])
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
        for index in self._blended:
            gl.glEnablei(BLEND, index)
        for switch in self._on:
            gl.glEnable(switch)
        if self._feedback:
            gl.glResumeTransformFeedback()

    def _wide(self, index: int) -> int:
        """A saved number of 64 bits."""
        return int(self._numbers[index : index + 2].view(np.int64)[0])
