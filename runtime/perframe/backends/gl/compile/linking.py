"""Programs that the driver compiles and links. All programs of a plan begin before the first result is asked for, so
that a driver that compiles in threads works on many at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from perframe.safety.records import dataclass
from perframe.tensor.compilation import programs

_KINDS = {"vertex_shader": 0x8B31, "geometry_shader": 0x8DD9, "fragment_shader": 0x8B30, "source": 0x91B9}
_COMPILED, _LINKED, _LOG_LENGTH, _KEEPS_BINARY, _IS_COMPLETE = 0x8B81, 0x8B82, 0x8B84, 0x8257, 0x91B1


@dataclass(frozen=True)
class Linking:
    """A program that is being linked, and its shaders."""

    glo: int
    shaders: tuple[int, ...]

    def is_done(self, gl: Any) -> bool:
        """Whether the driver has linked it, where it links in threads and says so. Never blocks."""
        return bool(_status(gl.glGetProgramiv, self.glo, _IS_COMPLETE))

    def failure(self, gl: Any) -> str | None:
        """The driver's message if linking failed, or None. Waits for the driver, and frees the shaders."""
        failed = None
        if not _status(gl.glGetProgramiv, self.glo, _LINKED):
            logs = [
                _log(gl.glGetShaderiv, gl.glGetShaderInfoLog, shader)
                for shader in self.shaders
                if not _status(gl.glGetShaderiv, shader, _COMPILED)
            ]
            failed = "\n".join(logs or [_log(gl.glGetProgramiv, gl.glGetProgramInfoLog, self.glo)])
        for shader in self.shaders:
            gl.glDeleteShader(shader)  # the program keeps it
        if failed is not None:
            gl.glDeleteProgram(self.glo)
        return failed


def begin_linking(gl: Any, stages: Mapping[str, str], keeps_binary: bool) -> Linking:
    """Begin to compile shaders, and to link a program of them. `keeps_binary` says that its binary will be wanted."""
    programs.begin()
    program, shaders = gl.glCreateProgram(), []
    for kind, text in stages.items():
        shader, source = gl.glCreateShader(_KINDS[kind]), text.encode()
        gl.glShaderSource(shader, 1, (ctypes.c_char_p * 1)(source), (ctypes.c_int * 1)(len(source)))
        gl.glCompileShader(shader)
        gl.glAttachShader(program, shader)
        shaders.append(shader)
    if keeps_binary:
        gl.glProgramParameteri(program, _KEEPS_BINARY, 1)
    gl.glLinkProgram(program)
    return Linking(program, tuple(shaders))


def _status(ask: Any, name: int, what: int) -> int:
    value = ctypes.c_int()
    ask(name, what, ctypes.byref(value))
    return value.value


def _log(ask: Any, read: Any, name: int) -> str:
    length = _status(ask, name, _LOG_LENGTH)
    text = ctypes.create_string_buffer(length + 1)
    read(name, length + 1, None, text)
    return text.value.decode(errors="replace").strip()
