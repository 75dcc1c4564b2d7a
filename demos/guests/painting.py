"""The script of all guests: a network repaints a picture in each frame, in whichever window it runs."""

from __future__ import annotations

from PIL import Image

import perframe as pf
from perframe.resources import resource


class Painting(pf.Script):
    """Shows the picture as a painting; while a key or a button is held, as it is."""

    def start(self) -> None:
        """Make what the frames need, in the window's GL context."""
        ctx, picture = self.app.ctx, Image.open(resource("assets", "painter", "scene.jpg")).convert("RGBA")
        self.texture = ctx.texture(picture.size, 4, picture.tobytes())
        self.worker = pf.Worker("painter", backend="auto", ctx=ctx)
        self.converter = pf.TextureConverter(ctx)
        self.image = self.worker.empty_input(shape=(1, 3, 180, 320))

    def render(self, frame: pf.Frame) -> None:
        """Paint: texture, tensor, network, window."""
        self.converter.to_tensor(self.texture, self.image)
        held = self.app.input.buttons or self.app.input.keys
        shown = self.image if held else self.worker.schedule(self.image).peek_output()
        self.converter.render_to_screen(shown)

    def destroy(self) -> None:
        """Free everything while the context is there."""
        for thing in (self.worker, self.converter, self.image, self.texture):
            thing.release()
