"""Operators over random shapes and attributes: windows, products, norms, quantization, steps and transforms.

One strategy a family draws cases; NumPy says what is right, or onnxruntime, or ONNX's evaluator where it can.
"""

from __future__ import annotations

import math
import string
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layers.test_properties import BOUNDED, FLAG, WHEN, Random, Shape, axis_of, draws, joined, shapes
from perframe.testing import Case, check
from perframe.testing.cases import Array

CLOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}
SOME = st.sampled_from([1, 2, 3])
BATCH = st.sampled_from([1, 2, 3, 0])


def several(random: Random, count: int, low: int, high: int) -> list[int]:
    return [random(st.integers(low, high)) for _ in range(count)]


def window(random: Random, rank: int) -> tuple[list[int], list[int], dict[str, Any]]:
    """The size of a picture, the kernel, and where the kernel goes, so that it fits at least once."""
    kernel, strides, dilations = (several(random, rank, 1, most) for most in (3, 3, 2))
    extent = [spread * (k - 1) + 1 for spread, k in zip(dilations, kernel, strict=True)]
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations}
    auto_pad = random(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    size = [e + random(st.sampled_from([0, 1, 2, 4, 6])) for e in extent]
    if auto_pad != "NOTSET":
        attributes["auto_pad"] = auto_pad
    else:
        attributes["pads"] = [random(st.integers(0, k - 1)) for k in kernel * 2]
    return size, kernel, attributes


@st.composite
def pool(random: Random) -> Case:
    op = random(st.sampled_from(["MaxPool", "AveragePool", "MaxPool with places"]))
    size, kernel, attributes = window(random, random(SOME))
    x = draws(random)(random(BATCH), random(SOME), *size)
    attributes["kernel_shape"] = kernel
    if "pads" in attributes:
        attributes["ceil_mode"] = random(FLAG)
    elif attributes["auto_pad"] != "VALID":  # onnxruntime takes neither dilation nor gaps between windows here
        attributes |= {"dilations": [1] * len(kernel), "strides": [1] * len(kernel)}
    if op == "AveragePool":
        attributes["count_include_pad"] = random(FLAG)
    if op == "MaxPool with places":
        attributes["storage_order"] = random(FLAG)
        return Case("", "MaxPool", [x], attributes, outputs=2, reference="onnxruntime", opset=22, gl=False)
    return Case("", op, [x], attributes, reference="onnxruntime", opset=22, **CLOSE)


@st.composite
def conv(random: Random) -> Case:
    size, kernel, attributes = window(random, random(SOME))
    group, each, made, draw = random(SOME), random(SOME), random(SOME), draws(random)
    if attributes.get("auto_pad", "").startswith("SAME"):  # onnxruntime has no dilation here
        attributes["dilations"] = [1] * len(kernel)
    given = [draw(random(BATCH), group * each, *size), draw(group * made, each, *kernel)]
    given += [draw(group * made)] if random(st.booleans()) else []
    constants = random(st.sampled_from([(), (1,), (1, 2)]))
    attributes["group"] = group
    return Case("", "Conv", given, attributes, constants=constants, opset=22, reference="onnxruntime", **CLOSE)


@st.composite
def conv_transpose(random: Random) -> Case:
    rank = random(SOME)
    size, (kernel, strides, dilations) = several(random, rank, 1, 5), (several(random, rank, 1, 3) for _ in range(3))
    group, each, made, draw = random(SOME), random(SOME), random(SOME), draws(random)
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": group}
    attributes["pads"] = [random(st.integers(0, k - 1)) for k in kernel * 2]
    attributes["output_padding"] = [random(st.integers(0, step - 1)) for step in strides]
    for axis, (n, k, step, spread) in enumerate(zip(size, kernel, strides, dilations, strict=True)):
        cut = attributes["pads"][axis] + attributes["pads"][axis + rank]
        assume(step * (n - 1) + attributes["output_padding"][axis] + spread * (k - 1) + 1 > cut)
    given = [draw(random(BATCH), group * each, *size), draw(group * each, made, *kernel)]
    given += [draw(group * made)] if random(st.booleans()) else []
    constants = random(st.sampled_from([(), (1,), (1, 2)]))
    return Case("", "ConvTranspose", given, attributes, constants=constants, opset=22, reference="onnxruntime", **CLOSE)


@st.composite
def matmul(random: Random) -> Case:
    n, k, m = (random(st.sampled_from([1, 2, 5, 7, 17, 0])) for _ in range(3))
    first, second = ((*batch[-4:], *end) for batch, end in zip(joined(random, 2), ((n, k), (k, m)), strict=True))
    if first[:-2] == () and random(st.booleans()):
        first = (k,)
    if second[:-2] == () and random(st.booleans()):
        second = (k,)
    draw, constants = draws(random), random(st.sampled_from([(), (0,), (1,)]))
    return Case("", "MatMul", [draw(*first), draw(*second)], constants=constants, reference=np.matmul, **CLOSE)


@st.composite
def gemm(random: Random) -> Case:
    n, k, m = (random(st.sampled_from([1, 2, 5, 7, 17, 0])) for _ in range(3))
    flip, flop, draw = random(FLAG), random(FLAG), draws(random)
    alpha, beta = random(st.sampled_from([1.0, 0.5])), random(st.sampled_from([1.0, -2.0, 0.0]))
    given = [draw(*((k, n) if flip else (n, k))), draw(*((m, k) if flop else (k, m)))]
    added = random(st.sampled_from([None, (), (1,), (m,), (1, m), (n, 1), (n, m)]))
    given += [] if added is None else [draw(*added)]

    def reference(a: Array, b: Array, c: Any = 0) -> Array:
        return (alpha * ((a.T if flip else a) @ (b.T if flop else b)) + beta * c).astype(np.float32)

    attributes = {"transA": flip, "transB": flop, "alpha": alpha, "beta": beta}
    return Case("", "Gemm", given, attributes, constants=(), reference=reference, **CLOSE)


def standardized(x: Array, axes: tuple[int, ...], epsilon: float = 1e-5) -> Array:
    made: Array = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return made


def softmax(x: Array, axis: int) -> Array:
    parts = np.exp(x - x.max(axis, keepdims=True, initial=-math.inf))
    made: Array = parts / parts.sum(axis, keepdims=True)
    return made


def channels(values: Array, x: Array) -> Array:
    return values.reshape(-1, *[1] * (x.ndim - 2))


@st.composite
def norm(random: Random) -> Case:
    op, draw = random(st.sampled_from(["Softmax", "LogSoftmax", "Hardmax", "LpNormalization", *NORMS])), draws(random)
    if op in NORMS:
        return NORMS[op](random, draw)
    shape = random(shapes(1, smallest=0 if "Softmax" in op else 1))
    axis, p = axis_of(random, len(shape)), random(st.integers(1, 2))
    want = {
        "Softmax": lambda x: softmax(x, axis),
        "LogSoftmax": lambda x: np.log(softmax(x, axis)),
        "Hardmax": lambda x: np.equal(x, x.max(axis, keepdims=True)).astype(np.float32),
        "LpNormalization": lambda x: x / np.linalg.norm(x, p, axis, keepdims=True),
    }
    attributes = {"axis": axis} | ({"p": p} if op == "LpNormalization" else {})
    return Case("", op, [draw(*shape, low=-4, high=4)], attributes, reference=want[op], **CLOSE)


def _layer(random: Random, draw: Any) -> Case:
    shape = random(shapes(1, smallest=1))
    axis = axis_of(random, len(shape))
    op = random(st.sampled_from(["LayerNormalization", "RMSNormalization"]))
    axes = tuple(range(axis % len(shape), len(shape)))

    def reference(x: Array, scale: Array, bias: Any = 0) -> Array:
        if op == "LayerNormalization":
            return standardized(x, axes) * scale + bias
        return x / np.sqrt(np.mean(x * x, axes, keepdims=True) + np.float32(1e-5)) * scale

    given = [draw(*shape, low=-4, high=4), draw(*shape[axes[0] :])]
    given += [draw(*shape[axes[0] :])] if op == "LayerNormalization" and random(st.booleans()) else []
    return Case("", op, given, {"axis": axis}, reference=reference, rtol=1e-3, atol=1e-4)


def _instance(random: Random, draw: Any) -> Case:
    n, c, *rest = random(shapes(3, 5, smallest=1))
    given = [draw(n, c, *rest, low=-4, high=4), draw(c), draw(c)]

    def reference(x: Array, scale: Array, bias: Array) -> Array:
        return standardized(x, tuple(range(2, x.ndim))) * channels(scale, x) + channels(bias, x)

    return Case("", "InstanceNormalization", given, reference=reference, rtol=1e-3, atol=1e-4)


def _group(random: Random, draw: Any) -> Case:
    n, groups, each, *rest = random(shapes(3, 5, smallest=1))
    c = groups * each
    given = [draw(n, c, *rest, low=-4, high=4), draw(c), draw(c)]

    def reference(x: Array, scale: Array, bias: Array) -> Array:
        made = standardized(x.reshape(n, groups, -1), (2,)).reshape(x.shape)
        return made * channels(scale, x) + channels(bias, x)

    attributes = {"num_groups": groups}
    return Case("", "GroupNormalization", given, attributes, reference=reference, rtol=1e-3, atol=1e-4)


def _local(random: Random, draw: Any) -> Case:
    size, x = random(st.integers(1, 5)), draw(*random(shapes(3, 5, smallest=1)), low=-4, high=4)

    def reference(x: Array) -> Array:
        padded = np.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), *[(0, 0)] * (x.ndim - 2)])
        squares = sum(padded[:, i : i + x.shape[1]] for i in range(size))
        return (x / (2 + 0.5 / size * squares) ** 0.75).astype(np.float32)

    return Case("", "LRN", [x], {"size": size, "alpha": 0.5, "bias": 2.0}, reference=reference, **CLOSE)


