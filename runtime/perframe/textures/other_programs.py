"""Textures to other programs and from them, on one GPU: Spout on Windows, Syphon on macOS."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from perframe.backends import gl_guard
from perframe.errors import ClosedError, InputError, MissingExtraError
from perframe.graphics import GLContext
from perframe.graphics.functions import delete, generate, get
from perframe.media.sinks import Output

if TYPE_CHECKING:
    from perframe.backends import TexturePasses

_TEXTURE_2D, _RECTANGLE, _RECTANGLE_BINDING, _TEXTURE0 = 0x0DE1, 0x84F5, 0x84F6, 0x84C0
_DRAW_FRAMEBUFFER, _READ_FRAMEBUFFER, _DRAW_BINDING = 0x8CA9, 0x8CA8, 0x8CA6
_COLOR, _COLOR_BIT, _NEAREST = 0x8CE0, 0x4000, 0x2600
_LONGEST_NAME = 255  # bytes; Spout's limit
_SYSTEMS = {"spout": ("win32", "Windows"), "syphon": ("darwin", "macOS")}
_SECONDS = 5.0  # in which a Syphon server is looked for
_ORIGINS = ("bottom_left", "top_left")


class _SharedContext:
    """Access to GL for the code of others: the caller's state is restored after it."""

    def __init__(self, ctx: GLContext) -> None:
        self._using = gl_guard(ctx)

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Make GL calls, and let others make some, within this block. Raises BackendError, ClosedError."""
        with self._using() as gl:
            gl.glActiveTexture(_TEXTURE0)  # the guard restores units and targets, but not rectangles
            before = get(gl, _RECTANGLE_BINDING)
            try:
                yield gl
            finally:
                gl.glActiveTexture(_TEXTURE0)
                gl.glBindTexture(_RECTANGLE, before)


class TextureSink(Output):
    """Sends textures to other programs on this GPU, without a readback. Use it on the context's thread.

    `finish`, `abandon` and the end of a `with` block remove it from the list that other programs show.
    """

    def __init__(self, name: str, ctx: GLContext, passes: TexturePasses) -> None:
        self.name, self._passes, self._shared = name, passes, _SharedContext(ctx)
        self._is_open = True

    def write(self, texture: Any, coord_origin: str | None = None) -> None:
        """Send a moderngl texture, the first one of a framebuffer, or a GL name. Its size may change.

        `coord_origin` says where the first row is, "bottom_left" or "top_left". By default it is the bottom for a
        texture that a framebuffer draws into, and the top for any other. Raises InputError and ClosedError.
        """
        if not self._is_open:
            raise ClosedError(f"{self.name} was finished: open another sink")
        if coord_origin not in (None, *_ORIGINS):
            raise InputError(f"coord_origin is one of {', '.join(_ORIGINS)}, not {coord_origin!r}")
        texture = self._passes.readable(texture)
        width, height = self._passes.texture_size(texture)
        if coord_origin is None:
            coord_origin = _ORIGINS[0 if self._passes.is_drawn(texture) else 1]
        name = int(getattr(texture, "glo", texture))
        with self._shared.open() as gl, _failures(self.name, "took no texture"):
            self._send(gl, name, (width, height), coord_origin == "bottom_left")

    @abstractmethod
    def _send(self, gl: Any, texture: int, size: tuple[int, int], from_bottom: bool) -> None:
        """Send a texture by its GL name. The context is current."""

    @abstractmethod
    def _end(self) -> None:
        """End the service of the system. The context is current."""

    def finish(self) -> None:
        """End it. May be called twice."""
        if self._is_open:
            with self._shared.open():
                self._is_open = False
                self._end()

    def abandon(self) -> None:
        """End it."""
        self.finish()


class SpoutSink(TextureSink):
    """A Spout sender, on Windows."""

    def __init__(self, name: str, ctx: GLContext, passes: TexturePasses) -> None:
        super().__init__(f"the Spout sender {name!r}", ctx, passes)
        self._sender_name, library = name, _library("spout", self.name)
        with self._shared.open(), _failures(self.name, "cannot be opened"):
            self._sender = library.SpoutSender()
            self._sender.setSenderName(name)

    def _send(self, gl: Any, texture: int, size: tuple[int, int], from_bottom: bool) -> None:
        if not self._sender.sendTexture(texture, _TEXTURE_2D, *size, from_bottom, get(gl, _DRAW_BINDING)):
            raise InputError(f"{self.name} took no texture: does the GPU's driver share textures with DirectX?")
        self._sender.setFrameSync(self._sender_name)  # receivers may wait for it

    def _end(self) -> None:
        self._sender.releaseSender()


class SyphonSink(TextureSink):
    """A Syphon server, on macOS."""

    def __init__(self, name: str, ctx: GLContext, passes: TexturePasses) -> None:
        super().__init__(f"the Syphon server {name!r}", ctx, passes)
        library = _library("syphon", self.name)
        with self._shared.open(), _failures(self.name, "cannot be opened"):
            self._server = library.SyphonOpenGLServer(name)  # in the current context

    def _send(self, gl: Any, texture: int, size: tuple[int, int], from_bottom: bool) -> None:
        self._server.publish_frame_texture(
            texture, region=(0, 0, *size), size=size, is_flipped=not from_bottom, target=_TEXTURE_2D
        )

    def _end(self) -> None:
        self._server.stop()


class TextureSource(ABC):
    """Receives the textures of another program on this GPU. Use it on the context's thread; `with` or `release` ends
    it.
    """

    is_connected = False
    """Whether the other program was there at the last call of `texture`."""

    def __init__(self, name: str, ctx: GLContext) -> None:
        self.name, self._ctx, self._shared = name, ctx, _SharedContext(ctx)
        self._is_open = True
        self._texture: Any = None
        self._target: Any = None

    def texture(self) -> Any:
        """The newest picture as a moderngl texture; None if there is none since the last call. Never waits.

        The source owns the texture, overwrites it with the next picture, and replaces it when the size changes. Its
        first row is the bottom one, and a TextureConverter knows it. Raises InputError and ClosedError.
        """
        if not self._is_open:
            raise ClosedError(f"{self.name} was used after the source's release")
        with self._shared.open() as gl, _failures(self.name, "cannot be received"):
            return self._texture if self._receive(gl) else None

    @abstractmethod
    def _receive(self, gl: Any) -> bool:
        """Bring a new picture into the texture; False if there is none. The context is current."""

    @abstractmethod
    def _end(self, gl: Any) -> None:
        """End the service of the system. The context is current."""

    def _make_room(self, size: tuple[int, int]) -> None:
        """Have a texture of this size, and a framebuffer that draws into it."""
        if self._texture is not None and self._texture.size == size:
            return
        self._free()
        self._texture = self._ctx.texture(size, 4)
        self._target = self._ctx.framebuffer([self._texture])

    def _free(self) -> None:
        if self._texture is not None:
            self._target.release()
            self._texture.release()
            self._texture = None

    def release(self) -> None:
        """Free the texture, and end it. May be called twice."""
        if self._is_open:
            with self._shared.open() as gl:
                self._is_open = self.is_connected = False
                self._free()
                self._end(gl)

    def __enter__(self) -> TextureSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


class SpoutSource(TextureSource):
    """A Spout receiver, on Windows. It finds a sender that appears later, or again."""

    def __init__(self, name: str, ctx: GLContext) -> None:
        super().__init__(f"the Spout sender {name!r}" if name else "the active Spout sender", ctx)
        library = _library("spout", self.name)
        with self._shared.open(), _failures(self.name, "cannot be received"):
            self._receiver = library.SpoutReceiver()
            if name:
                self._receiver.setReceiverName(name)
            self._make_room((1, 1))

    def _receive(self, gl: Any) -> bool:
        receiver = self._receiver
        took = self._take(gl)
        if receiver.isUpdated():  # it has connected, or the size has changed: nothing was copied yet
            size = int(receiver.getSenderWidth()), int(receiver.getSenderHeight())
            if min(size) > 0:
                self._make_room(size)
                took = self._take(gl)
        self.is_connected = bool(receiver.isConnected())
        return bool(took and self.is_connected and receiver.isFrameNew())

    def _take(self, gl: Any) -> Any:
        flips = True  # to the order of GL
        return self._receiver.receiveTexture(self._texture.glo, _TEXTURE_2D, flips, get(gl, _DRAW_BINDING))

    def _end(self, gl: Any) -> None:
        self._receiver.releaseReceiver()


class SyphonSource(TextureSource):
    """A Syphon client, on macOS. Syphon brings rectangle textures, which are copied on the GPU.

    It waits for the server up to five seconds. Once the server has gone, `is_connected` is False: open another source.
    """

    def __init__(self, name: str, ctx: GLContext) -> None:
        super().__init__(f"the Syphon server {name!r}" if name else "the first Syphon server", ctx)
        library = _library("syphon", self.name)
        self._framebuffer = 0
        server = _find(library, name, self.name)
        with self._shared.open() as gl, _failures(self.name, "cannot be received"):
            self._client = library.SyphonOpenGLClient(server)
            self._framebuffer = generate(gl, "Framebuffers")

    def _receive(self, gl: Any) -> bool:
        self.is_connected = bool(self._client.is_valid)
        image = self._client.new_frame_image if self.is_connected and self._client.has_new_frame else None
        if image is None:
            return False
        measured = image.textureSize()
        size = int(measured.width), int(measured.height)
        if min(size) < 1:
            return False
        self._make_room(size)
        gl.glBindFramebuffer(_READ_FRAMEBUFFER, self._framebuffer)
        gl.glFramebufferTexture2D(_READ_FRAMEBUFFER, _COLOR, _RECTANGLE, int(image.textureName()), 0)
        gl.glBindFramebuffer(_DRAW_FRAMEBUFFER, self._target.glo)
        gl.glBlitFramebuffer(0, 0, *size, 0, 0, *size, _COLOR_BIT, _NEAREST)
        gl.glFramebufferTexture2D(_READ_FRAMEBUFFER, _COLOR, _RECTANGLE, 0, 0)
        return True

    def _end(self, gl: Any) -> None:
        delete(gl, "Framebuffers", self._framebuffer)
        self._client.stop()


def _find(library: Any, name: str, shown: str) -> Any:
    """The description of a Syphon server: by its own name, or by that of its program. Waits for it."""
    with _failures(shown, "cannot be looked for"):
        directory = library.SyphonServerDirectory()
        directory.run_loop_interval = 0.1  # seconds that each look takes
        end = time.monotonic() + _SECONDS
        while True:
            found = directory.servers_matching_name(name, name) if name else directory.servers
            if found:
                return found[0]
            if time.monotonic() >= end:
                raise InputError(f"{shown} was not found within {_SECONDS:g} s: is its program open?")


@contextmanager
def _failures(name: str, what: str) -> Iterator[None]:
    """Raise InputError for what a package raises. They have no base class of errors."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name} {what}: {error}") from error


