"""Blocks that a network repeats, by the layers' names, or as runs of layers with the same operators and attributes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from perframe.ir import Layer

LONGEST, SHORTEST = 24, 3  # layers of one repetition
COVERED = 0.3  # the share of layers that names must put into blocks
_INDEXED = re.compile(r"(.*?\D)[._]?(\d+)$")


@dataclass(frozen=True)
class Block:
    """One of several parts of a model that are alike: `length` layers from `first` on. `title` names it."""

    title: str
    first: int
    length: int


def repeated_blocks(layers: Sequence[Layer]) -> list[Block]:
    """The repetitions, in run order. Names decide if they are paths with indices, such as "encoder/layer.3/Add"; the
    order of operators decides otherwise.
    """
    return _by_names(layers) or _by_operators(layers)


def _by_names(layers: Sequence[Layer]) -> list[Block]:
    paths = [_path(layer.name) for layer in layers]
    found, at = list[Block](), 0
    while at < len(paths):
        end = at + 1
        while end < len(paths) and paths[end] == paths[at]:
            end += 1
        if paths[at] and end - at >= SHORTEST:
            found.append(Block(paths[at].strip("/"), at, end - at))
        at = end
    stems = Counter(_INDEXED.sub(r"\1", block.title) for block in found)
    kept = [block for block in found if stems[_INDEXED.sub(r"\1", block.title)] > 1]
    return kept if sum(block.length for block in kept) >= COVERED * len(layers) else []


def _path(name: str) -> str:
    """A name up to its first part with an index; "" if only the last part has one."""
    parts = name.split("/")
    at = next((at for at, part in enumerate(parts[:-1]) if _INDEXED.match(part) or part.isdigit()), None)
    return "" if at is None else "/".join(parts[: at + 1])


def _by_operators(layers: Sequence[Layer]) -> list[Block]:
    kinds: dict[Hashable, int] = {}
    tokens = [kinds.setdefault(_kind(layer), len(kinds)) for layer in layers]
    found, at = list[Block](), 0
    while at < len(tokens):
        length, count = _run(tokens, at)
        for index in range(count):
            found.append(Block(f"repetition {index + 1} of {count}", at + index * length, length))
        at += max(1, length * count)
    return found


def _kind(layer: Layer) -> Hashable:
    """What repetitions have in common: operators and the attributes that name no value or size."""
    kept = ("kernel_shape", "strides", "perm", "axis")
    attributes = tuple((name, str(layer.attributes[name])) for name in kept if name in layer.attributes)
    return layer.op, tuple(stage.op for stage in layer.epilogue), attributes, len(layer.inputs)


def _run(tokens: Sequence[int], at: int) -> tuple[int, int]:
    """The length and count of the shortest repetitions that begin here; (0, 0) if there are none."""
    for length in range(SHORTEST, min(LONGEST, (len(tokens) - at) // 2) + 1):
        pattern = tokens[at : at + length]
        if len(set(pattern)) < 2 or tokens[at + length] != pattern[0]:
            continue
        count = 1
        while tokens[at + count * length : at + (count + 1) * length] == pattern:
            count += 1
        if count > 1:
            return length, count
    return 0, 0
