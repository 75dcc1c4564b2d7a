from __future__ import annotations

import logging
import sys
from typing import Any, NoReturn

import numpy as np
import pytest

import perframe as pf
from perframe.errors import BackendError, InputError
from perframe.host.pixels import fit
from perframe.host.surface import BlankSurface, Surface, open_surface
from small import load, node, row


def without_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


def without_gl(monkeypatch: pytest.MonkeyPatch) -> None:
    import moderngl

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise Exception("libEGL.so not loaded")

    monkeypatch.setattr(moderngl, "create_context", refuse)


def test_blank_keeps_a_presented_picture_for_one_frame() -> None:
    surface: Surface = BlankSurface((3, 2))
    assert surface.ctx is None and surface.framebuffer is None and not surface.should_close
    assert surface.read_pixels().shape == (2, 3, 3) and not surface.read_pixels().any()
    picture = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    surface.present(picture)
    kept = surface.read_pixels()
    picture[:] = 0
    assert np.array_equal(kept.ravel(), np.arange(18))
    surface.swap()
    surface.begin_frame()
    assert surface.poll_events() == [] and not surface.read_pixels().any()
    surface.release()
    surface.release()


def test_an_app_says_whether_there_is_gl(gl_context: Any) -> None:
    with pf.App(surface=BlankSurface((3, 2))) as app:
        assert not app.has_gl
        for name in ("ctx", "framebuffer"):
            with pytest.raises(BackendError, match=rf"app\.{name} needs OpenGL.*app\.has_gl.*app\.surface\.ctx"):
                getattr(app, name)
        with pf.Worker(relu(), backend="auto", ctx=app.surface.ctx) as worker:
            np.testing.assert_array_equal(worker.schedule(row(-1, 2, 3)).peek_output().numpy(), [0, 2, 3])
    with pf.App((4, 4), headless=True) as app:
        assert app.has_gl and app.ctx is app.surface.ctx and app.framebuffer is app.surface.framebuffer


def relu() -> pf.Model:
    return load([node("Relu", "x", "y")], {"x": [3]})


def test_a_picture_is_stretched_and_loses_its_alpha() -> None:
    picture = np.array([[[1, 2, 3, 9], [4, 5, 6, 9]]], np.uint8)
    assert fit(picture, (4, 2))[:, :, 0].tolist() == [[1, 1, 4, 4], [1, 1, 4, 4]]
    assert fit(picture, (1, 1)).tolist() == [[[1, 2, 3]]]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 2, 3), np.float32),
        np.zeros((2, 2), np.uint8),
        np.zeros((2, 2, 1), np.uint8),
        np.zeros((0, 2, 3), "u1"),
    ],
)
def test_what_is_no_picture_is_refused(array: np.ndarray[Any, Any]) -> None:
    with pytest.raises(InputError, match="H×W×3"):
        fit(array, (2, 2))


def test_no_size_is_refused() -> None:
    with pytest.raises(InputError, match="0×4"):
        open_surface((0, 4), "nothing", headless=True)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
def test_a_window_without_a_display_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    without_display(monkeypatch)
    with pytest.raises(BackendError, match=r"DISPLAY.*xvfb-run"):
        open_surface((4, 4), "no display", headless=False)


def test_headless_without_gl_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    without_gl(monkeypatch)
    with pytest.raises(
        BackendError, match=r"GL 4\.3: libEGL\.so not loaded.*apt-get install libegl1 libgl1 libgl1-mesa-dri"
    ):
        open_surface((4, 4), "no GL", headless=True)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
def test_without_display_and_gl_there_is_a_blank_surface_and_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    without_display(monkeypatch)
    without_gl(monkeypatch)
    with caplog.at_level(logging.INFO, "perframe"):
        surface = open_surface((4, 4), "nothing at all")
    assert isinstance(surface, BlankSurface)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "DISPLAY" in caplog.messages[0] and "libEGL.so not loaded" in caplog.messages[1]


def test_a_missing_library_is_a_backend_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "perframe.host.window", None)
    monkeypatch.setitem(sys.modules, "perframe.host.headless", None)
    for headless in (False, True):
        with pytest.raises(BackendError, match="reinstall"):
            open_surface((4, 4), "no library", headless=headless)
