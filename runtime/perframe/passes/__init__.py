"""Passes make a model smaller without changing what it computes. The list below is all there is, in order."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module

from perframe.model import Evaluate, Model

log = logging.getLogger("perframe")

PASSES = (
    "fold_constants",
    "remove_noops",
    "fuse_affine",
    "fuse_bias",
    "fuse_activation",
    "remove_unused",
    "place_shape_arithmetic",
)

Pass = Callable[[Model, Evaluate], int]


def load_pass(name: str) -> Pass:
    """The pass of this name: a function of a model and a constant evaluator that returns how much it changed."""
    found: Pass = import_module(f"perframe.passes.{name}").run
    return found


def optimize(model: Model, evaluate: Evaluate) -> dict[str, int]:
    """Run all passes until none changes anything, and verify the model after each. Returns the changes by pass."""
    changes = dict.fromkeys(PASSES, 0)
    for layer in model.layers:
        for body in layer.attributes.get("bodies", {}).values():
            optimize(body, evaluate)
    while True:
        before = sum(changes.values())
        for name in PASSES:
            count = load_pass(name)(model, evaluate)
            if count:
                changes[name] += count
                model.verify()
        if sum(changes.values()) == before:
            break
    log.debug("%s: passes changed %s", model.name, changes)
    return changes
