"""Draws docs/pictures/*.webp: each demo as a moving picture, and the hero. `python tools/moving_pictures.py [NAME...]`.

The demos run off screen, with their own seeds and a clock that counts frames, so each run gives the same frames.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from perframe.command_line.commands.demo import load_demo
from perframe.host import App, Frame

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SIZE = (640, 360)


@dataclass(frozen=True)
class Film:
    """What to record: every `every`-th frame from `first` to `frames`.

    A frame adds `step` seconds to the demo's clock. The film shows a picture for `shown` milliseconds.
    """

    first: int
    frames: int
    every: int = 2
    step: float = 1 / 30
    shown: int = 67
    options: Sequence[str] = ()
    quality: int = 60
    size: tuple[int, int] = SIZE  # of the file


FILMS = {
    "painter": Film(1, 36, 1, 0.33, 120, quality=35),
    "life": Film(8, 240, 5, shown=100, quality=55),
    "upscale": Film(3, 36, 1, 0.15, 100, ("--size", "320x180"), quality=50),
    "neural": Film(0, 48, 1, 0.25, 100, quality=68),
    "depth": Film(3, 63, 1, 0.25, 110, quality=66),
    "digits": Film(0, 140, 3, shown=90),
    "agents": Film(30, 150, 4, shown=110, quality=28, size=(480, 270)),
    "faces": Film(3, 40, 1, 0.1, 100, quality=45),
    "hands": Film(0, 240, 4, 0.05, 90, quality=40),
    "segment": Film(0, 30, 1, 0.1, 100, quality=40),
    "listen": Film(60, 200, 3, shown=100, quality=50, options=("--at", "1")),
    "talk": Film(24, 330, 6, shown=200, quality=40),
}
HERO = {
    "digits": "Draw, and every layer reacts",
    "life": "Cut the cells, and they heal",
    "agents": "A thousand agents, one network",
}
FADE = 5  # pictures


@contextmanager
def _step(seconds: float) -> Iterator[None]:
    """Set the seconds that one frame of a recording adds to the clock."""
    modules = [import_module(f"perframe_demos.{name}") for name in ("common.stage", "painter.__main__")]
    before = [module.STEP for module in modules]
    for module in modules:
        module.STEP = seconds
    try:
        yield
    finally:
        for module, value in zip(modules, before, strict=True):
            module.STEP = value


def record(name: str, film: Film) -> list[Image.Image]:
    """The pictures of a demo."""
    load_demo("painter")  # its modules hold the clock's step
    main, loop_once, pictures, count = load_demo(name), App.loop_once, list[Image.Image](), 0

    def looped(app: App) -> Frame:
        nonlocal count
        frame = loop_once(app)
        if count >= film.first and (count - film.first) % film.every == 0:
            assert app.framebuffer is not None
            pixels = Image.frombytes("RGB", app.size, app.framebuffer.read(components=3, alignment=1))
            upright = pixels.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
            pictures.append(upright.resize(SIZE, Image.Resampling.LANCZOS))
        count += 1
        return frame

    App.loop_once = looped  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder, _step(film.step):
            argv = ["--headless", "--backend", "cpu", "--frames", str(film.frames), *film.options]
            if main([*argv, "--save", str(Path(folder) / "last.png")]) != 0:
                raise SystemExit(f"the demo {name} failed")
    finally:
        App.loop_once = loop_once  # type: ignore[method-assign]
    return pictures


def write(path: Path, pictures: list[Image.Image], shown: int, quality: int) -> None:
    """Write an animated WebP, which repeats."""
    options = {"save_all": True, "append_images": pictures[1:], "duration": shown, "loop": 0}
    pictures[0].save(path, quality=quality, method=4, **options)
    print(f"{path.name}: {len(pictures)} pictures, {path.stat().st_size // 1000} KB", flush=True)


def captioned(picture: Image.Image, text: str) -> Image.Image:
    """The picture with a line of text at its lower left, where `digits` has no labels."""
    font = ImageFont.load_default(size=20)
    paper = Image.new("RGBA", picture.size)
    pen = ImageDraw.Draw(paper)
    left, top = 14, picture.height - 48
    pen.rounded_rectangle((left, top, left + font.getlength(text) + 32, top + 36), 18, (12, 14, 20, 215))
    pen.text((left + 16, top + 18), text, (255, 255, 255, 255), font, "lm")
    return Image.alpha_composite(picture.convert("RGBA"), paper).convert("RGB")


def hero(films: dict[str, list[Image.Image]]) -> list[Image.Image]:
    """The scenes of HERO one after the other, each fading into the next one, the last into the first."""
    scenes = [[captioned(picture, text) for picture in films[name]] for name, text in HERO.items()]
    pictures = list[Image.Image]()
    for scene, following in zip(scenes, [*scenes[1:], scenes[0]], strict=True):
        pictures += scene[FADE:-FADE]
        for index in range(FADE):
            pictures.append(Image.blend(scene[index - FADE], following[index], (index + 1) / (FADE + 1)))
    return pictures


def main(names: Sequence[str]) -> None:
    films = dict[str, list[Image.Image]]()
    for name in names or FILMS:
        films[name] = record(name, FILMS[name])
        film = FILMS[name]
        pictures = [picture.resize(film.size, Image.Resampling.LANCZOS) for picture in films[name]]
        write(FOLDER / f"{name}.webp", pictures, film.shown, film.quality)
    if set(HERO) <= set(films):
        write(FOLDER / "hero.webp", hero(films), 95, 55)


if __name__ == "__main__":
    main(sys.argv[1:])
