"""Tree ensembles on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.protocol import LayerLike
from perframe.errors import InputError

Array = NDArray[Any]


# the comparison of a node's feature with its split, by ONNX's number of the mode
_COMPARE: dict[int, Callable[[Any, Any], Any]] = {
    0: lambda value, split: value <= split,
    1: lambda value, split: value < split,
    2: lambda value, split: value >= split,
    3: lambda value, split: value > split,
    4: lambda value, split: value == split,
    5: lambda value, split: value != split,
}
_MEMBER = 6


def _memberships(attributes: dict[str, Any]) -> list[Array]:
    """The sets of the nodes that test for membership, in the order of these nodes. NaN separates the sets."""
    values = attributes["membership_values"]
    if values is None:
        return []
    ends = np.flatnonzero(np.isnan(values))
    return [part[~np.isnan(part)] for part in np.split(values, ends)]


def _trees(attributes: dict[str, Any], x: Array) -> Any:
    """The sum, average, smallest or largest of the leaves that each row reaches in the trees."""
    modes, splits = np.asarray(attributes["nodes_modes"]), np.asarray(attributes["nodes_splits"])
    sets = _memberships(attributes)
    member = {int(node): sets[k] for k, node in enumerate(np.flatnonzero(modes == _MEMBER))}
    weights, targets = np.asarray(attributes["leaf_weights"]), attributes["leaf_targetids"]
    tracks = attributes["nodes_missing_value_tracks_true"]
    found: list[list[list[Any]]] = [[[] for _ in range(attributes["n_targets"])] for _ in x]
    for row, reached in zip(x, found, strict=True):
        for root in attributes["tree_roots"]:
            node, leaf = root, False
            for _ in modes:  # a path with more steps than the trees have nodes goes in circles
                value = row[attributes["nodes_featureids"][node]]
                if np.isnan(value) and tracks:
                    yes = bool(tracks[node])
                elif int(modes[node]) == _MEMBER:
                    yes = bool((member[node] == value).any())
                else:
                    yes = bool(_COMPARE[int(modes[node])](value, splits[node]))
                side = "true" if yes else "false"
                leaf = bool(attributes[f"nodes_{side}leafs"][node])
                node = attributes[f"nodes_{side}nodeids"][node]
                if leaf:
                    break
            if not leaf:
                raise InputError(f"the tree with the root {root} has a path that does not end")
            reached[targets[node]].append(weights[node])
    join = (_mean_over(len(attributes["tree_roots"])), sum, min, max)[attributes["aggregate_function"]]
    scores = np.array([[join(leaves) if leaves else 0.0 for leaves in row] for row in found], x.dtype)
    return _POST[attributes["post_transform"]](scores)


def _mean_over(trees: int) -> Callable[[list[Any]], Any]:
    return lambda leaves: sum(leaves) / trees


def _softmax(scores: Array) -> Any:
    shifted = np.exp(scores - scores.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def _softmax_of_nonzero(scores: Array) -> Any:
    shifted = np.where(scores != 0, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    return shifted / shifted.sum(-1, keepdims=True)


def _probit(scores: Array) -> Any:
    """Winitzki's inverse of the error function (2008)."""
    x = 2 * scores - 1
    logarithm = np.log(1 - x * x)
    a = 2 / (np.pi * 0.147) + logarithm / 2
    return np.sqrt(2) * np.sign(x) * np.sqrt(np.sqrt(a * a - logarithm / 0.147) - a)


_POST: dict[int, Callable[[Array], Any]] = {
    0: lambda scores: scores,
    1: _softmax,
    2: lambda scores: 1 / (1 + np.exp(-scores)),
    3: _softmax_of_nonzero,
    4: _probit,
}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Any) -> list[Any]:
    """Compute row by row and tree by tree."""
    return [_trees(layer.declaration.with_defaults(layer.attributes), inputs[0])]