NORMS: dict[str, Any] = {"layer": _layer, "instance": _instance, "group": _group, "local": _local}


@st.composite
def einsum(random: Random) -> Case:
    sizes = dict(zip("abcde", [random(st.sampled_from([1, 2, 3, 5, 0])) for _ in range(5)], strict=True))
    letters = st.text("abcde", min_size=1, max_size=3).filter(lambda term: len(set(term)) == len(term))
    terms = random(st.lists(letters, min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    result = "".join(random(st.permutations(used))[: random(st.integers(0, len(used)))])
    upper = str.maketrans(string.ascii_lowercase, string.ascii_uppercase) if random(st.booleans()) else {}
    batch, lead = ("...", (2,)) if random(st.booleans()) else ("", ())
    equation = ",".join(batch + term for term in terms)
    implicit = random(st.booleans())
    equation = (equation if implicit else f"{equation}->{batch}{result}").translate(upper)
    draw = draws(random)
    given = [draw(*lead, *(sizes[letter] for letter in term)) for term in terms]
    return Case("", "Einsum", given, {"equation": equation}, reference=lambda *x: np.einsum(equation, *x), **CLOSE)


@st.composite
def quantize(random: Random) -> Case:
    shape, draw = random(shapes(1)), draws(random)
    dtype = random(st.sampled_from([np.uint8, np.int8, np.uint16, np.int16]))
    axis, kind = axis_of(random, len(shape)), random(st.sampled_from(["tensor", "axis", "blocks"]))
    length = shape[axis]
    block = random(st.integers(1, max(1, length)))
    scales: Shape = () if kind == "tensor" else (length,)
    if kind == "blocks":
        scales = tuple(-(-length // block) if i == axis % len(shape) else dim for i, dim in enumerate(shape))
    attributes = {} if kind == "tensor" else {"axis": axis} | ({"block_size": block} if kind == "blocks" else {})
    scale, zero = draw(*scales, low=0.1, high=2), draw(*scales, high=9, dtype=dtype)

    def spread(values: Array) -> Array:
        if kind == "axis":
            return np.expand_dims(values, [i for i in range(len(shape)) if i != axis % len(shape)])
        return values if kind == "tensor" else values.repeat(block, axis).take(range(length), axis)

    def quantized(x: Array, scale: Array, zero: Array) -> Array:
        info = np.iinfo(dtype)
        return (np.rint(x / spread(scale)) + spread(zero)).clip(info.min, info.max).astype(dtype)

    def dequantized(x: Array, scale: Array, zero: Array) -> Array:
        return (x.astype(np.int32) - spread(zero)).astype(np.float32) * spread(scale)

    constants = random(st.sampled_from([(), (1, 2)]))
    if random(st.booleans()):
        given = [draw(*shape, low=-400, high=400), scale, zero]
        return Case("", "QuantizeLinear", given, attributes, constants=constants, reference=quantized)
    given = [draw(*shape, low=-90, high=90, dtype=dtype), scale, zero]
    return Case("", "DequantizeLinear", given, attributes, constants=constants, reference=dequantized)


@st.composite
def recurrent(random: Random) -> Case:
    op, draw = random(st.sampled_from(["RNN", "GRU", "LSTM"])), draws(random)
    direction = random(st.sampled_from(["forward", "reverse", "bidirectional"]))
    steps, batch, width, hidden = several(random, 4, 1, 4)
    ways, gates = 1 + (direction == "bidirectional"), {"RNN": 1, "GRU": 3, "LSTM": 4}[op] * hidden
    given: list[Array | None] = [draw(steps, batch, width), draw(ways, gates, width), draw(ways, gates, hidden)]
    given += [draw(ways, 2 * gates) if random(st.booleans()) else None]
    given += [draw(batch, low=1, high=steps, dtype=np.int32) if random(st.booleans()) else None]
    given += [draw(ways, batch, hidden) if random(st.booleans()) else None]
    if op == "LSTM":
        given += [draw(ways, batch, hidden) if random(st.booleans()) else None]
        given += [draw(ways, 3 * hidden) if random(st.booleans()) else None]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    attributes |= {"linear_before_reset": random(FLAG)} if op == "GRU" else {}
    attributes |= {"input_forget": random(FLAG)} if op == "LSTM" else {}
    outputs = 3 if op == "LSTM" else 2
    options = {"constants": [1, 2, 3, 7], "opset": 22, "reference": "onnxruntime"}
    return Case("", op, given, attributes, outputs=outputs, rtol=1e-4, atol=1e-5, **options)


@st.composite
def spectral(random: Random) -> Case:
    shape = random(shapes(1, 4, smallest=1))
    axis, inverse, onesided, parts = random(st.integers(0, len(shape) - 1)), random(FLAG), random(FLAG), 1
    if inverse or not onesided:
        onesided, parts = 0, random(st.sampled_from([1, 2]))
    length = random(st.sampled_from([None, 1, 3, 8, 11]))
    x = draws(random)(*shape, parts)

    def reference(x: Array, *_: Any) -> Array:
        whole = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
        made = (np.fft.ifft if inverse else np.fft.fft)(whole, length, axis)
        made = made.take(range(made.shape[axis] // 2 + 1), axis) if onesided else made
        return np.stack([made.real, made.imag], -1).astype(np.float32)

    said = axis - random(st.sampled_from([0, len(shape) + 1]))
    given = [x, None if length is None else np.array(length), np.array(said)]
    attributes = {"inverse": inverse, "onesided": onesided}
    return Case("", "DFT", given, attributes, constants=random(WHEN), reference=reference, rtol=1e-4, atol=1e-4)


FAMILIES = (pool, conv, conv_transpose, matmul, gemm, norm, einsum, quantize, recurrent, spectral)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_drawn(family: Any, backend: str, backend_context: Any) -> None:
    @given(family())
    @BOUNDED
    def agrees(case: Case) -> None:
        check(case, backend, backend_context)

    agrees()
