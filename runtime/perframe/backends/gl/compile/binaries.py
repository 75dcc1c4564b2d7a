"""Linked GL programs on disk, so that a later process need not compile them: GL 4.1's program binaries.

A driver may refuse a binary, for instance after its update; then the program is compiled, and its file replaced.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import moderngl

from perframe.backends.kernel_files import kernel_folder, read, write
from perframe.graphics.functions import get
from perframe.resources import digest_of

_FORMAT_COUNT, _FORMATS, _LENGTH, _IS_LINKED = 0x87FE, 0x87FF, 0x8741, 0x8B82
_NAMES = (0x1F00, 0x1F01, 0x1F02)  # vendor, renderer, version


class ProgramBinaries:
    """The files of one context's programs. Without GL 4.1, or if the driver has no format, there are none."""

    def __init__(self, ctx: moderngl.Context, gl: Any) -> None:
        self._ctx, self._gl = ctx, gl
        self._new: deque[tuple[Path, int]] = deque()

    @cached_property
    def _formats(self) -> Sequence[int]:
        if self._ctx.version_code < 410 or not (count := get(self._gl, _FORMAT_COUNT)):
            return ()
        formats = (ctypes.c_int * count)()
        self._gl.glGetIntegerv(_FORMATS, formats)
        return list(formats)

    @cached_property
    def _driver(self) -> bytes:
        return b"\n".join(ctypes.string_at(self._gl.glGetString(name)) for name in _NAMES)

    @property
    def are_kept(self) -> bool:
        """Whether programs go to disk."""
        return bool(self._formats)

    def load(self, texts: Sequence[str]) -> int | None:
        """The GL name of the program of these shaders, if a file has it and the driver takes it."""
        found = read(self._path(texts)) if self._formats else None
        if found is None or int(found[1]) not in self._formats:
            return None
        gl, linked = self._gl, ctypes.c_int()
        name = int(gl.glCreateProgram())
        gl.glProgramBinary(name, int(found[1]), found[0], len(found[0]))
        gl.glGetProgramiv(name, _IS_LINKED, ctypes.byref(linked))
        if not linked.value:
            gl.glDeleteProgram(name)
            return None
        return name

    def note(self, texts: Sequence[str], program: int) -> None:
        """Let `keep` write this program. It is not written at once: a driver may still compile it, in threads."""
        if self._formats:
            self._new.append((self._path(texts), program))

    def keep(self, most: int | None = None) -> None:
        """Write the noted programs, or at most `most` of them. The context is current."""
        for _ in range(len(self._new) if most is None else min(most, len(self._new))):
            path, program = self._new.popleft()
            length, kind = ctypes.c_int(), ctypes.c_uint()
            self._gl.glGetProgramiv(program, _LENGTH, ctypes.byref(length))
            data = (ctypes.c_ubyte * length.value)()
            if length.value:
                self._gl.glGetProgramBinary(program, length.value, ctypes.byref(length), ctypes.byref(kind), data)
                write(path, bytes(data[: length.value]), str(kind.value))

    def _path(self, texts: Sequence[str]) -> Path:
        digest = digest_of(self._driver, *(f"\0{text}" for text in texts))
        return kernel_folder() / f"{digest[:40]}.program"
