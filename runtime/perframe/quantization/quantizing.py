"""`quantize` returns a smaller model that computes nearly the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any

import numpy as np

from perframe.backends import evaluator
from perframe.errors import InputError, ModelError
from perframe.importers.loading import load
from perframe.model import Layer, Model
from perframe.passes import optimize
from perframe.passes.prepared import freeze
from perframe.quantization.weights import BLOCK_SIZE, quantize_weights

QUANTIZED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger")


def quantize(
    model: Model | str | Path | bytes | IO[bytes] | Any,
    weights: str = "int8",
    *,
    per_tensor: bool = False,
    block_size: int = BLOCK_SIZE,
    exclude: Iterable[str] = (),
) -> Model:
    """Return a copy of a model, optimised, whose weights take fewer bits. The given model stays as it is.

    `model` is a Model, or anything that `load` takes. `weights` is float16, uint8, int8 or int4. uint8 and int8 have a
    scale for each column of a layer's weights, or with `per_tensor` one scale. int4 has a scale for each `block_size`
    rows of a column. Layers named in `exclude` keep their numbers.

    Raises InputError for arguments that do not fit, and ModelError for a model that has no weights of float32 or is
    quantised already.
    """
    _check_arguments(block_size)
    source = model if isinstance(model, Model) else load(model)
    quantized = copied(source)
    if not quantized.optimized:
        optimize(quantized, evaluator())
    left = check_layers(quantized, exclude)
    if not quantize_weights(quantized, weights, left, per_tensor, block_size):
        raise ModelError(f"{source.name} has no weights of float32 to quantise, besides excluded and small ones")
    quantized.verify()
    freeze(quantized)
    return quantized


def copied(model: Model) -> Model:
    """Return a copy of a model that can be changed. It shares the arrays of its constants."""
    layers = [
        replace(layer, inputs=list(layer.inputs), outputs=list(layer.outputs), attributes=_copied(layer))
        for layer in model.layers
    ]
    made = Model(model.inputs, model.outputs, layers, model.constants, model.name)
    made.producer, made.opsets, made.optimized = model.producer, dict(model.opsets), model.optimized
    return made


def _copied(layer: Layer) -> dict[str, Any]:
    bodies: Mapping[str, Model] = layer.attributes.get("bodies", {})
    changed = {"bodies": {name: copied(body) for name, body in bodies.items()}} if bodies else {}
    return dict(layer.attributes) | changed


def check_layers(model: Model, exclude: Iterable[str]) -> set[str]:
    """Return the names of the layers that stay. Raises InputError for unknown ones, and ModelError for a model that is
    quantised already.
    """
    if isinstance(exclude, str):
        raise InputError(f"exclude takes names of layers, such as [{exclude!r}], and not a text")
    left, known = list(exclude), _layer_names(model)
    for name in left:
        if name not in known:
            close: Sequence[str] = get_close_matches(str(name), known, 3) or known[:3]
            raise InputError(
                f"{model.name} has no layer {name!r} to exclude; {'close are' if close else 'it has'} "
                f"{', '.join(map(repr, close))}: `perframe inspect` lists them"
            )
    for layer in model.layers:
        if layer.op in QUANTIZED or layer.family == "quantized":
            raise ModelError(
                f"{model.name} is quantised already: layer {layer.name!r} is a {layer.op}; quantise the model of real "
                "numbers that it was made from"
            )
        small = model.constants.get(layer.inputs[0]) if layer.op == "Cast" else None
        if small is not None and small.dtype == np.float16:
            raise ModelError(
                f"{model.name} is quantised already: its weights {layer.outputs[0]!r} are float16; quantise the model "
                "of float32 that it was made from"
            )
    return set(left)


def _layer_names(model: Model) -> list[str]:
    names = [layer.name for layer in model.layers]
    for layer in model.layers:
        for body in layer.attributes.get("bodies", {}).values():
            names += _layer_names(body)
    return names


def _check_arguments(block_size: int) -> None:
    if isinstance(block_size, bool) or not isinstance(block_size, int) or not 1 <= block_size < 1 << 31:
        raise InputError(f"block_size is a whole number from 1, and not {block_size!r}")
