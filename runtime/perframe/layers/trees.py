"""Tree ensembles, of ai.onnx.ml; they run on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.layers.base import layer
from perframe.spec import PartialTensor

Table = Any  # an array


@layer()
def TreeEnsemble(
    x: PartialTensor,
    *,
    aggregate_function: int = 1,
    leaf_targetids: Sequence[int],
    leaf_weights: Table,
    membership_values: Table = None,
    n_targets: int,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Table = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    nodes_modes: Table,
    nodes_splits: Table,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    post_transform: int = 0,
    tree_roots: Sequence[int],
) -> PartialTensor:
    return x.with_shape((None if x.shape is None else x.shape[0], n_targets))
