"""Checks of attributes that no layer declares, because adapters or the standard's bodies replace their nodes.

The declaration of a layer checks the layer's own attributes, by the same annotations (see ir/attributes.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from perframe.ir.attributes import Between, Flag, Kind, Natural, Positive, kind_of
from perframe.ir.declaration import full_name

_Cap = Annotated[float, Between(0, math.inf)]
_Reduction = Literal["none", "mean", "sum"]
_BROADCAST = {"axis": Natural, "broadcast": Flag}  # before opset 7
_LOSS = {"reduction": _Reduction}
_ATTENTION = {"num_heads": Positive, "kv_num_heads": Positive, "unidirectional": Flag, "do_rotary": Flag}
_TURNS = {"num_heads": Natural, "rotary_embedding_dim": Natural, "interleaved": Flag}
_PRODUCT = {"transA": Flag, "transB": Flag, "transBatchA": Flag, "transBatchB": Flag}

COMPOSITES: dict[str, dict[str, Any]] = {
    "Attention": {
        "is_causal": Flag,
        "kv_num_heads": Positive,
        "left_window_size": Annotated[int, Between(-1)],
        "q_num_heads": Positive,
        "qk_matmul_output_mode": Literal[0, 1, 2, 3],
        "right_window_size": Annotated[int, Between(-1)],
        "softcap": _Cap,
        "softmax_precision": Literal[1, 10, 11, 16],
    },
    "BatchNormalization": {"is_test": Flag, "spatial": Flag, "training_mode": Flag},
    "CausalConvWithState": {"activation": Literal["none", "silu", "swish"]},
    "Dropout": {"is_test": Flag},
    "Gemm": {"broadcast": Flag},
    "GlobalLpPool": {"p": Positive},
    "GroupNormalization": {"num_groups": Positive},
    "LpNormalization": {"p": Literal[1, 2]},
    "NegativeLogLikelihoodLoss": _LOSS,
    "RotaryEmbedding": _TURNS,
    "SoftmaxCrossEntropyLoss": _LOSS,
    **dict.fromkeys(("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"), _BROADCAST),
    "com.microsoft::Attention": _ATTENTION,
    "com.microsoft::FusedMatMul": _PRODUCT,
    "com.microsoft::GroupNorm": {"activation": Flag, "channels_last": Flag, "groups": Positive},
    "com.microsoft::GroupQueryAttention": {**_ATTENTION, "rotary_interleaved": Flag, "softcap": _Cap},
    "com.microsoft::MatMulNBits": {"N": Positive, "K": Positive, "block_size": Positive},
    "com.microsoft::MultiHeadAttention": _ATTENTION,
    "com.microsoft::QLinearAveragePool": {"channels_last": Flag},
    "com.microsoft::QLinearConv": {"channels_last": Flag},
    "com.microsoft::QLinearGlobalAveragePool": {"channels_last": Flag},
    "com.microsoft::RotaryEmbedding": _TURNS,
    "com.microsoft::SkipGroupNorm": {"activation": Flag, "channels_last": Flag, "groups": Positive},
    "com.microsoft::TransposeMatMul": _PRODUCT,
}


@cache
def _kinds(key: str) -> Mapping[str, Kind]:
    return {name: kind_of(annotation) for name, annotation in COMPOSITES.get(key, {}).items()}


def odd_attribute(op: str, domain: str, attributes: Mapping[str, Any]) -> str:
    """Return a sentence about the first attribute of a node with a value that is not allowed; "" if there is none."""
    for name, kind in _kinds(full_name(op, domain)).items():
        if name in attributes and not kind.accepts(attributes[name]):
            return f"its attribute {name} is {kind.one}, not {attributes[name]!r:.200}"
    return ""
