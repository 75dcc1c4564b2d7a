"""Every exception that perframe raises on purpose. Each says what, where, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class PerframeError(Exception):
    """The base of all of perframe's exceptions."""


class ModelError(PerframeError, ValueError):
    """A model file, or a model, that cannot be used: truncated, not ONNX, inconsistent."""


class MissingFileError(ModelError, FileNotFoundError):
    """There is no model file of this path."""


class Problem(NamedTuple):
    """One node that cannot be imported."""

    node: str
    operator: str
    domain: str
    opset: int
    reason: str
    inputs: str = ""  # with their dtypes and shapes, as far as they are known


class UnsupportedOperatorError(ModelError):
    """A model that uses operators that perframe does not have; it lists all of them at once."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        lines = [
            f"  {p.domain or 'ai.onnx'}::{p.operator} (opset {p.opset}), node {p.node!r}: {p.reason}"
            + (f" [inputs {p.inputs}]" if p.inputs else "")
            for p in self.problems
        ]
        kinds = len({(p.domain, p.operator) for p in self.problems})
        super().__init__(
            f"{file}: {len(self.problems)} node(s) of {kinds} kind(s) are not supported:\n"
            + "\n".join(lines)
            + "\nExport the model without these operators, or see docs/recipes/add-a-layer.md to add them."
        )


class InferenceError(ModelError):
    """A layer whose inputs do not fit together: names the layer, its inputs, their shapes and dtypes."""


class InputError(PerframeError, ValueError):
    """An input that a model does not have, or whose shape or dtype does not fit."""


class ReadbackPending(PerframeError):
    """`result()` was asked before `done`; poll, await, or pass `wait=True`."""


class ClosedError(PerframeError, RuntimeError):
    """Something was used after it was released."""


class BackendError(PerframeError, RuntimeError):
    """A backend cannot be had here, or failed; says what is missing and what to install."""


class FallbackError(BackendError):
    """With `strict=True`: a layer cannot run on the asked backend; names the layer and the reason."""


class FormulaError(PerframeError):
    """A formula uses something that the formula compiler does not know; has the line number."""


class MissingExtraError(PerframeError, ImportError):
    """An optional package is missing; names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'perframe[{extra}]'")
