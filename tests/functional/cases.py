"""Calls of every function of `pf.functional`, with small arrays: the table that the tests share."""

from __future__ import annotations

from functional import calls_of_elements, calls_of_moves, calls_of_networks
from functional.table import CASES, Case

ROWS = (calls_of_elements, calls_of_moves, calls_of_networks)  # each adds its rows to the table

# tests of their own: random numbers, a model inside, and any layer
ELSEWHERE = {
    "apply",
    "bernoulli",
    "forward",
    "mel_filters",
    "mel_spectrogram",
    "multinomial",
    "normal",
    "normal_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random_choice",
    "whisper_spectrogram",
}

__all__ = ["CASES", "ELSEWHERE", "Case"]
