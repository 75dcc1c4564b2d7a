"""Passes make a model smaller without changing its results. The lists below name all passes, in their order."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from perframe.model import Evaluate, Model

log = logging.getLogger("perframe")

PASSES = (
    "fold_constants",
    "fix_reshapes",
    "remove_noops",
    "move_channels",
    "fuse_padding",
    "fuse_affine",
    "fuse_bias",
    "merge_affine",
    "merge_branches",
    "fuse_activation",
    "fuse_gate",
    "remove_unused",
    "place_shape_arithmetic",
)

_SPELLED = ("spell_out", "fold_weights", "fuse_bias", "fuse_activation")
# further passes for the kernels of one backend; they change a copy of the model, which the worker keeps
PREPARATIONS = {
    "cpu": (
        "einsum_products",
        "fuse_quantized",
        "keep_quantized",
        "fuse_attention",
        "fold_weights",
        "remove_unused",
        "channels_last",
        "fold_constants",
        "fix_reshapes",
        "remove_noops",
        "fuse_affine",
        "fuse_bias",
        "fuse_activation",
        "fuse_gate",
        "fuse_addition",
        "fuse_excitation",
        "remove_unused",
        "place_shape_arithmetic",
    ),
    "gpu_compute": _SPELLED,
    "gpu_pixel": _SPELLED,
}

Pass = Callable[[Model, Evaluate], int]


def load_pass(name: str) -> Pass:
    """Return the pass of this name: it takes a model and a constant evaluator, and returns its number of changes."""
    found: Pass = import_module(f"perframe.passes.{name}").run
    return found


def prepare(model: Model, evaluate: Evaluate, backend_type: str) -> Model:
    """Return the model in the form that a backend's kernels want: a changed copy, or the model itself if the backend
    has no preparations.

    The bodies of its layers are prepared when they become models of their own.
    """
    names = PREPARATIONS.get(backend_type)
    if names is None:
        return model
    layers = [replace(x, inputs=list(x.inputs), outputs=list(x.outputs)) for x in model.layers]
    prepared = Model(model.inputs, model.outputs, layers, model.constants, model.name)
    with prepared.remembering():
        for name in names:
            if load_pass(name)(prepared, evaluate):
                prepared.verify()
    return prepared


def optimize(
    model: Model, evaluate: Evaluate, progress: Callable[[str, float], None] = lambda _what, _done: None
) -> dict[str, int]:
    """Run all passes until none changes the model, and verify it after each change.

    Returns the number of changes by pass.
    """
    changes = dict.fromkeys(PASSES, 0)
    for layer in model.layers:
        for body in layer.attributes.get("bodies", {}).values():
            optimize(body, evaluate)
    with model.remembering():
        while True:
            before = sum(changes.values())
            for index, name in enumerate(PASSES):
                progress(f"optimizes {len(model.layers)} layers: {name}", index / len(PASSES))
                count = load_pass(name)(model, evaluate)
                if count:
                    changes[name] += count
                    model.verify()
            if sum(changes.values()) == before:
                break
    log.debug("%s: passes changed %s", model.name, changes)
    return changes
