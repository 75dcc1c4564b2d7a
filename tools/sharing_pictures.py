"""Makes the pictures of docs/media.md and docs/other-libraries.md about shared textures and shared memory.

`PYTHONPATH=tests python tools/sharing_pictures.py` in a checkout with PyTorch. The tests' stand-in for Spout moves the
textures: Spout itself needs Windows. The scene behind both pictures is the project's own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import perframe as pf
from perframe.resources import resource
from perframe.textures import other_programs
from textures.programs_stand_in import modules

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SIZE, GAP = (480, 320), 54  # pixels of a part; between two parts
GRAY = (128, 134, 150, 255)  # of the arrows, which lie on light and on dark pages
VERTEX = """#version 330
    out vec2 place;
    void main() {
        place = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0;
        gl_Position = vec4(place * 2.0 - 1.0, 0.0, 1.0);
    }
"""
STAGE = """#version 330
    uniform sampler2D shown;
    in vec2 place;
    out vec4 color;
    vec3 screen(vec3 from, vec3 along) {  // a screen that is bent around the viewer; from and along are in its units
        float t = (2.6 - from.z) / along.z;
        for (int i = 0; i < 4; ++i) t = (2.6 - 0.35 * pow(from.x + t * along.x, 2.0) - from.z) / along.z;
        vec3 hit = from + t * along;
        vec2 at = vec2(hit.x / 2.4 + 0.5, (hit.y - 0.12) / 1.35);
        if (t < 0.0 || clamp(at, 0.0, 1.0) != at) return vec3(0.02, 0.02, 0.035);
        return texture(shown, at).rgb;
    }
    void main() {
        vec3 eye = vec3(0.55, 0.62, -0.1), along = normalize(vec3((place - vec2(0.5, 0.52)) * vec2(1.5, 1.0), 1.2));
        along.xz = mat2(0.978, 0.208, -0.208, 0.978) * along.xz;
        vec3 found = screen(eye, along);
        float floor_at = -eye.y / along.y;
        if (along.y < 0.0 && floor_at < 3.2) {
            vec3 hit = eye + floor_at * along, light = vec3(0.0);
            for (int i = -3; i <= 3; ++i)  // a rough floor blurs its reflection
                light += screen(hit, normalize(along * vec3(1.0, -1.0, 1.0) + vec3(0.012 * i, 0.02 * i, 0.0))) / 7.0;
            vec3 reflected = vec3(0.03, 0.03, 0.045) + 0.42 * light;
            found = hit.z < 2.6 - 0.35 * hit.x * hit.x ? reflected : found;
        }
        color = vec4(found, 1.0);
    }
"""


def scene(is_right: bool = False) -> Any:
    """The left or the right part of the painter's scene: height x width x 3 of uint8."""
    picture = Image.open(resource("assets", "painter", "scene.jpg")).convert("RGB")
    width = picture.height * SIZE[0] // SIZE[1]
    left = (picture.width - width) * is_right
    part = picture.crop((left, 0, left + width, picture.height))
    return np.asarray(part.resize(SIZE, Image.Resampling.LANCZOS))


def draw_programs(ctx: Any) -> list[Any]:
    """A player's texture, the same painted by perframe, and a stage of a third program that receives the painting."""
    exchange, packages = modules(ctx)
    sys.modules |= packages
    other_programs.sys = SimpleNamespace(platform="win32")  # type: ignore[assignment]
    exchange.send("player", np.dstack([scene(), np.full(SIZE[::-1], 255, np.uint8)]))
    painting, stage = (ctx.framebuffer([ctx.texture(SIZE, 4)]) for _ in range(2))
    program = ctx.program(vertex_shader=VERTEX, fragment_shader=STAGE)
    with (
        pf.Worker("painter", "gpu_pixel", ctx) as worker,
        pf.TextureConverter(ctx) as converter,
        converter.open_source("spout:player") as player,
        converter.open_sink("spout:painter") as sink,
        converter.open_source("spout:painter") as received,
    ):
        x = worker.empty_input(shape=(1, 3, *SIZE[::-1]))
        worker.schedule(converter.to_tensor(player.texture(), x))
        converter.to_texture(worker.peek_output(), painting.color_attachments[0])
        sink.write(painting)
        received.texture().use(0)
        stage.use()
        ctx.vertex_array(program, []).render(vertices=3)
    drawn = (np.frombuffer(one.read(components=3, alignment=1), np.uint8) for one in (painting, stage))
    return [scene(), *(one.reshape(*SIZE[::-1], 3)[::-1] for one in drawn)]


def draw_libraries() -> list[Any]:
    """NumPy's picture, the same painted by perframe, and its edges by PyTorch, without a copy between them."""
    import torch

    given = scene(is_right=True)
    image = np.ascontiguousarray(given.transpose(2, 0, 1)[None].astype(np.float32) / 255)
    shared = pf.Tensor.from_dlpack(image, copy=False)
    with pf.Worker("painter") as worker:
        output = worker.schedule(shared).peek_output()
        painting = torch.from_dlpack(output)
        assert painting.data_ptr() == np.from_dlpack(output).ctypes.data, "PyTorch reads the worker's memory"
        gray = painting.mean(1, keepdim=True)
        slopes = torch.stack(torch.gradient(gray[0, 0]))
        ink = 1 - (5 * slopes.square().sum(0).sqrt()).clamp(0, 1)
        parts = [painting[0].permute(1, 2, 0), ink[..., None].expand(-1, -1, 3)]
        return [given, *(np.rint(255 * part.clamp(0, 1).numpy()).astype(np.uint8) for part in parts)]


def joined(parts: Sequence[Any], names: Sequence[str]) -> Image.Image:
    """The parts side by side with their names, and an arrow from each to the next one."""
    width, height = SIZE
    sheet = Image.new("RGBA", (len(parts) * (width + GAP) - GAP, height))
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=52)
    for index, (part, name) in enumerate(zip(parts, names, strict=True)):
        left = index * (width + GAP)
        sheet.paste(Image.fromarray(part), (left, 0))
        half, middle, top = font.getlength(name) / 2 + 28, left + width / 2, height - 86
        pen.rounded_rectangle((middle - half, top, middle + half, top + 72), 36, (12, 14, 20, 255))
        pen.text((middle, top + 36), name, (255, 255, 255, 255), font, "mm")
        if index:
            x, y = left - GAP / 2, height / 2
            pen.polygon([(x - 15, y - 22), (x + 17, y), (x - 15, y + 22)], GRAY)
    return sheet


def write(name: str, picture: Image.Image) -> None:
    path = FOLDER / name
    picture.save(path, quality=82, method=6)
    print(f"{name}: {path.stat().st_size // 1000} KB")


if __name__ == "__main__":
    with pf.App(size=(64, 36), headless=True) as app:
        write("other-programs.webp", joined(draw_programs(app.ctx), ("a player", "perframe", "a stage")))
    write("other-libraries.webp", joined(draw_libraries(), ("NumPy", "perframe", "PyTorch")))
