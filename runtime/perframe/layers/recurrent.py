"""Recurrent layers: RNN, GRU and LSTM, along a sequence, in one direction or in both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from perframe.errors import InferenceError
from perframe.layers.base import Known, layer
from perframe.layers.epilogue import Stage
from perframe.spec import Dim, PartialTensor

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class Recurrence:
    """A cell of `gates` matrices goes along the steps, once for each direction.

    `activations` are chains of formulas, as many for each direction as the cell has; clipping is their first stage.
    `batch_first` says that the inputs and outputs have the batch before the steps and the directions.
    """

    cell: str
    gates: int
    steps: int
    batch: int
    inputs: int
    hidden: int
    reverse: tuple[bool, ...]
    activations: tuple[tuple[tuple[Stage, ...], ...], ...]
    batch_first: bool
    linear_before_reset: bool = False
    input_forget: bool = False


# --- activations: name, defaults of alpha and beta (None: it takes none), and the formulas they are made of ---


def _one(op: str, *names: str) -> Callable[[float, float], tuple[Stage, ...]]:
    return lambda alpha, beta: (Stage(op, tuple(zip(names, (alpha, beta), strict=False)), (None,)),)


def _affine(alpha: float, beta: float) -> tuple[Stage, ...]:
    return Stage("Mul", (), (None, alpha)), Stage("Add", (), (None, beta))


def _scaled_tanh(alpha: float, beta: float) -> tuple[Stage, ...]:
    return Stage("Mul", (), (None, beta)), Stage("Tanh", (), (None,)), Stage("Mul", (), (None, alpha))


_ACTIVATIONS: dict[str, tuple[float | None, float | None, Callable[[float, float], tuple[Stage, ...]]]] = {
    "relu": (None, None, _one("Relu")),
    "tanh": (None, None, _one("Tanh")),
    "sigmoid": (None, None, _one("Sigmoid")),
    "softsign": (None, None, _one("Softsign")),
    "softplus": (None, None, _one("Softplus")),
    "leakyrelu": (0.01, None, _one("LeakyRelu", "alpha")),
    "thresholdedrelu": (1.0, None, _one("ThresholdedRelu", "alpha")),
    "elu": (1.0, None, _one("Elu", "alpha")),
    "hardsigmoid": (0.2, 0.5, _one("HardSigmoid", "alpha", "beta")),
    "affine": (1.0, 0.0, _affine),
    "scaledtanh": (1.0, 1.0, _scaled_tanh),
}


def _scales(names: Sequence[str], which: int, given: Sequence[float]) -> list[float]:
    """Alpha or beta of each activation: given for each, or only for those that take one, in order; else the default."""
    defaults = [_ACTIVATIONS[name][which] for name in names]
    if len(given) == len(names):
        return list(given)
    rest = iter(given)
    return [0.0 if default is None else next(rest, default) for default in map(_optional, defaults)]


def _optional(value: Any) -> float | None:
    return None if value is None else float(value)


def _chains(
    names: Sequence[str], alpha: Sequence[float], beta: Sequence[float], clip: float | None, directions: int
) -> tuple[tuple[tuple[Stage, ...], ...], ...]:
    """For each direction the chains of its activations. Gates are clipped; an LSTM's cell state, its third, is not."""
    limit = (Stage("Clip", (), (None, -clip, clip)),) if clip else ()
    alphas, betas = _scales(names, 0, alpha), _scales(names, 1, beta)
    made = [_ACTIVATIONS[name][2](a, b) for name, a, b in zip(names, alphas, betas, strict=True)]
    each = len(made) // directions
    made = [chain if index % each == 2 else (*limit, *chain) for index, chain in enumerate(made)]
    return tuple(tuple(made[at : at + each]) for at in range(0, len(made), each))


def _names(cell: str, activations: Sequence[str] | None, directions: int) -> list[str]:
    """The activations' names. Raises InferenceError where there are too few, or one is unknown."""
    usual = _CELLS[cell][1]
    given = [str(name).lower() for name in activations or usual * directions]
    needed = len(usual) * directions
    unknown = [name for name in given if name not in _ACTIVATIONS]
    if unknown or len(given) < needed:
        raise InferenceError(
            f"{cell} needs {needed} activations of {', '.join(_ACTIVATIONS)}, and has {', '.join(activations or ())}"
        )
    return given[:needed]


# --- the cells: how many gates, and the usual activations ---

_CELLS: dict[str, tuple[int, tuple[str, ...]]] = {
    "RNN": (1, ("tanh",)),
    "GRU": (3, ("sigmoid", "tanh")),
    "LSTM": (4, ("sigmoid", "tanh", "tanh")),
}


def _check(what: str, value: PartialTensor | None, wanted: Sequence[Dim]) -> None:
    """Raise InferenceError where a shape is known to differ from another."""
    shape = None if value is None else value.shape
    if shape is None:
        return
    known = zip(shape, wanted, strict=False)
    if len(shape) != len(wanted) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in known):
        listed = ", ".join("?" if dim is None else str(dim) for dim in wanted)
        raise InferenceError(f"{what} is {value}, and ({listed}) fits the other inputs")


