"""Textures to other programs and from them, tried with stand-ins for SpoutGL and syphon-python."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import moderngl
import numpy as np
import pytest

import perframe as pf
from gl.raw import Application
from perframe.textures import other_programs
from textures.programs_stand_in import Exchange, modules

SYSTEMS = {"spout": "win32", "syphon": "darwin"}


@pytest.fixture(params=["spout", "syphon"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def exchange(kind: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> Exchange:
    """The stand-ins, on the system that has them."""
    found, packages = modules(gl_context)
    for name, module in packages.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(other_programs, "sys", SimpleNamespace(platform=SYSTEMS[kind]))
    return found


@pytest.fixture
def converter(exchange: Exchange, gl_context: Any) -> Any:
    with pf.TextureConverter(gl_context) as made:
        yield made


def picture(seed: int = 0, size: tuple[int, int] = (9, 6)) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 4), np.uint8)


def test_an_uploaded_texture_arrives_upright(kind: str, exchange: Exchange, converter: Any, gl_context: Any) -> None:
    texture = gl_context.texture((9, 6), 4, picture().tobytes())
    with converter.open_sink(f"{kind}:stage") as sink:
        sink.write(texture)
        np.testing.assert_array_equal(exchange.pictures["stage"], picture())
        sink.write(texture.glo)
        np.testing.assert_array_equal(exchange.pictures["stage"], picture())
        sink.write(texture, coord_origin="bottom_left")
        np.testing.assert_array_equal(exchange.pictures["stage"], picture()[::-1])
    assert exchange.open == [] and not exchange.pictures


def test_a_drawn_picture_arrives_upright(kind: str, exchange: Exchange, converter: Any, gl_context: Any) -> None:
    texture = gl_context.texture((9, 6), 4, picture()[::-1].tobytes())  # GL's first row is the bottom one
    framebuffer = gl_context.framebuffer([texture])
    with converter.open_sink(kind) as sink:
        for given in (framebuffer, texture):
            sink.write(given)
            np.testing.assert_array_equal(exchange.pictures["perframe"], picture())
        sink.write(texture, coord_origin="top_left")
        np.testing.assert_array_equal(exchange.pictures["perframe"], picture()[::-1])


def test_sizes_may_change(kind: str, exchange: Exchange, converter: Any, gl_context: Any) -> None:
    with converter.open_sink(f"{kind}:stage") as sink, converter.open_source(kind) if kind == "spout" else sink:
        for size in ((9, 6), (4, 4), (9, 6)):
            sink.write(gl_context.texture(size, 4, picture(1, size).tobytes()))
            np.testing.assert_array_equal(exchange.pictures["stage"], picture(1, size))


def test_a_network_reads_what_another_program_sends(
    kind: str, exchange: Exchange, converter: Any, gl_context: Any
) -> None:
    exchange.send("film", picture(3))
    with converter.open_source(f"{kind}:film") as source:
        for seed, size in ((3, (9, 6)), (4, (9, 6)), (5, (20, 3)), (6, (9, 6))):
            exchange.send("film", picture(seed, size))
            texture = source.texture()
            assert texture.size == size and source.is_connected
            tensor = converter.to_tensor(texture, channels=4)
            wanted = picture(seed, size).transpose(2, 0, 1)[None] / np.float32(255)
            np.testing.assert_allclose(tensor.numpy(), wanted, atol=1e-6)
            assert source.texture() is None  # no new one
    assert exchange.open == []


def test_there_and_back(kind: str, exchange: Exchange, converter: Any, gl_context: Any) -> None:
    with converter.open_sink(f"{kind}:a") as sink:
        sink.write(gl_context.texture((9, 6), 4, picture(8).tobytes()))
        with converter.open_source(f"{kind}:a") as source, converter.open_sink(f"{kind}:b") as other:
            other.write(source.texture())
            np.testing.assert_array_equal(exchange.pictures["b"], picture(8))


def test_a_sender_that_goes_away(kind: str, exchange: Exchange, converter: Any) -> None:
    exchange.send("film", picture(1))
    source = converter.open_source(f"{kind}:film")
    assert source.texture() is not None and source.is_connected
    del exchange.pictures["film"]
    assert source.texture() is None and not source.is_connected
    exchange.send("film", picture(2))
    assert (source.texture() is not None) and source.is_connected
    for _ in range(2):
        source.release()
    assert exchange.open == [] and not source.is_connected
    with pytest.raises(pf.ClosedError, match="after the source's release"):
        source.texture()


def test_a_sender_that_is_not_there(
    kind: str, exchange: Exchange, converter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_programs, "_SECONDS", 0.0)
    exchange.send("another", picture(1))
    if kind == "syphon":
        with pytest.raises(pf.InputError, match="the Syphon server 'film' was not found within 0 s"):
            converter.open_source("syphon:film")
        converter.open_source("syphon:Resolume").release()  # the program's name
    else:
        with converter.open_source("spout:film") as source:
            assert source.texture() is None and not source.is_connected
            exchange.send("film", picture(1))
            assert source.texture() is not None
    assert exchange.open == []


def test_gl_state_stays(kind: str, exchange: Exchange, gl_context: Any) -> None:
    ctx = moderngl.create_context(standalone=True, backend="egl", require=gl_context.version_code)
    application = Application(ctx)
    there, _ = modules(ctx)
    there.send("film", picture(1))
    texture = ctx.texture((9, 6), 4, picture().tobytes())
    converter = pf.TextureConverter(ctx)
    sink, source = converter.open_sink(f"{kind}:a"), converter.open_source(f"{kind}:film")
    sink.write(texture)
    source.texture()
    there.gl.glActiveTexture(0x84C0)
    rectangle = there.rectangle(picture())
    application.set_hostile()
    before = application.gl.state()
    assert application.gl.errors() == []
    for seed, size in ((2, (9, 6)), (3, (5, 5))):
        sink.write(texture)
        there.send("film", picture(seed, size))
        assert source.texture() is not None
        assert application.gl.state() == before and application.gl.errors() == []
    converter.open_sink(f"{kind}:b").finish()
    sink.finish()
    source.release()
    assert application.gl.state() == before and application.gl.errors() == []
    there.gl.glActiveTexture(0x84C0)
    assert there.number(0x84F6) == rectangle
    ctx.release()
    gl_context.__enter__()


def test_closed_twice(kind: str, exchange: Exchange, converter: Any, gl_context: Any) -> None:
    sink = converter.open_sink(f"{kind}:stage")
    for end in (sink.finish, sink.abandon, sink.finish):
        end()
    assert exchange.open == []
    with pytest.raises(pf.ClosedError, match="open another sink"):
        sink.write(gl_context.texture((4, 4), 4))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda ctx: np.zeros((4, 4, 4), np.uint8), pf.InputError, "a texture is a moderngl.Texture or a GL name"),
        (lambda ctx: 98765, pf.InputError, "GL name 98765 is not a 2D texture"),
        (lambda ctx: ctx.texture((4, 4), 4, dtype="u1"), pf.InputError, "holds no picture"),
        (lambda ctx: ctx.texture((4, 4), 4, samples=4), pf.InputError, "4 samples"),
        (lambda ctx: ctx.texture_array((4, 4, 2), 4), pf.InputError, "a texture is a moderngl.Texture or a GL name"),
    ],
)
def test_what_is_not_a_texture(
    kind: str, make: Any, error: type, message: str, exchange: Exchange, converter: Any, gl_context: Any
) -> None:
    with converter.open_sink(f"{kind}:stage") as sink, pytest.raises(error, match=message):
        sink.write(make(gl_context))
    assert not exchange.calls


def test_a_released_texture(kind: str, exchange: Exchange, converter: Any, gl_context: Any) -> None:
    texture = gl_context.texture((4, 4), 4)
    texture.release()
    with converter.open_sink(f"{kind}:stage") as sink, pytest.raises(pf.ClosedError, match="was released"):
        sink.write(texture)


def test_a_package_that_fails(kind: str, exchange: Exchange, converter: Any, gl_context: Any) -> None:
    exchange.send("film", picture(1))
    sink, source = converter.open_sink(f"{kind}:stage"), converter.open_source(f"{kind}:film")
    exchange.fails = True
    with pytest.raises(pf.InputError, match=r"'stage' took no texture: (does the GPU|objc error)"):
        sink.write(gl_context.texture((4, 4), 4))
    with pytest.raises(pf.InputError, match=r"'film' cannot be received: (no shared texture|objc error)"):
        source.texture()
    if kind == "syphon":
        with pytest.raises(pf.InputError, match="'refused' cannot be opened: no CGL context"):
            converter.open_sink("syphon:refused")
    sink.abandon()
    source.release()
    assert exchange.open == []


def test_names(kind: str, exchange: Exchange, converter: Any) -> None:
    with converter.open_sink(f"{kind}:a:b") as sink:
        assert "'a:b'" in sink.name
    for name in ("window", "", "film.mp4", 7):
        with pytest.raises(pf.InputError, match="textures are shared by spout:NAME or syphon:NAME"):
            converter.open_sink(name)
    for name in ("é" * 128, "a\0b"):
        with pytest.raises(pf.InputError, match="a name has up to 255 bytes"):
            converter.open_source(f"{kind}:{name}")
    with pytest.raises(pf.InputError, match="coord_origin is one of bottom_left, top_left, not 'up'"):
        converter.open_sink(kind).write(1, coord_origin="up")


def test_from_another_thread(kind: str, exchange: Exchange, converter: Any, gl_context: Any) -> None:
    sink, texture, found = converter.open_sink(kind), gl_context.texture((4, 4), 4), list[Exception]()

    def use() -> None:
        try:
            sink.write(texture)
        except pf.BackendError as error:
            found.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(20)
    assert "from another thread" in str(found[0]) and not exchange.calls
    sink.finish()


@pytest.mark.parametrize(
    ("kind", "shown"), [("spout", "Windows: use syphon:NAME"), ("syphon", "macOS: use spout:NAME")]
)
def test_another_system(kind: str, shown: str, gl_context: Any) -> None:
    converter = pf.TextureConverter(gl_context)
    for use in (converter.open_sink, converter.open_source):
        with pytest.raises(pf.InputError, match=f"'stage' needs {shown} on .*, or perframe.media's ndi:NAME"):
            use(f"{kind}:stage")


def test_without_the_package(kind: str, exchange: Exchange, converter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SpoutGL", "syphon"):
        monkeypatch.setitem(sys.modules, name, None)
    for use in (converter.open_sink, converter.open_source):
        with pytest.raises(pf.MissingExtraError, match=rf"perframe\[{kind}\]"):
            use(f"{kind}:stage")


def test_a_converter_without_textures(kind: str) -> None:
    with pytest.raises(pf.InputError, match="has no GL context"):
        pf.TextureConverter().open_sink(f"{kind}:a")
    converter = pf.TextureConverter()
    converter.release()
    with pytest.raises(pf.ClosedError, match="this TextureConverter was released"):
        converter.open_source(f"{kind}:a")


def test_the_programs_of_the_page(kind: str, exchange: Exchange, converter: Any, gl_context: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "media.md").read_text(encoding="utf-8")
    programs = [block for block in re.findall(r"^```python\n(.*?)^```$", page, re.S | re.M) if f"{kind}:" in block]
    assert len(programs) == 1
    framebuffer = gl_context.framebuffer([gl_context.texture((9, 6), 4, picture()[::-1].tobytes())])
    exchange.send("Resolume", picture(2))
    x = pf.Tensor.empty((1, 4, 6, 9))
    app = SimpleNamespace(ctx=gl_context, framebuffer=framebuffer)
    names: dict[str, Any] = {"pf": pf, "app": app, "converter": converter, "x": x}
    exec(compile(programs[0], "media.md", "exec"), names)
    if kind == "spout":
        assert exchange.calls and exchange.numbers["perframe"] == 1
    else:
        np.testing.assert_allclose(x.numpy()[0].transpose(1, 2, 0), picture(2) / np.float32(255), atol=1e-6)
        names["source"].release()
