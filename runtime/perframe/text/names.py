"""Names of inputs and outputs that exporters give language models: those of optimum, onnxruntime-genai and PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perframe.errors import InputError
from perframe.ir import Model, Value
from perframe.tensor import Array

IDS = ("input_ids", "decoder_input_ids", "tokens")
MASKS = ("attention_mask", "decoder_attention_mask")
LENGTH = -2  # the axis of a cache that counts tokens
POSITIONS = ("position_ids", "decoder_position_ids", "cache_position")
_NEW = ("present_key_values", "present", "new")  # how names of outputs begin, and those of the inputs that take them
_OLD = ("past_key_values", "past", "old")


@dataclass(frozen=True)
class DecoderNames:
    """The names of a decoder's tokens, attention mask and positions ("" if it has none), and of its logits.

    `carry` maps outputs to the inputs that they become, and `others` lists the inputs that a caller must give.
    """

    ids: str
    mask: str
    positions: str
    logits: str
    carry: dict[str, str]
    others: list[str]


def names_of(model: Model) -> DecoderNames:
    """Find the roles of a decoder's inputs and outputs. Raises InputError for another model."""
    inputs = {value.name: value for value in model.inputs}
    ids, mask, positions = (next((name for name in names if name in inputs), "") for names in (IDS, MASKS, POSITIONS))
    if not ids:
        listed = ", ".join(map(str, model.inputs))
        raise InputError(
            f"{model.name} is not a language model: none of its inputs is {' or '.join(IDS)}, but {listed}"
        )
    carry = carry_of(model)
    rest = [value for value in model.outputs if value.name not in carry]
    logits = next((value.name for value in rest if value.name == "logits"), rest[0].name if rest else "")
    if not logits:
        raise InputError(f"{model.name} has no output with scores of tokens")
    known = {ids, mask, positions, *carry.values()}
    return DecoderNames(ids, mask, positions, logits, carry, [name for name in inputs if name not in known])


def carry_of(model: Model) -> dict[str, str]:
    """Return the outputs of a decoder that its next run reads, and the inputs that read them."""
    inputs = {value.name for value in model.inputs}
    found = {value.name: _source(value, inputs) for value in model.outputs}
    return {output: source for output, source in found.items() if source}


def empty_caches(model: Model, names: DecoderNames) -> dict[str, Array]:
    """Return empty caches for one text, for the inputs whose number of cached tokens is open."""
    inputs, made = {value.name: value for value in model.inputs}, {value.name: value for value in model.outputs}
    found = {}
    for output, source in names.carry.items():
        given, shape = inputs[source], made[output].spec.shape
        if given.shape is None or shape is None or len(given.shape) != 4 or isinstance(given.shape[LENGTH], int):
            continue
        batch, (_, heads, _, size) = given.shape[0], shape
        if isinstance(heads, int) and isinstance(size, int) and (batch == 1 or not isinstance(batch, int)):
            found[source] = np.zeros((1, heads, 0, size), given.dtype.numpy)
    return found


def _source(output: Value, inputs: set[str]) -> str:
    for begin in _NEW:
        if output.name.startswith(begin):
            rest = output.name.removeprefix(begin)
            found = [old + rest for old in _OLD if old + rest in inputs]
            if found:
                return found[0]
    return ""
