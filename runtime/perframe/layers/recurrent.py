"""Recurrent layers: RNN, GRU and LSTM, along a sequence, in one direction or in both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from perframe.errors import InferenceError
from perframe.ir.attributes import Between, Flag, Positive
from perframe.ir.declaration import Declaration, Known, register
from perframe.ir.epilogue import Stage
from perframe.ir.sizes.partial import Dim, DynamicTensorShape, PartialTensor, dim_product
from perframe.safety.records import dataclass

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class Recurrence:
    """A cell of `gates` matrices runs over the steps, once for each direction.

    `activations` holds chains of formulas for each direction, one for each activation of the cell; clipping is the
    first stage of a chain. With `batch_first` the batch comes before the steps and the directions, in inputs and
    outputs. With `rounds_state` a product takes the state in whole steps: 255 of them span its range over the batch,
    which contains 0.
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
    rounds_state: bool = False


# --- activations: name, defaults of alpha and beta (None if it takes none), and formulas ---


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
    """Return alpha or beta of each activation.

    `given` has a number for each activation, or for each that takes one, in order; the others get their default.
    """
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
    """Return the chains of activations for each direction.

    Activations of gates clip first; the third one, of an LSTM's cell state, does not.
    """
    limit = (Stage("Clip", (), (None, -clip, clip)),) if clip else ()
    alphas, betas = _scales(names, 0, alpha), _scales(names, 1, beta)
    made = [_ACTIVATIONS[name][2](a, b) for name, a, b in zip(names, alphas, betas, strict=True)]
    each = len(made) // directions
    made = [chain if index % each == 2 else (*limit, *chain) for index, chain in enumerate(made)]
    return tuple(tuple(made[at : at + each]) for at in range(0, len(made), each))


# --- the cells ---


@dataclass(frozen=True)
class _Cell:
    """The differences between the operators of the family: gates, default activations, states, inputs, an attribute."""

    name: str
    gates: int
    usual: tuple[str, ...]
    states: int = 1
    inputs: int = 6
    own: str = ""
    operator: str = ""  # where it is not the cell's name
    rounds_state: bool = False

    def activations(self, given: Sequence[str] | None, directions: int) -> list[str]:
        """Return the names of all activations. Raises InferenceError if there are too few, or one is unknown."""
        names = [str(name).lower() for name in given or self.usual * directions]
        needed = len(self.usual) * directions
        if len(names) < needed or any(name not in _ACTIVATIONS for name in names):
            raise InferenceError(
                f"{self.name} needs {needed} activations of {', '.join(_ACTIVATIONS)}, and has {', '.join(given or ())}"
            )
        return names[:needed]


def _check(what: str, value: PartialTensor | None, wanted: Sequence[Dim]) -> None:
    """Raise InferenceError if the known dims of a shape differ from the wanted ones."""
    if value is not None and value.shape is not None and not value.shape.may_be(wanted):
        raise InferenceError(f"{what} is {value}, and {DynamicTensorShape(wanted)} fits the other inputs")


def _recurrent(cell: _Cell) -> Declaration:
    """Declare the operator of a cell, with the attributes and the shape rule of the family."""

    def infer(
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
        clip: Annotated[float, Between(0, math.inf)] | None = None,
        direction: Literal["forward", "reverse", "bidirectional"] = "forward",
        hidden_size: Positive | None = None,
        layout: Flag = 0,
        **own: int,
    ) -> tuple[PartialTensor, ...]:
        """Return all hidden states, the last one, and for an LSTM the last cell state."""
        directions = len(_DIRECTIONS[direction])
        cell.activations(activations, directions)
        if x.shape is not None and len(x.shape) != 3:
            raise InferenceError(f"{cell.name} takes sequences of 3 dims, not {x}")
        first, second, width = x.shape or (None, None, None)
        steps, batch = (second, first) if layout else (first, second)
        hidden: Dim = hidden_size
        if r.shape is not None and len(r.shape) == 3 and r.shape[2] is not None:
            hidden = r.shape[2]
            if hidden_size is not None and isinstance(hidden, int) and hidden != hidden_size:
                raise InferenceError(f"hidden_size is {hidden_size}, and R is {r}")
        total = dim_product(cell.gates, hidden)
        _check("W", w, (directions, total, width))
        _check("R", r, (directions, total, hidden))
        _check("B", b, (directions, dim_product(2, total)))
        _check("sequence_lens", sequence_lens, (batch,))
        last = (batch, directions, hidden) if layout else (directions, batch, hidden)
        for state in (initial_h, initial_c):
            _check("an initial state", state, last)
        _check("P", p, (directions, dim_product(3, hidden)))
        whole = (batch, steps, directions, hidden) if layout else (steps, directions, batch, hidden)
        return x.with_shape(whole), *(x.with_shape(last) for _ in range(cell.states))

    entry = register(Declaration(cell.operator or cell.name, "recurrent", infer))
    entry.inputs = entry.inputs[: cell.inputs]
    if cell.own:
        entry.add_attributes(**{cell.own: (0, Flag)})

    @entry.form
    def form(inputs: Sequence[Any], outputs: Sequence[Known], **attributes: Any) -> Recurrence:
        x, r, layout = inputs[0], inputs[2], bool(attributes["layout"])
        reverse = _DIRECTIONS[attributes["direction"]]
        first, second, width = x.shape
        steps, batch = (second, first) if layout else (first, second)
        names = cell.activations(attributes["activations"], len(reverse))
        scales = (attributes["activation_alpha"] or (), attributes["activation_beta"] or ())
        chains = _chains(names, *scales, attributes["clip"], len(reverse))
        own = {cell.own: bool(attributes[cell.own])} if cell.own else {}
        sizes = (cell.gates, steps, batch, width, r.shape[2])
        return Recurrence(cell.name, *sizes, reverse, chains, layout, **own, rounds_state=cell.rounds_state)

    return entry


RNN = _recurrent(_Cell("RNN", 1, ("tanh",)))
GRU = _recurrent(_Cell("GRU", 3, ("sigmoid", "tanh"), own="linear_before_reset"))
LSTM = _recurrent(_Cell("LSTM", 4, ("sigmoid", "tanh", "tanh"), states=2, inputs=8, own="input_forget"))
# of bytes, in floats: adapters write it
QuantizedLSTM = _recurrent(
    _Cell("LSTM", 4, ("sigmoid", "tanh", "tanh"), 2, 8, "input_forget", operator="QuantizedLSTM", rounds_state=True)
)
