"""Elementwise layers, casts, random numbers and quantized constants."""

from __future__ import annotations

import numpy as np

from perframe.backends import evaluator
from perframe.errors import ModelError
from perframe.exporters.sentis.table import SentisLayer, rule
from perframe.tensor import DataType

_WHOLE = (DataType.INT32, DataType.INT64, DataType.BOOL)  # int32 in the file


@rule("Gelu")
def _gelu(own: SentisLayer) -> None:
    own.end("GeluFast" if own["approximate"] == "tanh" else "Gelu", own.input(0))


@rule("Dropout")
def _dropout(own: SentisLayer) -> None:
    training = own.optional(2)
    if training is not None and (training.constant is None or training.constant.any()):
        raise ModelError("it trains: load the network as it runs after training")
    own.end("Identity", own.input(0))


@rule("Cast")
def _cast(own: SentisLayer) -> None:
    """Integers and bools are the same in the file. A number is true unless it is 0."""
    x, to = own.input(0), own["to"]
    source = x.spec.dtype
    if x.constant is not None and source not in (DataType.FLOAT32, DataType.FLOAT16, *_WHOLE):
        own.folded = evaluator()(own.layer, [x.constant])[0]
    elif to is DataType.BOOL and source is not DataType.BOOL:
        equal = own.add("Equal", x, own.constant(np.zeros((), source.numpy)), made=DataType.BOOL)
        own.end("Not", equal)
    elif source is to or (source in _WHOLE and to in _WHOLE):
        own.end("Identity", x)
    elif to is DataType.FLOAT32 or to in _WHOLE:
        own.end("Cast", x, to=DataType.FLOAT32 if to is DataType.FLOAT32 else DataType.INT32)
    else:
        raise ModelError(f"it casts to {to}, and Unity has float32 and int32")


@rule("DequantizeLinear")
def _dequantize(own: SentisLayer) -> None:
    """Weights of uint8 with one scale stay small. All other constants become floats."""
    x, scale, zero = own.input(0), own.input(1), own.optional(2)
    if x.constant is None or scale.constant is None or (zero is not None and zero.constant is None):
        raise ModelError("Unity dequantizes constants alone: take the float model")
    if x.spec.dtype is DataType.UINT8 and scale.constant.size == 1 and scale.spec.dtype is DataType.FLOAT32:
        point = 0 if zero is None or zero.constant is None else int(zero.constant.reshape(()))
        own.end("DequantizeUint8", x, scale=float(scale.constant.reshape(())), zero_point=point)
        return
    own.folded = evaluator()(own.layer, [value and value.constant for value in own.layer.inputs])[0]


@rule("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def _random(own: SentisLayer) -> None:
    own.must_be("Unity draws float32", dtype=DataType.FLOAT32)
    names = [name for name in own.layer.declaration.attributes if name not in ("dtype", "seed")]
    own.end(own.op, *own.layer.inputs, **{name: own[name] for name in names}, **_seed(own))


@rule("Bernoulli")
def _bernoulli(own: SentisLayer) -> None:
    is_float = own.layer.output.spec.dtype is DataType.FLOAT32
    dtype = DataType.FLOAT32 if is_float else DataType.INT32
    own.end("Bernoulli", own.input(0), dtype=dtype, **_seed(own))


@rule("Multinomial")
def _multinomial(own: SentisLayer) -> None:
    own.end("Multinomial", own.input(0), sample_size=own["sample_size"], **_seed(own))


def _seed(own: SentisLayer) -> dict[str, int]:
    seed = own["seed"]
    return {"has_seed": int(seed is not None), "seed": int(seed or 0)}
