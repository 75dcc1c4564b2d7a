"""Calls that newcomers get wrong: the error says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perframe as pf

X = np.zeros((1, 3, 8, 8), np.float32)
WRONG: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "an array for the backend": (lambda app: pf.run("painter", X, X), pf.InputError, "several inputs go into one dict"),
    "a ctx on the CPU": (lambda app: pf.Worker("painter", ctx=3), pf.BackendError, "ctx must be a moderngl.Context"),
    "two inputs": (lambda app: pf.Worker("painter").schedule(X, X), pf.InputError, "takes 1 input, and got 2: image$"),
    "a state for an input": (
        lambda app: pf.Worker("voice", carry={"next": "state"}).schedule(X, X),
        pf.InputError,
        "got 2: audio; it carries 'state' itself",
    ),
    "a text for a budget": (
        lambda app: app.schedule(pf.Worker("painter"), {"image": X}, budget_ms="2"),
        pf.InputError,
        "^budget_ms is a number of milliseconds of at least 0, not '2'",
    ),
    "no output yet": (
        lambda app: pf.Worker("painter").peek_output(),
        pf.InputError,
        r"before the first schedule\(\): call it first",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_error_says_what_to_write(name: str) -> None:
    call, error, message = WRONG[name]
    with pf.App((8, 8), headless=True) as app, pytest.raises(error, match=message):
        call(app)
