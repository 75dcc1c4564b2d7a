"""The choice of the next token, computed where the logits are: only its number comes back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import perframe.functional as F
from perframe.errors import InputError
from perframe.functional.graph import FunctionalGraph
from perframe.ir import Model
from perframe.tensor import DataType


@dataclass(frozen=True)
class TokenChoice:
    """How the next token is chosen.

    A `temperature` of 0 takes the likeliest token. Otherwise logits are divided by it, and a token is drawn from the
    `top_k` likeliest ones (0: from all), and of these from as few as have the share `top_p` together. The logits of
    tokens that came before are divided by `repetition` if they are positive, and else multiplied by it.
    """

    temperature: float = 0.0
    top_k: int = 50
    top_p: float = 1.0
    repetition: float = 1.0

    def check(self) -> None:
        """Raise InputError for a number out of range."""
        numbers = {"temperature": self.temperature, "top_p": self.top_p, "repetition": self.repetition}
        for name, number in numbers.items():
            if not isinstance(number, int | float) or isinstance(number, bool) or not np.isfinite(number):
                raise InputError(f"{name} is a number, not {number!r}")
        if not isinstance(self.top_k, int) or isinstance(self.top_k, bool) or self.top_k < 0:
            raise InputError(f"top_k is a number of tokens, or 0 for all, not {self.top_k!r}")
        if self.temperature < 0:
            raise InputError(f"temperature is at least 0, not {self.temperature!r}")
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p is over 0 and at most 1, not {self.top_p!r}")
        if self.repetition <= 0:
            raise InputError(f"repetition is over 0, not {self.repetition!r}")

    @property
    def is_random(self) -> bool:
        """Whether tokens are drawn."""
        return self.temperature > 0

    @property
    def repeats(self) -> bool:
        """Whether it looks at the tokens that came before."""
        return self.repetition != 1


SEEN, NOW = "seen", "now"  # the state that marks the tokens that came before, and the output that it becomes
IDS = "ids"  # the last token
NOISE = "noise"  # numbers from 0 to 1, one for each token that may be drawn


def model_of(choice: TokenChoice, tokens: int, dtype: DataType = DataType.FLOAT32) -> Model:
    """Return the model that chooses among `tokens` tokens. Its inputs are logits (1, length, tokens), the last token
    (1, 1) where repetition counts, and noise (1, top_k) where tokens are drawn; its output is the chosen token.
    """
    graph = FunctionalGraph("choice of a token")
    logits = graph.add_input(dtype, (1, "length", tokens), "logits")
    scores = F.type(F.select(logits, 1, -1), "float32")
    if choice.repeats:
        ids, seen = graph.add_input("int64", (1, 1), IDS), graph.add_input("float32", (1, tokens), SEEN)
        marked = F.scatter(seen, 1, ids, 1.0)
        lowered = F.where(scores > 0, scores / choice.repetition, scores * choice.repetition)
        scores = F.where(marked > 0, lowered, scores)
        graph.add_output(marked, NOW)
    if not choice.is_random:
        return graph.compile(token=F.argmax(scores, -1))
    count = min(choice.top_k or tokens, tokens)
    scores = scores / choice.temperature
    best, indices = F.topk(scores, count)
    shares = F.softmax(best, -1)
    before = F.cumsum(shares, -1) - shares  # of likelier tokens: the first one always stays
    noise = graph.add_input("float32", (1, count), NOISE)
    drawn = F.where(before < choice.top_p, best - F.log(-F.log(noise)), -np.inf)  # Gumbel's trick: the largest is drawn
    return graph.compile(token=F.gather(indices, 1, F.argmax(drawn, -1, True)))


def noise_for(
    choice: TokenChoice, tokens: int, random: np.random.Generator
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return the noise of one run."""
    count = min(choice.top_k or tokens, tokens)
    return np.clip(random.random((1, count), np.float32), 1e-7, np.float32(1) - np.float32(2) ** -24)
