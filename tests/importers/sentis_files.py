"""Files of one layer in the format .sentis, and the checker of files beside the checkout."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.exporters.sentis.program import Record, SentisProgram
from perframe.ir import Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType
from perframe.testing import Draw

Array = NDArray[Any]


@dataclass(frozen=True)
class Const:
    """An input that is a constant of the file."""

    array: Array


@dataclass(frozen=True)
class KindCase:
    """A layer: its kind, its inputs, the outputs that it should have, and its arguments by name."""

    kind: str
    inputs: Sequence[Array | Const | None]
    wanted: Sequence[Array]
    arguments: dict[str, Any] = field(default_factory=dict)
    version: int | None = None
    rtol: float = 1e-6

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in self.arguments.items()]
        return " ".join([self.kind, *words, *([f"v{self.version}"] if self.version else [])])

    @property
    def fed(self) -> dict[str, Array]:
        """The model's inputs."""
        return {f"x{i}": value for i, value in enumerate(self.inputs) if isinstance(value, np.ndarray)}

    def data(self) -> bytes:
        """The file."""
        given = [_value(index, value) for index, value in enumerate(self.inputs)]
        made = [Value(f"y{index}", DataType.of(array.dtype)) for index, array in enumerate(self.wanted)]
        inputs = [value for value in given if value is not None and value.constant is None]
        record = Record(self.kind, given, made, self.arguments)
        return joined(SentisProgram(inputs, [(value.name, value) for value in made], [record]), self.version)


def _value(index: int, given: Array | Const | None) -> Value | None:
    if given is None:
        return None
    if isinstance(given, Const):
        return Value(f"c{index}", constant=given.array)
    return Value(f"x{index}", DataType.of(given.dtype), DynamicTensorShape(given.shape))


def joined(program: SentisProgram, version: int | None = None) -> bytes:
    """The bytes of a program."""
    return b"".join(bytes(buffer) for buffer in program.buffers(version))


def network() -> tuple[bytes, Array]:
    """A small network of pictures, and a picture."""
    draw = Draw(5)
    x = Value("image", DataType.FLOAT32, DynamicTensorShape(("batch", 2, 8, 8)))
    padded, conv, pool, flat, dense, y = (Value(name, DataType.FLOAT32) for name in "pcmfdy")
    shape = Value("shape", DataType.INT32)
    window = {"kernel_shape": (3, 3), "strides": (1, 1), "pads": (0, 0, 0, 0), "auto_pad": "NOTSET"}
    around, to = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int32), np.array([0, -1], np.int32)
    weights = [Value("w", constant=array) for array in (draw(4, 2, 3, 3), draw(4), draw(64, 5), draw(5), around, to)]
    records = [
        Record("Pad", [x, weights[4], None, None], [padded], {"mode": "edge"}),
        Record(
            "Conv", [padded, *weights[:2]], [conv], {**window, "dilations": (1, 1), "group": 1, "activation": "Relu"}
        ),
        Record("MaxPool", [conv], [pool], {**window, "kernel_shape": (2, 2), "strides": (2, 2)}),
        Record("Reshape", [pool, weights[5]], [flat], {"allowzero": 0}),
        Record("Dense", [flat, *weights[2:4]], [dense], {"activation": ""}),
        Record("Softmax", [dense], [y], {"axis": -1}),
        Record("Shape", [y], [shape], {"start": 0, "end": 8}),
    ]
    return joined(SentisProgram([x], [("y", y), ("shape", shape)], records)), draw(2, 2, 8, 8)


@functools.cache
def checker(shared: Path) -> Any:
    """The module that checks files."""
    path = shared / "sentis" / "parse.py"
    spec = importlib.util.spec_from_file_location("sentis_parse", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def complaints(shared: Path, data: bytes) -> list[str]:
    """What the checker says of a file, but for constants that are not finite."""
    parse = checker(shared)
    return [text for text in parse.check(parse.load(data)) if not text.endswith("not finite")]
