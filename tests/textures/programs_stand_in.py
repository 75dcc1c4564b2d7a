"""Stand-ins for SpoutGL and syphon-python, with their names and signatures.

They move pictures by GL, and leave GL's state in disorder, as the real ones may.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from perframe.graphics.headless_context import entry_point

U, N, P = ctypes.c_uint, ctypes.c_int, ctypes.c_void_p
TEXTURE_2D, RECTANGLE, RGBA, BYTES = 0x0DE1, 0x84F5, 0x1908, 0x1401
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "glActiveTexture": (None, U),
    "glBindFramebuffer": (None, U, U),
    "glBindTexture": (None, U, U),
    "glEnable": (None, U),
    "glDeleteTextures": (None, N, P),
    "glGenTextures": (None, N, P),
    "glGetIntegerv": (None, U, P),
    "glGetTexImage": (None, U, N, U, U, P),
    "glGetTexLevelParameteriv": (None, U, N, U, P),
    "glIsTexture": (ctypes.c_ubyte, U),
    "glTexImage2D": (None, U, N, N, N, N, N, U, U, P),
    "glTexSubImage2D": (None, U, N, N, N, N, N, U, U, P),
    "glUseProgram": (None, U),
    "glViewport": (None, N, N, N, N),
}


class Exchange:
    """What all programs share: pictures by the names of senders, top row first, and the number of each."""

    def __init__(self, ctx: Any) -> None:
        load = {name: ctypes.CFUNCTYPE(*kinds)(entry_point(ctx, name)) for name, kinds in _SIGNATURES.items()}
        self.gl = SimpleNamespace(**load)
        self.pictures: dict[str, Any] = {}
        self.numbers: dict[str, int] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.open: list[object] = []
        self.fails = False

    def number(self, name: int) -> int:
        value = (ctypes.c_int * 4)()
        self.gl.glGetIntegerv(name, value)
        return value[0]

    def read(self, texture: int, size: tuple[int, int]) -> Any:
        """A texture's rows, as they lie."""
        gl, found = self.gl, ctypes.c_int()
        assert gl.glIsTexture(texture)
        gl.glBindTexture(TEXTURE_2D, texture)
        for name, side in zip((0x1000, 0x1001), size, strict=True):
            gl.glGetTexLevelParameteriv(TEXTURE_2D, 0, name, ctypes.byref(found))
            assert found.value == side
        rows = np.zeros((size[1], size[0], 4), np.uint8)
        gl.glGetTexImage(TEXTURE_2D, 0, RGBA, BYTES, rows.ctypes.data)
        return rows

    def write(self, texture: int, rows: Any) -> None:
        rows = np.ascontiguousarray(rows)
        self.gl.glBindTexture(TEXTURE_2D, texture)
        self.gl.glTexSubImage2D(TEXTURE_2D, 0, 0, 0, rows.shape[1], rows.shape[0], RGBA, BYTES, rows.ctypes.data)

    def rectangle(self, rows: Any) -> int:
        """A new rectangle texture with these rows."""
        name, rows = ctypes.c_uint(), np.ascontiguousarray(rows)
        self.gl.glGenTextures(1, ctypes.byref(name))
        self.gl.glBindTexture(RECTANGLE, name.value)
        size = rows.shape[1], rows.shape[0]
        self.gl.glTexImage2D(RECTANGLE, 0, 0x8058, *size, 0, RGBA, BYTES, rows.ctypes.data)
        return name.value

    def send(self, name: str, picture: Any) -> None:
        self.pictures[name] = picture
        self.numbers[name] = self.numbers.get(name, 0) + 1

    def disorder(self) -> None:
        """Change state, and leave it so."""
        gl = self.gl
        gl.glUseProgram(0)
        gl.glViewport(1, 2, 3, 4)
        gl.glEnable(0x0C11)  # the scissor test
        gl.glBindFramebuffer(0x8D40, 0)
        gl.glActiveTexture(0x84C0)
        gl.glBindTexture(TEXTURE_2D, 0)


class _WithExchange:
    exchange: Exchange


class SpoutSender(_WithExchange):
    def __init__(self) -> None:
        self.name = ""
        self.exchange.open.append(self)

    def setSenderName(self, name: str) -> None:
        self.name = name

    def sendTexture(self, texture: int, target: int, width: int, height: int, invert: bool, fbo: int) -> bool:
        exchange = self.exchange
        assert self in exchange.open and target == TEXTURE_2D and fbo == exchange.number(0x8CA6)
        exchange.calls.append(("sendTexture", texture, width, height, invert))
        if exchange.fails:
            return False
        rows = exchange.read(texture, (width, height))
        exchange.send(self.name, rows[::-1] if invert else rows)
        exchange.disorder()
        return True

    def setFrameSync(self, name: str) -> None:
        assert name == self.name

    def releaseSender(self) -> None:
        self.exchange.open.remove(self)
        self.exchange.pictures.pop(self.name, None)


