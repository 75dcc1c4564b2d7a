"""perframe in a window of pyglet. `python demos/guests/in_pyglet.py`."""

import pyglet
from painting import Painting
from pyglet.window import key

import perframe as pf
from perframe.host import KeyEvent

window = pyglet.window.Window(640, 360, "perframe in pyglet", resizable=True)
label = pyglet.text.Label("pyglet draws this; hold Space", x=12, y=12)
app = pf.attach(Painting())


@window.event
def on_draw() -> None:
    app.loop_once()
    label.draw()


@window.event
def on_key_press(symbol: int, modifiers: int) -> None:
    app.post(KeyEvent(key.symbol_string(symbol).lower(), True))


@window.event
def on_key_release(symbol: int, modifiers: int) -> None:
    app.post(KeyEvent(key.symbol_string(symbol).lower(), False))


pyglet.app.run()
app.release()
