"""The GL functions that steps call directly, loaded by name. The context's own loader (EGL, GLX, WGL or CGL) finds
them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

_U, _I, _P, _L = ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t
_B, _S = ctypes.c_ubyte, ctypes.c_char_p

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "glActiveTexture": (None, _U),
    "glAttachShader": (None, _U, _U),
    "glBeginConditionalRender": (None, _U, _U),
    "glBeginQuery": (None, _U, _U),
    "glBindBuffer": (None, _U, _U),
    "glBindBufferBase": (None, _U, _U, _U),
    "glBindBufferRange": (None, _U, _U, _U, _L, _L),
    "glBindFramebuffer": (None, _U, _U),
    "glBindSampler": (None, _U, _U),
    "glBindTexture": (None, _U, _U),
    "glBindVertexArray": (None, _U),
    "glBufferData": (None, _U, _L, _P, _U),
    "glBlendEquationSeparate": (None, _U, _U),
    "glBlendEquationSeparatei": (None, _U, _U, _U),
    "glBlendFuncSeparate": (None, _U, _U, _U, _U),
    "glBlendFuncSeparatei": (None, _U, _U, _U, _U, _U),
    "glBlitFramebuffer": (None, _I, _I, _I, _I, _I, _I, _I, _I, _U, _U),
    "glCheckFramebufferStatus": (_U, _U),
    "glClampColor": (None, _U, _U),
    "glClearBufferfv": (None, _U, _I, _P),
    "glClearBufferiv": (None, _U, _I, _P),
    "glClientWaitSync": (_U, _P, _U, ctypes.c_uint64),
    "glColorMaski": (None, _U, _B, _B, _B, _B),
    "glCompileShader": (None, _U),
    "glCopyBufferSubData": (None, _U, _U, _L, _L, _L),
    "glCreateProgram": (_U,),
    "glCreateShader": (_U, _U),
    "glDeleteProgram": (None, _U),
    "glDeleteShader": (None, _U),
    "glDeleteFramebuffers": (None, _I, _P),
    "glDeleteQueries": (None, _I, _P),
    "glDeleteSync": (None, _P),
    "glDeleteTextures": (None, _I, _P),
    "glDisable": (None, _U),
    "glDisablei": (None, _U, _U),
    "glDispatchCompute": (None, _U, _U, _U),
    "glDrawArrays": (None, _U, _I, _I),
    "glDrawArraysInstanced": (None, _U, _I, _I, _I),
    "glDrawBuffers": (None, _I, _P),
    "glEnable": (None, _U),
    "glEnablei": (None, _U, _U),
    "glEndConditionalRender": (None,),
    "glEndQuery": (None, _U),
    "glFenceSync": (_P, _U, _U),
    "glFinish": (None,),
    "glFlush": (None,),
    "glFramebufferTexture": (None, _U, _U, _U, _I),
    "glFramebufferTexture2D": (None, _U, _U, _U, _U, _I),
    "glFramebufferTextureLayer": (None, _U, _U, _U, _I, _I),
    "glGenFramebuffers": (None, _I, _P),
    "glGenQueries": (None, _I, _P),
    "glGenSamplers": (None, _I, _P),
    "glGenTextures": (None, _I, _P),
    "glGenVertexArrays": (None, _I, _P),
    "glGetBooleani_v": (None, _U, _U, _P),
    "glGetError": (_U,),
    "glGetFloati_v": (None, _U, _U, _P),
    "glGetFloatv": (None, _U, _P),
    "glGetFramebufferAttachmentParameteriv": (None, _U, _U, _U, _P),
    "glGetIntegeri_v": (None, _U, _U, _P),
    "glGetInteger64i_v": (None, _U, _U, _P),
    "glGetIntegerv": (None, _U, _P),
    "glGetProgramBinary": (None, _U, _I, _P, _P, _P),
    "glGetProgramInfoLog": (None, _U, _I, _P, _P),
    "glGetProgramiv": (None, _U, _U, _P),
    "glGetQueryObjectiv": (None, _U, _U, _P),
    "glGetQueryObjectui64v": (None, _U, _U, _P),
    "glGetInteger64v": (None, _U, _P),
    "glGetQueryiv": (None, _U, _U, _P),
    "glGetShaderInfoLog": (None, _U, _I, _P, _P),
    "glGetShaderiv": (None, _U, _U, _P),
    "glGetString": (_P, _U),
    "glGetTexLevelParameteriv": (None, _U, _I, _U, _P),
    "glGetUniformBlockIndex": (_U, _U, _S),
    "glGetUniformLocation": (_I, _U, _S),
    "glIsEnabled": (_B, _U),
    "glIsEnabledi": (_B, _U, _U),
    "glIsFramebuffer": (_B, _U),
    "glIsSync": (_B, _P),
    "glIsTexture": (_B, _U),
    "glLinkProgram": (None, _U),
    "glMemoryBarrier": (None, _U),
    "glPauseTransformFeedback": (None,),
    "glPixelStorei": (None, _U, _I),
    "glPolygonMode": (None, _U, _U),
    "glProgramBinary": (None, _U, _U, _P, _I),
    "glProgramParameteri": (None, _U, _U, _I),
    "glQueryCounter": (None, _U, _U),
    "glResumeTransformFeedback": (None,),
    "glReadBuffer": (None, _U),
    "glReadPixels": (None, _I, _I, _I, _I, _U, _U, _P),
    "glSamplerParameteri": (None, _U, _U, _I),
    "glScissor": (None, _I, _I, _I, _I),
    "glScissorIndexed": (None, _U, _I, _I, _I, _I),
    "glShaderSource": (None, _U, _I, _P, _P),
    "glUniform1i": (None, _I, _I),
    "glUniformBlockBinding": (None, _U, _U, _U),
    "glTexBuffer": (None, _U, _U, _U),
    "glUniform2i": (None, _I, _I, _I),
    "glUseProgram": (None, _U),
    "glViewport": (None, _I, _I, _I, _I),
    "glViewportArrayv": (None, _U, _I, _P),
}
_OLD_SIGNATURES: dict[str, tuple[Any, ...]] = {"glPixelTransferf": (None, _U, ctypes.c_float)}
_SINCE = {  # GL versions above 3.3
    "glBlendEquationSeparatei": 400,
    "glBlendFuncSeparatei": 400,
    "glDispatchCompute": 430,
    "glGetFloati_v": 410,
    "glGetProgramBinary": 410,
    "glMemoryBarrier": 430,
    "glPauseTransformFeedback": 400,
    "glProgramBinary": 410,
    "glProgramParameteri": 410,
    "glResumeTransformFeedback": 400,
    "glScissorIndexed": 410,
    "glViewportArrayv": 410,
}
_PROFILE_MASK, _COMPATIBILITY = 0x9126, 2


class Entries:
    """The GL functions of one context as attributes: `gl.glUseProgram(...)`. `load` raises for a missing function.

    Native code calls them by their `addresses`. `compatibility` says whether the context, which is current, has the
    compatibility profile.
    """

    def __init__(self, load: Callable[[str], int], version: int) -> None:
        self.version, self.addresses = version, dict[str, int]()
        self.own_framebuffers = set[int]()
        """perframe's own framebuffers, which draw into tensors."""
        self._add(load, {name: kind for name, kind in _SIGNATURES.items() if version >= _SINCE.get(name, 330)})
        self.compatibility = bool(get(self, _PROFILE_MASK) & _COMPATIBILITY)
        if self.compatibility:
            self._add(load, _OLD_SIGNATURES)

    def _add(self, load: Callable[[str], int], signatures: Mapping[str, tuple[Any, ...]]) -> None:
        for name, (result, *arguments) in signatures.items():
            address = self.addresses[name] = load(name)
            setattr(self, name, ctypes.CFUNCTYPE(result, *arguments)(address))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"{name} is not loaded in this GL context")


