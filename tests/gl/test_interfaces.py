"""Contexts as Windows and macOS have them, whose interfaces are not here: what we call there, and in which order."""

from __future__ import annotations

import sys
from typing import Any

import moderngl
import numpy as np
import pytest

import perframe as pf
from gl.graphs import network
from perframe.backends.gl.context import devices as context
from perframe.errors import BackendError
from perframe.graphics import current_context, headless_context
from perframe.host import window
from perframe.host.headless import HeadlessSurface

ONES = np.ones((1, 3, 4, 5), np.float32)


class Wgl:
    """The functions of opengl32.dll."""

    def __init__(self) -> None:
        self.handles: tuple[int | None, ...] = (None, None)  # of the window's device, and of the context
        self.calls = 0

    def wglGetCurrentDC(self) -> int | None:
        return self.handles[0]

    def wglGetCurrentContext(self) -> int | None:
        return self.handles[1]

    def wglMakeCurrent(self, *handles: int | None) -> int:
        self.handles, self.calls = handles, self.calls + 1
        return 1


class Cgl:
    """The functions of macOS' framework OpenGL."""

    def __init__(self) -> None:
        self.handles: tuple[int | None, ...] = (None,)
        self.calls = 0

    def CGLGetCurrentContext(self) -> int | None:
        return self.handles[0]

    def CGLSetCurrentContext(self, *handles: int | None) -> int:
        self.handles, self.calls = handles, self.calls + 1
        return 0


@pytest.mark.parametrize(("system", "fake"), [("win32", Wgl), ("darwin", Cgl)])
def test_the_callers_context_becomes_current_again(system: str, fake: type, monkeypatch: pytest.MonkeyPatch) -> None:
    interface = fake()
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(current_context, "_library", lambda name: interface if "pengl" in name.lower() else None)
    monkeypatch.setattr(current_context, "_function", lambda library, name, *kinds: getattr(interface, name))
    assert current_context.current() == current_context.NOTHING
    assert current_context.find_current()[1] is None
    theirs, ours = tuple(range(11, 11 + len(interface.handles))), tuple(range(21, 21 + len(interface.handles)))
    interface.handles = theirs
    previous = current_context.current()
    assert previous.handles == theirs and previous.context == theirs[-1] == current_context.find_current()[1]
    current_context.restore(previous)
    assert interface.calls == 0, "it is current already"
    interface.handles = ours
    current_context.restore(previous)
    assert (interface.handles, interface.calls) == (theirs, 1)
    current_context.restore(current_context.NOTHING)
    assert (interface.handles, interface.calls) == ((None,) * len(theirs), 2)


def test_a_context_is_left_only_after_it_was_entered(gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """glcontext's objects for Windows and macOS make current on leaving what was current on entering, which is a wild
    pointer before that.
    """
    entered: dict[int, int] = {}
    enter, leave = moderngl.Context.__enter__, moderngl.Context.__exit__

    def entering(ctx: Any) -> Any:
        entered[id(ctx)] = entered.get(id(ctx), 0) + 1
        return enter(ctx)  # type: ignore[no-untyped-call]

    def leaving(ctx: Any, *error: Any) -> None:
        assert entered.get(id(ctx)), "left before it was entered"
        leave(ctx, *error)  # type: ignore[no-untyped-call]

    monkeypatch.setattr(moderngl.Context, "__enter__", entering)
    monkeypatch.setattr(moderngl.Context, "__exit__", leaving)
    monkeypatch.setattr(context, "_default", {})
    before = current_context.current()
    with pf.Worker(network(), "gpu_pixel") as worker:
        assert worker.schedule(ONES).peek_output().download_to_array().max() == 1.5
    assert current_context.current() == before
    with pytest.raises(BackendError, match="framebuffer"):
        HeadlessSurface((1 << 20, 1))
    assert current_context.current() == before
    surface = HeadlessSurface((8, 8))
    surface.release()
    assert current_context.current().context is None


@pytest.mark.parametrize(("system", "asked"), [("darwin", [330]), ("win32", [430, 330]), ("linux", [430, 330])])
def test_no_context_can_be_made(system: str, asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS is asked once: it gives the newest version whatever is asked for, and glcontext would leak the first."""
    monkeypatch.setattr(sys, "platform", system)
    requests: list[int] = []

    def refuse(require: int, **settings: Any) -> None:
        requests.append(require)
        raise Exception("cannot choose pixel format")

    with pytest.raises(BackendError, match="cannot choose pixel format") as caught:
        headless_context.create_headless(refuse)
    assert requests == asked
    assert ("apt-get" in str(caught.value)) == (system == "linux")
    assert headless_context.install_advice() in str(caught.value)


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_no_window_can_be_made(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(window.glfw, "init", lambda: True)
    monkeypatch.setattr(window.glfw, "create_window", lambda *_: None)
    for name in ("default_window_hints", "window_hint", "terminate"):
        monkeypatch.setattr(window.glfw, name, lambda *_: None)
    with pytest.raises(BackendError, match="no window with OpenGL") as caught:
        window._create_window((8, 8), "none")
    assert headless_context.install_advice() in str(caught.value) and "apt" not in str(caught.value)


@pytest.mark.parametrize("address", [0, 1, 2, 3, -1, 2**64 - 1, 2**32 - 1, None])
def test_what_a_loader_says_of_a_missing_function(address: Any) -> None:
    """wglGetProcAddress of some drivers returns 1, 2, 3 or -1 for it."""

    class Context:
        version_code = 330
        mglo = type("mglo", (), {"_context": type("Loader", (), {"load": lambda name: address})})

    with pytest.raises(BackendError, match="has no glFenceSync"):
        headless_context.entry_point(Context, "glFenceSync")