def _infer(
    cell: str,
    inputs: Sequence[PartialTensor | None],
    direction: str,
    hidden_size: int | None,
    layout: int,
    activations: Sequence[str] | None,
) -> tuple[PartialTensor, ...]:
    """The whole sequence of the hidden state, its last one, and for an LSTM the last cell state."""
    x, w, r, b, lengths, h, *others = inputs
    assert x is not None and w is not None and r is not None
    if direction not in _DIRECTIONS:
        raise InferenceError(f"direction {direction!r} is none of {', '.join(_DIRECTIONS)}")
    gates, directions = _CELLS[cell][0], len(_DIRECTIONS[direction])
    _names(cell, activations, directions)
    if x.shape is not None and len(x.shape) != 3:
        raise InferenceError(f"{cell} takes sequences of 3 dims, not {x}")
    first, second, width = x.shape or (None, None, None)
    steps, batch = (second, first) if layout else (first, second)
    hidden: Dim = hidden_size
    if r.shape is not None and len(r.shape) == 3 and r.shape[2] is not None:
        hidden = r.shape[2]
    total = gates * hidden if isinstance(hidden, int) else None
    _check("W", w, (directions, total, width))
    _check("R", r, (directions, total, hidden))
    _check("B", b, (directions, None if total is None else 2 * total))
    _check("sequence_lens", lengths, (batch,))
    last = (batch, directions, hidden) if layout else (directions, batch, hidden)
    for value in (h, *others[:1]):
        _check("an initial state", value, last)
    _check("P", (*others, None, None)[1], (directions, 3 * hidden if isinstance(hidden, int) else None))
    whole = (batch, steps, directions, hidden) if layout else (steps, directions, batch, hidden)
    return (x.with_shape(whole), *(x.with_shape(last) for _ in range(2 if cell == "LSTM" else 1)))


def _form(
    cell: str,
    x: Known,
    r: Known,
    direction: str,
    layout: int,
    activations: Sequence[str] | None,
    alpha: Sequence[float] | None,
    beta: Sequence[float] | None,
    clip: float | None,
    **more: bool,
) -> Recurrence:
    reverse = _DIRECTIONS[direction]
    first, second, width = x.shape
    steps, batch = (second, first) if layout else (first, second)
    names = _names(cell, activations, len(reverse))
    chains = _chains(names, alpha or (), beta or (), clip, len(reverse))
    gates = _CELLS[cell][0]
    return Recurrence(cell, gates, steps, batch, width, r.shape[2], reverse, chains, bool(layout), **more)


@layer()
def RNN(
    x: PartialTensor,
    w: PartialTensor,
    r: PartialTensor,
    b: PartialTensor | None = None,
    sequence_lens: PartialTensor | None = None,
    initial_h: PartialTensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[PartialTensor, ...]:
    return _infer("RNN", (x, w, r, b, sequence_lens, initial_h), direction, hidden_size, layout, activations)


@RNN.form
def _rnn(
    inputs: Sequence[Any],
    outputs: Sequence[Known],
    *,
    activation_alpha: Sequence[float] | None,
    activation_beta: Sequence[float] | None,
    activations: Sequence[str] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int,
) -> Recurrence:
    scales = (activations, activation_alpha, activation_beta, clip)
    return _form("RNN", inputs[0], inputs[2], direction, layout, *scales)


@layer()
def GRU(
    x: PartialTensor,
    w: PartialTensor,
    r: PartialTensor,
    b: PartialTensor | None = None,
    sequence_lens: PartialTensor | None = None,
    initial_h: PartialTensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[PartialTensor, ...]:
    return _infer("GRU", (x, w, r, b, sequence_lens, initial_h), direction, hidden_size, layout, activations)


@GRU.form
def _gru(
    inputs: Sequence[Any],
    outputs: Sequence[Known],
    *,
    activation_alpha: Sequence[float] | None,
    activation_beta: Sequence[float] | None,
    activations: Sequence[str] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int,
    linear_before_reset: int,
) -> Recurrence:
    scales = (activations, activation_alpha, activation_beta, clip)
    linear = bool(linear_before_reset)
    return _form("GRU", inputs[0], inputs[2], direction, layout, *scales, linear_before_reset=linear)


@layer()
def LSTM(
    x: PartialTensor,
    w: PartialTensor,
    r: PartialTensor,
    b: PartialTensor | None = None,
    sequence_lens: PartialTensor | None = None,
    initial_h: PartialTensor | None = None,
    initial_c: PartialTensor | None = None,
    p: PartialTensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> tuple[PartialTensor, ...]:
    inputs = (x, w, r, b, sequence_lens, initial_h, initial_c, p)
    return _infer("LSTM", inputs, direction, hidden_size, layout, activations)


@LSTM.form
def _lstm(
    inputs: Sequence[Any],
    outputs: Sequence[Known],
    *,
    activation_alpha: Sequence[float] | None,
    activation_beta: Sequence[float] | None,
    activations: Sequence[str] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    input_forget: int,
    layout: int,
) -> Recurrence:
    scales = (activations, activation_alpha, activation_beta, clip)
    return _form("LSTM", inputs[0], inputs[2], direction, layout, *scales, input_forget=bool(input_forget))