def generate(gl: Any, kind: str) -> int:
    """Generate a GL name. `kind` is "Samplers", "Queries" and so on."""
    name = ctypes.c_uint()
    getattr(gl, f"glGen{kind}")(1, ctypes.byref(name))
    if kind == "Framebuffers":
        gl.own_framebuffers.add(name.value)
    return int(name.value)


def delete(gl: Any, kind: str, name: int) -> None:
    """Delete a GL name. `kind` is that of `generate`."""
    getattr(gl, f"glDelete{kind}")(1, ctypes.byref(ctypes.c_uint(name)))
    if kind == "Framebuffers":
        gl.own_framebuffers.discard(name)


def get(gl: Any, name: int) -> int:
    """An integer of GL's state."""
    value = (ctypes.c_int * 4)()
    gl.glGetIntegerv(name, value)
    return int(value[0])


def get_indexed(gl: Any, name: int, index: int) -> int:
    """An integer of GL's state that each draw buffer, or binding, has by itself."""
    value = (ctypes.c_int * 4)()
    gl.glGetIntegeri_v(name, index, value)
    return int(value[0])


def get_four(gl: Any, name: int) -> tuple[int, int, int, int]:
    """Four integers of GL's state: a viewport, a mask."""
    value = (ctypes.c_int * 4)()
    gl.glGetIntegerv(name, value)
    return value[0], value[1], value[2], value[3]
