"""LiteRT files: the seeds, and their mutations, in the structure of a file or in its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzz.mutations import INTS, Random, pick, whole
from fuzz.seeds import Seed

KINDS = 20  # numbers of element types, and one that does not exist
CODES = 210


def litert_seeds() -> Iterator[Seed]:
    """Small networks, and a file for each operator. A loop may have no end, so there is none."""
    from importers.litert_models import branch, network, quantized, real
    from importers.test_litert_operators import CASES, built

    data, x = network()
    yield Seed("litert-network", data, {"image": x}, own=True)
    for dtype in ("int8", "uint8", "int16"):
        data, x = quantized(dtype, per_axis=dtype != "uint8")
        yield Seed(f"litert-{dtype}", data, {"image": x}, own=True)
    yield Seed("litert-branch", branch(), {"condition": np.array(True), "x": real(2, 3)}, own=True)
    for number, case in enumerate(CASES):
        data, fed = built(case)
        names = (f"x{index}" for index, value in enumerate(case.inputs) if not hasattr(value, "value"))
        yield Seed(f"litert-{number}-{case.code}", data, dict(zip(names, fed, strict=True)))


def mutated(data: bytes, rng: Random) -> tuple[bytes, list[str]]:
    """Change a file in one to three ways; says which."""
    from ai_edge_litert import schema_py_generated as schema

    from importers.litert_files import packed

    count = 1 + int(rng.random() < 0.4) + int(rng.random() < 0.2)
    if rng.random() < 0.5:
        for _ in range(count):
            data, said = changed_bytes(data, rng)
        return data, [said]
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    done = [_structure(model, rng) for _ in range(count)]
    try:
        return packed(model), done
    except Exception:  # no file can say this
        return changed_bytes(data, rng)[0], ["bytes"]


def changed_bytes(data: bytes, rng: Random) -> tuple[bytes, str]:
    """Cut a file, or change some of its bits; says how."""
    if len(data) < 16:
        return data, "nothing is left to change"
    changed, how, at = bytearray(data), int(rng.integers(5)), int(rng.integers(4, len(data)))
    if how == 0:
        return bytes(changed[:at]), f"cut at {at}"
    if how == 1:
        changed[at] ^= 1 << int(rng.integers(8))
    elif how == 2:
        changed[at] = int(rng.integers(256))
    else:  # a number, an offset or a length
        at = at // 4 * 4
        near = int.from_bytes(changed[at : at + 4], "little", signed=True)
        number = near + int(pick(rng, (1, -1, 4, -4, 16, 64, -64))) if how == 3 else int(pick(rng, INTS))
        changed[at : at + 4] = (number & 0xFFFFFFFF).to_bytes(4, "little")
    return bytes(changed), f"byte {at} of {len(data)}"


def _structure(model: Any, rng: Random) -> str:
    graph = pick(rng, model.subgraphs)
    tensor, operator = pick(rng, graph.tensors), pick(rng, graph.operators)
    how = int(rng.integers(9))
    if how == 0 and tensor.shape is not None and len(tensor.shape):
        dims = [int(dim) for dim in tensor.shape]
        dims[int(rng.integers(len(dims)))] = int(np.clip(whole(rng, 3), -(2**31), 2**31 - 1))
        tensor.shape = np.array(dims, np.int32)
        return f"shape {dims}"
    if how == 1:
        tensor.type = int(rng.integers(KINDS))
        return f"type {tensor.type}"
    if how == 2:
        tensor.buffer = int(rng.integers(len(model.buffers) + 1))
        return f"buffer {tensor.buffer}"
    if how == 3 and operator is not None:
        which = pick(rng, ("inputs", "outputs"))
        indices = [int(index) for index in getattr(operator, which)]
        if indices:
            indices[int(rng.integers(len(indices)))] = int(rng.integers(-2, len(graph.tensors) + 1))
        setattr(operator, which, indices)
        return f"{which} {indices}"
    if how == 4 and operator is not None and operator.builtinOptions is not None:
        fields = [name for name, value in vars(operator.builtinOptions).items() if isinstance(value, (int, float))]
        name = pick(rng, fields)
        if name is not None:
            setattr(operator.builtinOptions, name, int(np.clip(whole(rng, 1), -128, 127)))
        return f"option {name}"
    if how == 5:
        code = pick(rng, model.operatorCodes)
        code.builtinCode = int(rng.integers(CODES))
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        return f"code {code.builtinCode}"
    if how == 6 and tensor.quantization is not None:
        tensor.quantization.scale = np.float32(rng.choice([0, -1, 1e30, np.nan, 0.1], int(rng.integers(1, 9))))
        tensor.quantization.quantizedDimension = int(rng.integers(-1, 5))
        return "scales"
    if how == 7:
        buffer = pick(rng, model.buffers)
        if buffer.data is not None:
            values = np.array(buffer.data)
            values[int(rng.integers(len(values)))] = int(rng.integers(256))
            buffer.data = values[: int(rng.integers(1, len(values) + 1))] if rng.random() < 0.3 else values
        return "values"
    graph.outputs = [int(rng.integers(len(graph.tensors)))]
    return f"output {graph.outputs}"
