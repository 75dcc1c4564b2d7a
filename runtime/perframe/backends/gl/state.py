"""The caller's GL state: we restore everything that we change."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from perframe.backends.gl.texels import SHEETS
from perframe.errors import BackendError
from perframe.graphics.functions import generate, get, get_four, get_indexed, get_mask, get_range

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
_SWITCHES = (0x0B71, 0x0B90, 0x0C11, 0x0B44, 0x0BF2, 0x8037, 0x8DB9, 0x8C89, 0x8E51, 0x80A0, 0x809E)
_CLIP_DISTANCES = tuple(range(0x3000, 0x3008))
# swap bytes, row length, skip rows, skip pixels, image height, skip images, alignment
_UNPACK = (0x0CF0, 0x0CF2, 0x0CF3, 0x0CF4, 0x806E, 0x806D, 0x0CF5)
_PACK = (0x0D00, 0x0D02, 0x0D03, 0x0D04, 0x806C, 0x806B, 0x0D05)
_PIXEL_STORE = dict(zip(_UNPACK + _PACK, (0, 0, 0, 0, 0, 0, 4) * 2, strict=True))
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
            raise BackendError(f"GL reports the error 0x{error:X}: the GL context was lost")

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


class StateGuard:
    """Saves the GL state on entry and restores it on exit. In between, every switch that would spoil a blit is off."""

    def __init__(self, gl: Any, units: Sequence[int], storage_bindings: int) -> None:
        self._gl, self._units, self._storage_bindings = gl, units, storage_bindings

    def __enter__(self) -> None:
        gl = self._gl
        self._feedback = hasattr(gl, "glPauseTransformFeedback") and get(gl, _FEEDBACK_ACTIVE)
        if self._feedback and not get(gl, _FEEDBACK_PAUSED):  # GL allows no other program while it is active
            gl.glPauseTransformFeedback()
        else:
            self._feedback = False
        self._program, self._array = get(gl, CURRENT_PROGRAM), get(gl, VERTEX_ARRAY)
        self._draw, self._read = get(gl, DRAW_BINDING), get(gl, READ_BINDING)
        self._viewport, self._polygons = get_four(gl, VIEWPORT), get(gl, POLYGON_MODE)
        self._masks = {index: mask for index in range(SHEETS) if not all(mask := get_mask(gl, index))}
        self._blends = [index for index in range(SHEETS) if gl.glIsEnabledi(BLEND, index)]
        self._buffers = {target: get(gl, binding) for target, binding in _BUFFERS.items()}
        self._on = [switch for switch in _SWITCHES + _CLIP_DISTANCES if gl.glIsEnabled(switch)]
        self._store = {name: get(gl, name) for name in _PIXEL_STORE}
        self._active = get(gl, ACTIVE_TEXTURE)
        self._textures = []
        for unit in self._units:
            gl.glActiveTexture(TEXTURE0 + unit)
            names = (TEXTURE_2D_BINDING, TEXTURE_2D_ARRAY_BINDING, TEXTURE_BUFFER_BINDING, SAMPLER_BINDING)
            self._textures.append([get(gl, name) for name in names])
        self._uniform_target, self._uniform = get(gl, UNIFORM_BINDING), self._indexed(UNIFORM_BINDING, UNIFORM_START, 0)
        self._storages = [
            self._indexed(STORAGE_BINDING, STORAGE_START, index) for index in range(self._storage_bindings)
        ]
        self._storage_target = get(gl, STORAGE_BINDING) if self._storages else 0
        for switch in self._on:
            gl.glDisable(switch)
        for name, value in _PIXEL_STORE.items():
            if self._store[name] != value:
                gl.glPixelStorei(name, value)
        for target in (0x88EB, 0x88EC):
            gl.glBindBuffer(target, 0)
        for index in self._blends:
            gl.glDisablei(BLEND, index)
        for index in self._masks:
            gl.glColorMaski(index, 1, 1, 1, 1)
        gl.glPolygonMode(FRONT_AND_BACK, FILL)

    def _indexed(self, binding: int, start: int, index: int) -> tuple[int, int, int]:
        gl = self._gl
        return get_indexed(gl, binding, index), get_range(gl, start, index), get_range(gl, start + 1, index)

    def _restore_indexed(self, target: int, index: int, saved: tuple[int, int, int]) -> None:
        name, start, size = saved
        if name and size:
            self._gl.glBindBufferRange(target, index, name, start, size)
        else:
            self._gl.glBindBufferBase(target, index, name)

    def __exit__(self, *_: object) -> None:
        gl = self._gl
        gl.glUseProgram(self._program)
        gl.glBindVertexArray(self._array)
        gl.glBindFramebuffer(DRAW_FRAMEBUFFER, self._draw)
        gl.glBindFramebuffer(READ_FRAMEBUFFER, self._read)
        gl.glViewport(*self._viewport)
        for index, mask in self._masks.items():
            gl.glColorMaski(index, *mask)
        gl.glPolygonMode(FRONT_AND_BACK, self._polygons)
        for index in self._blends:
            gl.glEnablei(BLEND, index)
        for unit, (texture, array, buffer, sampler) in zip(self._units, self._textures, strict=True):
            gl.glActiveTexture(TEXTURE0 + unit)
            gl.glBindTexture(TEXTURE_2D, texture)
            gl.glBindTexture(TEXTURE_2D_ARRAY, array)
            gl.glBindTexture(TEXTURE_BUFFER, buffer)
            gl.glBindSampler(unit, sampler)
        gl.glActiveTexture(self._active)
        self._restore_indexed(UNIFORM_BUFFER, 0, self._uniform)
        gl.glBindBuffer(UNIFORM_BUFFER, self._uniform_target)
        for index, saved in enumerate(self._storages):
            self._restore_indexed(STORAGE_BUFFER, index, saved)
        if self._storages:
            gl.glBindBuffer(STORAGE_BUFFER, self._storage_target)
        for target, name in self._buffers.items():
            gl.glBindBuffer(target, name)
        for name, value in self._store.items():
            gl.glPixelStorei(name, value)
        for switch in self._on:
            gl.glEnable(switch)
        if self._feedback:
            gl.glResumeTransformFeedback()
