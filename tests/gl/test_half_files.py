"""Files of float16 and bfloat16 on both GL backends: no layer falls back, and halves stay halves."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import perframe as pf
from gl.graphs import graph

random = np.random.default_rng(8)
WEIGHTS = {"w": (32, 16, 3, 3), "v": (32, 32, 3, 3), "m": (32, 40), "s": (40,), "t": (40,)}
X = random.uniform(-1, 1, (1, 16, 21, 23)).astype(np.float16)


def network(dtype: Any) -> pf.Model:
    """Convolutions, a product, a norm and a softmax, with weights that float16 and bfloat16 hold."""
    drawn = np.random.default_rng(9)
    weights = {name: drawn.uniform(-0.3, 0.3, shape).astype(ml_dtypes.bfloat16) for name, shape in WEIGHTS.items()}
    return graph(
        [
            ("Conv", ["x", "w"], ["c"], {"pads": [1, 1, 1, 1]}),
            ("Sigmoid", ["c"], ["g"]),
            ("Mul", ["c", "g"], ["z"]),
            ("Conv", ["z", "v"], ["d"], {"pads": [1, 1, 1, 1]}),
            ("GlobalAveragePool", ["d"], ["p"]),
            ("Flatten", ["p"], ["f"]),
            ("MatMul", ["f", "m"], ["l"]),
            ("LayerNormalization", ["l", "s", "t"], ["n"]),
            ("Softmax", ["n"], ["y"]),
        ],
        {"x": (1, 16, "height", "width")},
        outputs=("y", "n"),
        constants={name: value.astype(dtype) for name, value in weights.items()},
        dtype=dtype,
    )


def size_of_weights(worker: pf.Worker) -> int:
    return sum(part.read + part.packed for part in worker.memory_use)


@pytest.mark.parametrize(("dtype", "least"), [(np.float16, 2e-3), (ml_dtypes.bfloat16, 2**-7)])
def test_results_are_those_of_float32(dtype: Any, least: float, where: str, gl_context: Any) -> None:
    x = X.astype(dtype)
    expected = pf.run(network(np.float32), {"x": x.astype(np.float32)})
    with pf.Worker(network(dtype), where, gl_context, strict=True) as worker:
        worker.schedule(x)
        for name in ("y", "n"):
            found = worker.peek_output(name).download_to_array()
            assert found.dtype == np.dtype(dtype)
            largest = np.abs(expected[name]).max()
            assert np.abs(found.astype(np.float32) - expected[name]).max() <= least * largest


def test_weights_and_values_take_half_of_the_memory(where: str, gl_context: Any) -> None:
    with pf.Worker(network(np.float32), where, gl_context) as whole:
        whole.schedule(X.astype(np.float32)).peek_output().download_to_array()
        with pf.Worker(network(np.float16), where, gl_context, strict=True) as half:
            half.schedule(X).peek_output().download_to_array()
            few = 4 * (40 + 40)  # the norm's numbers
            assert size_of_weights(half) - few <= 0.5 * (size_of_weights(whole) - few)
            assert half.memory_use[0].workspace < 0.7 * whole.memory_use[0].workspace


def test_weights_of_bfloat16_take_half_of_the_memory(where: str, gl_context: Any) -> None:
    with pf.Worker(network(ml_dtypes.bfloat16), where, gl_context, strict=True) as half:
        half.schedule(X.astype(ml_dtypes.bfloat16)).peek_output().download_to_array()
        assert size_of_weights(half) <= 2 * sum(np.prod(shape) for shape in WEIGHTS.values()) + 4 * (40 + 40)


def test_values_between_layers_end_at_65504(where: str, gl_context: Any) -> None:
    """A sum is stored: the CPU keeps it in float32, a GPU in float16."""
    nodes = [("ReduceSum", ["x", "axes"], ["s"]), ("Softsign", ["s"], ["t"]), ("MatMul", ["s", "k"], ["y"])]
    constants = {"axes": np.array([1]), "k": np.full((1, 1), 1e-3, np.float16)}
    model = graph(nodes, {"x": (2, 4)}, outputs=("y", "t"), constants=constants, dtype=np.float16, optimize=False)
    x = np.float16([[60000, 30000, 0, 0], [300, 20, 1, 0]])
    found = pf.run(model, {"x": x}, where, ctx=gl_context, strict=True)
    np.testing.assert_allclose(found["y"], np.float16([[np.inf], [0.321]]), 2e-3)
    np.testing.assert_allclose(pf.run(model, {"x": x})["y"], np.float16([[90], [0.321]]), 2e-3)


def test_layers_of_float32_keep_their_precision(where: str, gl_context: Any) -> None:
    """The file sums squares in float32, beyond what float16 holds."""
    nodes = [
        ("Cast", ["x"], ["wide"], {"to": TensorProto.FLOAT}),
        ("MatMul", ["wide", "turned"], ["squares"]),
        ("ReduceSum", ["squares", "axes"], ["s"]),
        ("MatMul", ["s", "k"], ["small"]),
        ("Cast", ["small"], ["h"], {"to": TensorProto.FLOAT16}),
        ("Neg", ["h"], ["y"]),
    ]
    turned = random.uniform(100, 200, (64, 8)).astype(np.float32)
    constants = {"turned": turned, "axes": np.array([1]), "k": np.full((1, 1), 1e-5, np.float32)}
    x = random.uniform(100, 200, (3, 64)).astype(np.float16)
    model = graph(nodes, {"x": (3, 64)}, constants=constants, dtype=np.float16, optimize=False)
    with pf.Worker(model, where, gl_context, strict=True) as worker:
        found = worker.schedule(x).peek_output().download_to_array()
    expected = -1e-5 * (x.astype(np.float64) @ turned).sum(1, keepdims=True)
    np.testing.assert_allclose(found, expected, 6e-4)


def test_inputs_and_outputs_stay_on_the_gpu(where: str, gl_context: Any) -> None:
    model = graph([("Mul", ["x", "k"], ["y"])], {"x": (7,)}, constants={"k": np.float16(0.5)}, dtype=np.float16)
    x = np.arange(7, dtype=np.float16)
    with pf.Worker(model, where, gl_context, strict=True, carry={"y": "x"}) as worker:
        worker.reset(x)
        for _ in range(3):
            worker.schedule()
        np.testing.assert_array_equal(worker.state().download_to_array(), x / 8)
    with pf.Worker(model, where, gl_context, strict=True) as worker:
        given, made = worker.empty_input(), pf.Tensor.empty((7,), "float16")
        given.upload(x)
        worker.bind_output("y", made)
        worker.schedule(given)
        np.testing.assert_array_equal(made.download_to_array(), x / 2)
        assert made.backend_type == where and made.dtype == "float16"


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_number_comes_back(dtype: Any, where: str, gl_context: Any) -> None:
    every = np.arange(65536, dtype=np.uint16).view(dtype)
    least = float(ml_dtypes.finfo(dtype).smallest_normal)
    numbers = every.astype(np.float32)
    x = every[(np.abs(numbers) >= least) | (numbers == 0)]  # drivers may flush smaller ones to zero
    model = graph([("Transpose", ["x"], ["y"])], {"x": (x.size,)}, dtype=dtype, optimize=False)
    found = pf.run(model, {"x": x}, where, ctx=gl_context, strict=True)["y"]
    np.testing.assert_array_equal(found.view(np.uint16), x.view(np.uint16))


@pytest.mark.parametrize("resample", ["nearest", "antialias"])
@pytest.mark.parametrize("size", [(5, 7), (4, 8), (1, 1)])
def test_textures_become_tensors_of_float16_and_back(
    size: tuple[int, int], resample: str, where: str, gl_context: Any
) -> None:
    height, width = size
    pictures = random.integers(0, 256, (2, height, width, 4), np.uint8)
    textures = [gl_context.texture((width, height), 4, picture.tobytes()) for picture in pictures]
    model = graph([("Neg", ["x"], ["y"])], {"x": ("n", 4, *size)}, dtype=np.float16)
    converter, how = pf.TextureConverter(gl_context), pf.TextureTransform(resample=resample, swizzle="rgba")
    expected = pictures.transpose(0, 3, 1, 2) / np.float32(255)
    with pf.Worker(model, where, gl_context, strict=True) as worker:
        batch = converter.to_tensor(textures, worker.empty_input(shape=(2, 4, *size)), how)
        found = worker.schedule(batch).peek_output().download_to_array()
        np.testing.assert_allclose(-found, expected, 1e-3, 1e-6)
        on_cpu = converter.to_tensor(list(pictures), pf.Tensor.empty((2, 4, *size), "float16"), how)
        np.testing.assert_allclose(on_cpu.download_to_array(), expected, 1e-3, 1e-6)
        one, drawn = worker.empty_input(shape=(1, 4, *size)), gl_context.texture((width, height), 4, dtype="f4")
        one.upload(expected[:1].astype(np.float16))
        converter.to_texture(one, drawn)
        made = np.frombuffer(drawn.read(), np.float32).reshape(height, width, 4)
        np.testing.assert_allclose(made, pictures[0] / 255, 1e-3, 1e-6)
