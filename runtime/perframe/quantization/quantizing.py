"""`quantize` returns a smaller model that computes nearly the same."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from perframe.backends import evaluator
from perframe.errors import InputError, ModelError
from perframe.importers.loading import load
from perframe.ir import Model
from perframe.passes import optimize
from perframe.passes.clean import remove_unused
from perframe.passes.prepared import freeze
from perframe.quantization.choosing import PRODUCTS, choose, split_activations
from perframe.quantization.measuring import measure_errors
from perframe.quantization.ranges import check_method
from perframe.quantization.samples import Sample, checked
from perframe.quantization.static import insert, value_scales
from perframe.quantization.watching import Progress, histograms
from perframe.quantization.weights import BLOCK_SIZE, FORMATS, quantize_weights
from perframe.safety.wording import did_you_mean
from perframe.tensor import DataType

log = logging.getLogger("perframe")

ACTIVATIONS = ("uint8", "int8")
QUANTIZED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger")


def quantize(
    model: Model | str | Path | bytes | IO[bytes] | Any,
    weights: str = "int8",
    calibration: Iterable[Mapping[str, Any] | Any] | None = None,
    *,
    activations: str = "uint8",
    method: str = "min-max",
    per_tensor: bool = False,
    block_size: int = 32,
    exclude: Iterable[str] = (),
    max_error: float | None = None,
    progress: Progress = lambda _what, _done: None,
) -> Model:
    """Return an optimized copy of a model that computes nearly the same with smaller numbers.

    `model` is a Model, which is not changed, or anything that `load` takes.

    Without `calibration` only the weights are quantized: `weights` is float16, uint8, int8 or int4. uint8 and int8 have
    a scale for each column of a layer's weights, or with `per_tensor` one scale. int4 has a scale for each `block_size`
    rows of a column.

    With `calibration`, the inputs of some typical runs, layers compute with 8-bit values: an iterable of dicts by the
    inputs' names, or of arrays for a model with one input. `weights` is int8 then, and `activations` are uint8, or int8
    with a zero point of 0. `method` turns the values of all runs into ranges: min-max, percentile (99.99 % of the
    values) or mse (the smallest squared error).

    Layers named in `exclude` keep floats. With `max_error`, the worst layers are left out too, one by one, until the
    root mean square error of each output is at most this part of the output's. `progress(what, done)` is called
    meanwhile.

    Raises InputError for arguments and data that do not fit, and ModelError for a model without weights of float32, one
    that is quantized already, and one for which `max_error` leaves no layer.
    """
    _check_arguments(weights, calibration, activations, block_size, max_error)
    check_method(method)
    source = copied(model if isinstance(model, Model) else load(model))
    if not source.optimized:
        optimize(source, evaluator())
    left = check_layers(source, exclude)
    if calibration is None:
        quantized = copied(source)
        if not quantize_weights(quantized, weights, left, per_tensor, block_size):
            raise ModelError(f"{source.name} has no weights of float32 to quantize, besides excluded and small ones")
    else:
        search = _Search(source, DataType.of(activations), method, per_tensor, progress)
        quantized = search.run(left, calibration, max_error)
    remove_unused.run(quantized, evaluator())
    quantized.verify()
    freeze(quantized)
    return quantized


class _Search:
    """Static quantization of a model, with fewer layers until the error is small enough."""

    def __init__(self, model: Model, dtype: DataType, method: str, per_tensor: bool, progress: Progress) -> None:
        self._model, self._dtype, self._method, self._per_tensor = model, dtype, method, per_tensor
        self._progress = progress

    def run(self, exclude: set[str], calibration: Iterable[Any], max_error: float | None) -> Model:
        """Return the quantized model. The layers of the given model change."""
        left = set(exclude)
        split_activations(self._model, choose(self._model, left))
        if not choose(self._model, left).products:
            raise ModelError(
                f"{self._model.name} has no layer to compute with bytes: none of the layers that are not excluded is a "
                f"{', '.join(PRODUCTS)} of data and constant weights outside of branches and loops; the weights alone "
                "can be quantized without calibration data"
            )
        samples: Iterable[Sample] = checked(self._model, calibration)
        if max_error is not None:
            samples = list(samples)
        self._found = histograms(
            self._model, [v.name for v in choose(self._model, left).values], samples, self._progress
        )
        quantized = self._quantized(left)
        while max_error is not None:
            errors = measure_errors(self._model, quantized, samples)
            if errors.worst_output <= max_error:
                break
            products = {layer.name for layer in choose(self._model, left).products}
            worst = max((one for one in errors.layers if one.layer in products), key=lambda one: one.own, default=None)
            left.update(products if worst is None else [worst.layer])
            if products <= left:
                raise ModelError(
                    f"{self._model.name}: the error is {errors.worst_output:.2g} with the last layer that may be "
                    f"quantized, and max_error is {max_error:g}: allow more, or quantize the weights alone"
                )
            assert worst is not None
            log.info("%s stays in float32: its error is %.2g", worst.layer, worst.own)
            self._progress(f"error {errors.worst_output:.2g}: leaves out {len(left)} layers", 1.0)
            quantized = self._quantized(left)
        return quantized

    def _quantized(self, left: set[str]) -> Model:
        made = copied(self._model)
        choice = choose(made, left)
        insert(made, choice, value_scales(choice, self._found, self._method, self._dtype), self._per_tensor)
        quantize_weights(made, "int8", left, self._per_tensor, BLOCK_SIZE)
        return made


def copied(model: Model) -> Model:
    """Return a copy of a model that can be changed. It shares the arrays of its constants."""
    made = model.copy(with_bodies=True)
    made.producer, made.opsets, made.optimized = model.producer, dict(model.opsets), model.optimized
    return made


def check_layers(model: Model, exclude: Iterable[str]) -> set[str]:
    """Return the names of the layers that stay. Raises InputError for unknown ones, ModelError if quantized already."""
    if isinstance(exclude, str):
        raise InputError(f"exclude takes names of layers, such as [{exclude!r}], not a text")
    left, known = list(exclude), _layer_names(model)
    for name in left:
        if name not in known:
            close = did_you_mean(str(name), known)
            raise InputError(
                f"{model.name} has no layer {name!r} to exclude: {close}`perframe inspect` lists its layers"
            )
    for layer in model.layers:
        if layer.op in QUANTIZED or layer.family == "quantized":
            raise ModelError(
                f"{model.name} is quantized already: layer {layer.name!r} is a {layer.op}; quantize the float model "
                "that it was made from"
            )
        small = layer.input(0).constant if layer.op == "Cast" else None
        if small is not None and small.dtype == np.float16:
            raise ModelError(
                f"{model.name} is quantized already: its weights {layer.output.name!r} are float16; quantize the model "
                "of float32 that it was made from"
            )
    return set(left)


def _layer_names(model: Model) -> list[str]:
    names = [layer.name for layer in model.layers]
    for layer in model.layers:
        for body in layer.inner_models.values():
            names += _layer_names(body)
    return names


def _check_arguments(
    weights: str, calibration: object, activations: str, block_size: int, max_error: float | None
) -> None:
    if weights not in FORMATS:
        raise InputError(f"weights can be {', '.join(FORMATS)}, not {weights!r}")
    if isinstance(block_size, bool) or not isinstance(block_size, int) or not 1 <= block_size < 1 << 31:
        raise InputError(f"block_size is an integer from 1, not {block_size!r}")
    if activations not in ACTIVATIONS:
        raise InputError(f"activations can be {' or '.join(ACTIVATIONS)}, not {activations!r}")
    if calibration is not None and weights != "int8":
        raise InputError(f"with calibration data weights are int8, not {weights}: leave out one of the two")
    if max_error is not None and not (isinstance(max_error, (int, float)) and 0 < max_error < math.inf):
        raise InputError(f"max_error is a part of the outputs, such as 0.05, not {max_error!r}")
    if max_error is not None and calibration is None:
        raise InputError("max_error needs calibration data (--static on the command line)")
