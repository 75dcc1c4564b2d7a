"""A random graph: a number gives its nodes, its inputs at several sizes, and what the graph says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from fuzz.random_graphs.drawing import Drawing, Refused, model_of
from fuzz.random_graphs.families import FAMILIES, casts, chain, comparison, whole_numbers
from fuzz.random_graphs.moves import MOVES
from fuzz.random_graphs.patterns import PATTERNS, folded, function, guarded, merged_numbers, spelled_norm
from fuzz.random_graphs.reference import run_plainly

OPSETS = (13, 17, 18, 18, 20, 21)
SPECIAL = 0.12  # the share of graphs whose values may be special
MANY_FORMULAS = (function, guarded, folded, merged_numbers, spelled_norm, chain, casts, comparison, whole_numbers)
OPEN = 0.5  # the share of graphs with open dims


@dataclass
class RandomGraph:
    """A model, and feeds that onnxruntime takes. `blocks` names what it was made of."""

    name: str
    model: onnx.ModelProto
    feeds: list[dict[str, Any]]
    blocks: list[str]
    special: bool = False


def random_graph(campaign: int, number: int, few: bool = False) -> RandomGraph:
    """The graph of this number. With `few` most graphs are made of few formulas."""
    for attempt in range(100):
        rng = np.random.default_rng([campaign, number, attempt])
        g = Drawing(rng, opset=int(rng.choice(OPSETS)), special=bool(rng.random() < SPECIAL))
        g.few = few and g.chance(0.98)
        made = _drawn(g, f"{campaign}-{number}")
        if made is not None:
            return made
    raise RuntimeError(f"graph {campaign}-{number} cannot be drawn")


def _drawn(g: Drawing, name: str) -> RandomGraph | None:
    g.input(g.normal(*g.dims(g.one(1, 2, 3, 4, 4, 4))))
    wanted, tries = g.one(1, 1, 2, 2, 3, 4, 6), 0
    while len(g.blocks) < wanted and tries < 30:
        tries += 1
        block = g.one(*g.one(FAMILIES, MOVES, PATTERNS, PATTERNS))
        if not (g.few and block in MANY_FORMULAS and g.chance(0.95)):
            g.block(block)
    if not g.blocks:
        return None
    outputs = _outputs(g)
    used = _used(g, outputs)
    constants = {key: value for key, value in g.constants.items() if key in used}
    inputs = {key: value for key, value in g.inputs.items() if key in used}
    if not inputs:
        return None
    defaults = [key for key in constants if g.chance(0.3)] if g.chance(0.06) else []
    dims = _open_dims(g, inputs) if g.chance(OPEN) else {}
    kinds = {key: g.values[key] for key in outputs}
    nodes, constants = _constant_nodes(g, constants, defaults)
    try:
        model = model_of(nodes, inputs, outputs, constants, g.opset, dims, defaults, kinds)
        onnx.checker.check_model(model, full_check=True)
        run_plainly(model, inputs)
    except Exception:
        return None
    feeds = [dict(inputs)]
    for grown in (1, 2) if dims else ():
        feed = {key: _resized(g, array, dims.get(key), grown) for key, array in inputs.items()}
        try:
            run_plainly(model, feed)
        except Exception:  # the graph holds other sizes fixed
            continue
        feeds.append(feed)
    return RandomGraph(name, model, feeds, g.blocks, g.special)


def _outputs(g: Drawing) -> list[str]:
    """The names of the outputs: what no node reads, and some of the rest."""
    made = [name for node in g.nodes for name in node.output if name]
    leaves = [name for name in made if name not in g.read]
    kept = [name for name in leaves if g.chance(0.93)] or leaves[-1:] or made[-1:]
    kept += [name for name in made if name not in kept and g.chance(0.08)]
    if g.chance(0.03):  # a constant or an input as an output
        source = g.one(*g.inputs, *g.constants)
        target = g.name("v")
        g.nodes.append(helper.make_node("Identity", [source], [target], g.name("n")))
        try:
            g.evaluate(g.nodes[-1:])
            kept.append(target)
        except Refused:
            del g.nodes[-1]
    order = [kept[int(i)] for i in g.rng.permutation(len(kept))]
    return order


def _used(g: Drawing, outputs: list[str]) -> set[str]:
    from fuzz.random_graphs.drawing import names_read

    return {*names_read(g.nodes), *outputs}


def _constant_nodes(g: Drawing, constants: dict[str, Any], defaults: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The nodes with some constants as nodes of their own."""
    if not g.chance(0.15):
        return list(g.nodes), constants
    moved = [key for key in constants if key not in defaults and g.chance(0.6)]
    made = [
        helper.make_node("Constant", [], [key], g.name("n"), value=onnx.numpy_helper.from_array(constants[key], key))
        for key in moved
    ]
    return [*made, *g.nodes], {key: value for key, value in constants.items() if key not in moved}


def _open_dims(g: Drawing, inputs: dict[str, Any]) -> dict[str, list[Any]]:
    """Names for some dims of inputs. Dims of one size share a name, or have no name at all."""
    names: dict[int, str] = {}
    found: dict[str, list[Any]] = {}
    for key, array in inputs.items():
        dims: list[Any] = []
        for size in array.shape:
            if not g.chance(0.5):
                dims.append(size)
                continue
            if size not in names or g.chance(0.3):
                names[size] = g.name("d")
            dims.append(names[size] if g.chance(0.9) else None)
        found[key] = dims
    return found


def _resized(g: Drawing, array: Any, dims: list[Any] | None, grown: int) -> Any:
    if dims is None:
        return array
    shape = [size if isinstance(dim, int) else size + grown for size, dim in zip(array.shape, dims, strict=True)]
    if tuple(shape) == array.shape or not array.size:
        return array
    return np.resize(array, shape)
