"""The language model: a question and the weather go in, an answer comes out, letter by letter."""

from __future__ import annotations

import json
from typing import Any

import perframe as pf
from perframe.resources import resource
from perframe.text import Characters, Generation, carry_of, generate

WEATHERS = ("calm", "rain", "snow", "fog", "storm")  # in the order of the scene
LONGEST = 60  # letters of a question, as in training
MOST = 240  # letters of an answer
TOP = 0.9  # the share of likely letters that may come


class Keeper:
    """Answers questions. Its caches stay on the backend."""

    def __init__(self, backend: pf.BackendType, ctx: Any, budget_ms: float, temperature: float) -> None:
        self._budget, self._temperature = budget_ms, temperature
        model = pf.load(resource("assets", "talk", "talk.onnx"))
        self.worker = pf.Worker(model, backend, ctx, carry=carry_of(model))
        facts = json.loads(resource("assets", "talk", "characters.json").read_text(encoding="utf-8"))
        self.letters = Characters(facts["alphabet"], facts["end"])
        self._weathers: dict[str, str] = facts["weathers"]
        signs = {facts["end"], *self._weathers.values()}
        self.typed = "".join(letter for letter in facts["alphabet"] if letter not in signs)

    def readable(self, text: str) -> str:
        """The letters of a text that the model knows."""
        return "".join(letter for letter in text.lower() if letter in self.typed)

    def warm(self) -> None:
        """Plan runs of a prompt and of a letter now, while the demo loads: they would stall the first answer."""
        for _ in zip(range(3), self.answer("", WEATHERS[0], 0), strict=False):
            pass

    def answer(self, question: str, weather: str, seed: int) -> Generation:
        """Begin an answer, and end the one before."""
        prompt = f"{self._weathers[weather]}you: {self.readable(question)}\nkeeper:"
        return generate(
            self.worker,
            prompt,
            tokenizer=self.letters,
            budget_ms=self._budget,
            temperature=self._temperature,
            seed=seed,
            top_p=TOP,
            max_tokens=MOST,
        )

    def release(self) -> None:
        """Free all that it holds."""
        self.worker.release()