class SpoutReceiver(_WithExchange):
    def __init__(self) -> None:
        self.name, self.size, self.seen = "", (0, 0), 0
        self.updated = self.connected = self.new = False
        self.exchange.open.append(self)

    def setReceiverName(self, name: str) -> None:
        self.name = name

    def receiveTexture(self, texture: int, target: int, invert: bool, fbo: int) -> bool:
        exchange = self.exchange
        assert self in exchange.open and target == TEXTURE_2D and fbo == exchange.number(0x8CA6)
        if exchange.fails:
            raise RuntimeError("no shared texture")
        name = self.name or next(iter(exchange.pictures), "")
        picture = exchange.pictures.get(name)
        self.connected, self.new = picture is not None, False
        if picture is None:
            self.size = (0, 0)
            return False
        size = picture.shape[1], picture.shape[0]
        if size != self.size:
            self.size, self.updated, self.seen = size, True, 0
            return True
        exchange.read(texture, size)  # it has this size
        exchange.write(texture, picture[::-1] if invert else picture)
        self.new, self.seen = exchange.numbers[name] != self.seen, exchange.numbers[name]
        exchange.disorder()
        return True

    def isUpdated(self) -> bool:
        updated, self.updated = self.updated, False
        return updated

    def isConnected(self) -> bool:
        return self.connected

    def isFrameNew(self) -> bool:
        return self.new

    def getSenderWidth(self) -> int:
        return self.size[0]

    def getSenderHeight(self) -> int:
        return self.size[1]

    def releaseReceiver(self) -> None:
        self.exchange.open.remove(self)


class SyphonOpenGLServer(_WithExchange):
    def __init__(self, name: str, cgl_context_obj: Any = None) -> None:
        if name == "refused":
            raise ValueError("no CGL context")
        self.name = name
        self.exchange.open.append(self)

    def publish_frame_texture(
        self,
        texture: int,
        region: tuple[int, int, int, int] | None = None,
        size: tuple[int, int] | None = None,
        is_flipped: bool = False,
        target: int = TEXTURE_2D,
    ) -> None:
        assert size is not None and region == (0, 0, *size) and target == TEXTURE_2D and self in self.exchange.open
        if self.exchange.fails:
            raise RuntimeError("objc error")
        rows = self.exchange.read(texture, size)
        self.exchange.send(self.name, rows if is_flipped else rows[::-1])
        self.exchange.disorder()
        self.exchange.rectangle(rows)  # it stays bound

    def stop(self) -> None:
        self.exchange.open.remove(self)
        self.exchange.pictures.pop(self.name, None)


class SyphonServerDirectory(_WithExchange):
    def __init__(self) -> None:
        self.run_loop_interval = 1.0

    @property
    def servers(self) -> list[Any]:
        assert self.run_loop_interval < 1
        return [SimpleNamespace(name=name, app_name="Resolume", uuid=name) for name in self.exchange.pictures]

    def servers_matching_name(self, name: str | None = None, app_name: str | None = None) -> list[Any]:
        return [one for one in self.servers if one.name == name or one.app_name == app_name]


class SyphonOpenGLClient(_WithExchange):
    def __init__(self, description: Any, cgl_context_obj: Any = None) -> None:
        self.name, self.seen = description.uuid, 0
        self.exchange.open.append(self)

    @property
    def is_valid(self) -> bool:
        return self.name in self.exchange.pictures

    @property
    def has_new_frame(self) -> bool:
        return self.exchange.numbers[self.name] != self.seen

    @property
    def new_frame_image(self) -> Any:
        if self.exchange.fails:
            raise RuntimeError("objc error")
        self.seen, picture = self.exchange.numbers[self.name], self.exchange.pictures[self.name]
        name = self.exchange.rectangle(picture[::-1])
        size = SimpleNamespace(width=float(picture.shape[1]), height=float(picture.shape[0]))
        return SimpleNamespace(textureName=lambda: name, textureSize=lambda: size)

    def stop(self) -> None:
        self.exchange.open.remove(self)


def modules(ctx: Any) -> tuple[Exchange, dict[str, Any]]:
    """The exchange, and the two packages' modules."""
    exchange = Exchange(ctx)
    _WithExchange.exchange = exchange
    spout = SimpleNamespace(SpoutSender=SpoutSender, SpoutReceiver=SpoutReceiver)
    syphon = SimpleNamespace(
        SyphonOpenGLServer=SyphonOpenGLServer,
        SyphonOpenGLClient=SyphonOpenGLClient,
        SyphonServerDirectory=SyphonServerDirectory,
    )
    return exchange, {"SpoutGL": spout, "syphon": syphon}
