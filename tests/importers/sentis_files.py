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

from perframe.exporters.sentis.program import Program, Record
from perframe.ir import Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType

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
        return joined(Program(inputs, [(value.name, value) for value in made], [record]), self.version)


def _value(index: int, given: Array | Const | None) -> Value | None:
    if given is None:
        return None
    if isinstance(given, Const):
        return Value(f"c{index}", constant=given.array)
    return Value(f"x{index}", DataType.of(given.dtype), DynamicTensorShape(given.shape))


def joined(program: Program, version: int | None = None) -> bytes:
    """The bytes of a program."""
    return b"".join(bytes(buffer) for buffer in program.buffers(version))


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
