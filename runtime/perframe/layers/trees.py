"""Tree ensembles, of ai.onnx.ml; they run on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from perframe.errors import InferenceError
from perframe.ir.attributes import Between, Flag, Positive
from perframe.ir.declaration import layer
from perframe.ir.sizes.partial import PartialTensor

Table = Any  # an array
_MOST_MODES = 6


@layer()
def TreeEnsemble(
    x: PartialTensor,
    *,
    aggregate_function: Annotated[int, Between(0, 3)] = 1,
    leaf_targetids: Sequence[int],
    leaf_weights: Table,
    membership_values: Table = None,
    n_targets: Positive,
    nodes_falseleafs: Sequence[Flag],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Table = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    nodes_modes: Table,
    nodes_splits: Table,
    nodes_trueleafs: Sequence[Flag],
    nodes_truenodeids: Sequence[int],
    post_transform: Annotated[int, Between(0, 4)] = 0,
    tree_roots: Sequence[int],
) -> PartialTensor:
    """Return rows of targets for rows of features."""
    if x.shape is not None and len(x.shape) != 2:
        raise InferenceError(f"trees take rows of features, not {x}")
    nodes, leaves = len(nodes_modes), len(leaf_weights)
    whole = {
        "nodes_featureids": nodes_featureids,
        "nodes_splits": nodes_splits,
        "nodes_trueleafs": nodes_trueleafs,
        "nodes_falseleafs": nodes_falseleafs,
        "nodes_truenodeids": nodes_truenodeids,
        "nodes_falsenodeids": nodes_falsenodeids,
        "nodes_missing_value_tracks_true": nodes_missing_value_tracks_true or nodes_modes,
        "leaf_targetids": leaf_targetids,
    }
    for name, values in whole.items():
        wanted = leaves if name == "leaf_targetids" else nodes
        if len(values) != wanted:
            raise InferenceError(f"{name} has {len(values)} entries, and {wanted} are expected")
    features = x.shape[1] if x.shape is not None and isinstance(x.shape[1], int) else None
    _within("nodes_modes", nodes_modes, _MOST_MODES + 1)
    _within("nodes_featureids", nodes_featureids, features)
    _within("leaf_targetids", leaf_targetids, n_targets)
    _within("tree_roots", tree_roots, nodes)
    for side, ends in {"true": nodes_trueleafs, "false": nodes_falseleafs}.items():
        children, is_leaf = np.asarray(whole[f"nodes_{side}nodeids"]), np.asarray(ends) != 0
        _within(f"nodes_{side}nodeids", children[is_leaf], leaves)
        _within(f"nodes_{side}nodeids", children[~is_leaf], nodes)
    return x.with_shape((None if x.shape is None else x.shape[0], n_targets))


def _within(name: str, values: Any, count: int | None) -> None:
    """Raise InferenceError if a table has a number below 0, or of `count` or more. A count of None is unknown."""
    found = np.asarray(values)
    if found.size and (found.min() < 0 or (count is not None and found.max() >= count)):
        allowed = "none may be negative" if count is None else f"there are {count} to choose from"
        raise InferenceError(f"{name} has numbers from {found.min()} to {found.max()}, and {allowed}")
