"""Dilated convolutions: TensorFlow writes one as a convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from perframe.importers.litert.file import GraphInfo, Operation

Value = Callable[[int], NDArray[Any] | None]  # the value of a constant tensor


def with_dilations(graph: GraphInfo, value: Value) -> list[Operation]:
    """Return the operations, with one convolution instead of three. Its option `Pads` has its padding."""
    users: dict[int, list[int]] = {}
    for number, operation in enumerate(graph.operations):
        for tensor in operation.inputs:
            users.setdefault(tensor, []).append(number)
    found: dict[int, Operation | None] = {}
    for number, operation in enumerate(graph.operations):
        if operation.code != "SPACE_TO_BATCH_ND":
            continue
        path = [number]
        for code in (("CONV_2D", "DEPTHWISE_CONV_2D"), ("BATCH_TO_SPACE_ND",)):
            outputs = graph.operations[path[-1]].outputs
            readers = users.get(outputs[0], []) if len(outputs) == 1 and outputs[0] not in graph.outputs else []
            if len(readers) != 1 or graph.operations[readers[0]].code not in code:
                break
            path.append(readers[0])
        if len(path) == 3 and len(set(path)) == 3:
            before, conv, after = (graph.operations[at] for at in path)
            made = _joined(before, conv, after, value)
            if made is not None:
                found |= {path[0]: None, path[1]: None, path[2]: made}
    return [made for number, one in enumerate(graph.operations) if (made := found.get(number, one)) is not None]


def _joined(before: Operation, conv: Operation, after: Operation, value: Value) -> Operation | None:
    """Return the dilated convolution, or None if the three are not one."""
    if len(before.inputs) != 3 or len(after.inputs) != 3 or conv.inputs[0] != before.outputs[0]:
        return None
    blocks, pads, others, crops = (value(i) for i in (*before.inputs[1:], *after.inputs[1:]))
    if blocks is None or pads is None or others is None or crops is None or after.inputs[0] != conv.outputs[0]:
        return None
    if blocks.shape != (2,) or pads.shape != (2, 2) or crops.shape != (2, 2) or (blocks != others).any():
        return None
    options = conv.options
    plain = all(options.get(name, 1) == 1 for name in ("StrideH", "StrideW", "DilationHFactor", "DilationWFactor"))
    left = pads - crops
    if not plain or options.get("Padding") != 1 or (left < 0).any():
        return None
    changed: dict[str, Any] = {"DilationHFactor": int(blocks[0]), "DilationWFactor": int(blocks[1])}
    inputs = (before.inputs[0], *conv.inputs[1:])
    changed["Pads"] = tuple(int(pad) for pad in left.T.reshape(-1))
    return replace(conv, inputs=inputs, outputs=after.outputs, options={**options, **changed})
