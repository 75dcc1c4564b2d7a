"""The script of the demo: the sea, the letters, and a coroutine that asks and lets the model answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from math import cos, sin, tau
from pathlib import Path

import numpy as np

import perframe as pf
from perframe.host import Event, KeyEvent, TextEvent
from perframe.text import Generation

from ..common.drawing import Captions, FullScreen
from ..common.stage import Stage
from .keeper import LONGEST, WEATHERS, Keeper
from .page import Mark, Page, shader

# What the demo asks until the user does, and in which weather.
OWN = (
    ("calm", "good evening! how is the sea?"),
    ("rain", "what do you see out there?"),
    ("snow", "what do you do tonight?"),
    ("fog", "are you lonely?"),
    ("storm", "how is the weather?"),
    ("calm", "tell me a story"),
    ("rain", "what is for dinner?"),
    ("snow", "where is the cat?"),
    ("fog", "do you like music?"),
    ("storm", "why do you stay?"),
)
ASKED, SAID = 0.03, 0.03  # seconds a letter: of a question, and at least of an answer
BEFORE, AFTER = 0.35, 1.6  # seconds before an answer, and until the demo asks again
TURN = 7.0  # seconds in which the lamp turns once
CHANGE = 1.5  # the share of a second in which the weather changes, as a rate


class TalkView(pf.Script):
    """Shows a lighthouse, and lets the user talk with its keeper. Until the user types, the demo asks."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._options = stage, stage.options
        self.weather = WEATHERS.index(OWN[0][0])
        self._mixed = np.eye(len(WEATHERS))[self.weather]  # how much of each weather is on show
        self.typed = ""  # the user's question, so far
        self._asked: list[str] = []  # questions that wait for their answers
        self._is_touched = False
        self._answer: Generation | None = None
        self._draft: Mark | None = None  # where the user's line begins
        self._number = 0  # of answers
        self._time = 0.0

    def awake(self) -> None:
        """Make all that the frames need."""
        stage, ctx, options = self._stage, self.app.ctx, self._options
        self.app.frame_state.waits = stage.in_step  # a recording waits for letters, and needs no warning of it
        self.keeper = Keeper(stage.backend, stage.worker_ctx, options.budget, options.temperature)
        self.keeper.warm()
        self.page = Page(ctx, self.keeper.typed)
        self._night = FullScreen(ctx, shader(Path(__file__).with_name("night.glsl")))
        self._captions = Captions(ctx)

    async def start(self) -> None:
        """Ask and answer, again and again."""
        while True:
            question = await self._question()
            self._answer = self.keeper.answer(question, WEATHERS[self.weather], self._options.seed + self._number)
            self._number += 1
            await pf.seconds(BEFORE)
            if self._answer.done:
                continue  # the user went on typing
            self.page.begin()
            self.page.write("keeper:", self._time, 1.0)
            async for piece in self._pieces(self._answer):
                self.page.write(piece, self._time, 1.0)
                await pf.seconds(SAID)
            await self._pause(AFTER)

    def update(self, frame: pf.Frame) -> None:
        """Let the weather change."""
        self._time = frame.time
        wanted = np.eye(len(WEATHERS))[self.weather]
        self._mixed += (wanted - self._mixed) * (1 - np.exp(-CHANGE * frame.delta_time))

    def render(self, frame: pf.Frame) -> None:
        """Draw the scene, and the letters over it."""
        size = self.app.size
        angle = tau * frame.time / TURN
        beam = sin(angle), cos(angle)
        self._night.set(size=size, time=frame.time, beam=beam, weather=tuple(self._mixed[1:]))
        self._night.draw()
        self.page.draw(size, frame.time, frame.delta_time, beam)
        text = f"{self._stage.backend}  ·  {WEATHERS[self.weather]}"
        self._captions.draw(text, size, name="status")
        if self._stage.in_step:
            self.app.ctx.finish()  # nothing else in a frame waits for its picture

    def on_event(self, event: Event) -> None:
        """Type, ask, or change the weather."""
        if isinstance(event, TextEvent):
            self._type(self.keeper.readable(event.text))
        if not isinstance(event, KeyEvent) or not event.pressed:
            return
        if event.key == "backspace" and self._draft is not None:
            self._erase()
        if event.key in ("enter", "kp_enter") and self.typed.strip():
            self._asked.append(self.typed)
            self.typed, self._draft = "", None
        if event.key == "tab":
            self.weather = (self.weather + 1) % len(WEATHERS)

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        if self._answer is not None:
            self._answer.cancel()
        for thing in (self.keeper, self.page, self._night, self._captions):
            thing.release()

    async def _question(self) -> str:
        """The user's next question, or the demo's own, which is typed here."""
        while self._is_touched and not self._asked:
            await pf.next_frame()
        if self._asked:
            return self._asked.pop(0)
        weather, question = OWN[self._number % len(OWN)]
        self.weather = WEATHERS.index(weather)
        self.page.begin(gap=1)
        for letter in "you: " + question:
            self.page.write(letter, self._time, 0.0)
            await pf.seconds(ASKED)
            if self._is_touched:
                return await self._question()
        return question

    async def _pieces(self, answer: Generation) -> AsyncIterator[str]:
        """The letters of an answer. A recording waits for each, so that all recordings are alike."""
        if self._stage.in_step:
            for piece in answer:
                yield piece
        else:
            async for piece in answer:
                yield piece

    async def _pause(self, duration: float) -> None:
        """Wait until it is over, or the user types."""
        end = self._time + duration
        while self._time < end and not self._is_touched:
            await pf.next_frame()

    def _type(self, letters: str) -> None:
        """Add letters to the user's question. The first one ends the answer before."""
        letters = letters[: LONGEST - len(self.typed)]
        if not letters:
            return
        self._is_touched = True
        if self._draft is None:
            if self._answer is not None:
                self._answer.cancel()
            self.page.begin(gap=1)
            self._draft = self.page.mark
            self.page.write("you: ", self._time, 0.0)
        self.typed += letters
        self.page.write(letters, self._time, 0.0)

    def _erase(self) -> None:
        """Remove the last letter of the user's question."""
        assert self._draft is not None
        self.page.cut(self._draft)
        self.typed = self.typed[:-1]
        self.page.write("you: " + self.typed, self._time - 1, 0.0)
