"""Every exception that perframe raises on purpose. Its message says what is wrong, where, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from perframe.safety.names import shown


class PerframeError(Exception):
    """The base of all of perframe's exceptions. Its message may go to a terminal, whatever names a file has."""

    def __str__(self) -> str:
        return shown(super().__str__(), lines=True)


class ModelError(PerframeError, ValueError):
    """A model or model file cannot be used: it is truncated, not ONNX, or inconsistent."""


class MissingFileError(ModelError, FileNotFoundError):
    """There is no model file at this path."""


class ConversionError(ModelError):
    """A file of another framework cannot be converted. The error says what the file is, and what to do."""


class Problem(NamedTuple):
    """One node that cannot be imported."""

    node: str
    operator: str
    domain: str
    opset: int
    reason: str
    inputs: str = ""  # names, with dtypes and shapes if they are known


_ADVICE = {  # by the word for what a format counts
    "opset": 'Export the model without these operators, or declare them: see the page "Your own layer".',
    "file version": "Load the ONNX file that the model was made from, or export it from Unity without these layers.",
    "version": 'Convert the model without these operators: the page "LiteRT operators" lists the supported ones.',
}


class UnsupportedOperatorError(ModelError):
    """A model uses operators that perframe does not have. The error lists all of them.

    `version` is the word for the number of a problem: "opset" for ONNX, "version" for LiteRT, and "file version" for
    .sentis files.
    """

    def __init__(self, file: str, problems: Sequence[Problem], version: str = "opset") -> None:
        self.file = file
        self.problems = tuple(problems)
        lines = [
            f"  {p.domain or 'ai.onnx'}::{p.operator} ({version} {p.opset}), node {p.node!r}: {p.reason}"
            + (f" [inputs {p.inputs}]" if p.inputs else "")
            for p in self.problems
        ]
        kinds = Counter(p.operator for p in self.problems)
        counted = ", ".join(f"{name} × {count}" for name, count in kinds.items())
        nodes = f"{len(self.problems)} nodes" if len(self.problems) > 1 else "1 node"
        kind = f" of {len(kinds)} kinds are" if len(kinds) > 1 else " are" if len(self.problems) > 1 else " is"
        super().__init__(
            f"{file}: {nodes}{kind} not supported: {counted}\n" + "\n".join(lines) + f"\n{_ADVICE[version]}"
        )


class InferenceError(ModelError):
    """The inputs of a layer do not fit together. The error names the layer, its inputs, their shapes and dtypes."""


class PassError(ModelError):
    """A pass of the optimizer failed, or left a model that does not fit together. This is a fault of perframe, and not
    of the file. The error names the pass and the layer, and says how to load the model without passes.
    """


class InputError(PerframeError, ValueError):
    """An argument does not fit: for example an input that a model does not have, or one of a wrong shape or dtype."""


class MissingFolderError(InputError, FileNotFoundError):
    """The folder of an output file does not exist."""


class ReadbackPendingError(PerframeError):
    """`result()` was called before `done`: poll, await, or pass `wait=True`."""


class ClosedError(PerframeError, RuntimeError):
    """An object was used after its release."""


class BackendError(PerframeError, RuntimeError):
    """A backend is not available here, or failed. The error says what is missing and what to install."""


class ContextLostError(BackendError):
    """The GL context was lost: the driver was reset, or its device is gone. Everything in it must be made again."""


class FallbackError(BackendError):
    """With `strict=True`, a layer cannot run on the requested backend. The error names the layer and the reason."""


class HeldMemory(NamedTuple):
    """The bytes that a worker, or another holder, holds.

    `plan` is what its last run needs, `caches` what is kept for other input shapes and for readbacks, and `other` the
    tensors and buffers that belong to no worker.
    """

    holder: str
    weights: int = 0
    plan: int = 0
    caches: int = 0
    states: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        """The bytes of all kinds."""
        return sum(self[1:])

    def __str__(self) -> str:
        kinds = [f"{name} {_mebibytes(size)}" for name, size in zip(self._fields[1:], self[1:], strict=True) if size]
        return f"{self.holder}: {_mebibytes(self.total)} ({', '.join(kinds)})"


class MemoryLimitError(PerframeError):
    """What was asked for does not fit within `memory_mb`. Nothing was changed, and nothing of it is allocated.

    `limit`, `requested` and `held` are bytes. `holders` lists who holds how many, the largest first.
    """

    def __init__(self, limit: int, requested: int, held: int, purpose: str, holders: Sequence[HeldMemory]) -> None:
        self.limit, self.requested, self.held, self.purpose = limit, requested, held, purpose
        self.holders = tuple(holders)
        super().__init__(
            f"{purpose}: {_size(requested)} more do not fit beside the {_size(held)} that are held, since memory_mb "
            f"allows {_size(limit)}. Release workers or tensors, use smaller inputs, or allow more. In MiB:\n"
            + "\n".join(f"  {holder}" for holder in self.holders)
        )

    def of(self, purpose: str) -> MemoryLimitError:
        """Return the error with a purpose that the user knows, before its own."""
        return MemoryLimitError(self.limit, self.requested, self.held, f"{purpose}: {self.purpose}", self.holders)


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.2f}"


def _size(size: int) -> str:
    return f"{size:,} bytes" if size < 1 << 20 else f"{_mebibytes(size)} MiB"


class FormulaError(PerframeError):
    """A formula uses something that the formula compiler does not know. The error has the line number."""


class MissingExtraError(PerframeError, ImportError):
    """An optional package is missing. The error names the extra that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'perframe[{extra}]'")