def _library(kind: str, purpose: str) -> Any:
    """The package of a kind. Raises InputError on another system, and MissingExtraError without the package."""
    system, shown = _SYSTEMS[kind]
    if sys.platform != system:
        others = ", ".join(f"{other}:NAME on {where}" for other, (_, where) in _SYSTEMS.items() if other != kind)
        raise InputError(f"{purpose} needs {shown}: use {others}, or perframe.media's ndi:NAME on every system")
    try:
        if kind == "spout":
            import SpoutGL

            return SpoutGL
        import syphon

        return syphon
    except ImportError as error:
        package = "SpoutGL" if kind == "spout" else "syphon-python"
        raise MissingExtraError(package, kind, purpose) from error


def _parts(name: str) -> tuple[str, str]:
    """The kind and the rest of "spout:NAME". Raises InputError."""
    kind, _, rest = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind not in _SYSTEMS:
        raise InputError(f"textures are shared by spout:NAME or syphon:NAME, not {name!r}")
    if len(rest.encode()) > _LONGEST_NAME or "\0" in rest:
        raise InputError(f"a name has up to {_LONGEST_NAME} bytes, and no null character: {rest!r:.40}")
    return kind, rest


def open_texture_sink(name: str, ctx: GLContext, passes: TexturePasses) -> TextureSink:
    """Open "spout:NAME" or "syphon:NAME" as a sink; without a name it is called perframe."""
    kind, rest = _parts(name)
    return (SpoutSink if kind == "spout" else SyphonSink)(rest or "perframe", ctx, passes)


def open_texture_source(name: str, ctx: GLContext) -> TextureSource:
    """Open "spout:NAME" or "syphon:NAME" as a source; without a name, the first one that is found."""
    kind, rest = _parts(name)
    return (SpoutSource if kind == "spout" else SyphonSource)(rest, ctx)
