"""Where each layer of a model runs on each backend, without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perframe.backends import unsupported_on_gl
from perframe.backends.operand import Operand
from perframe.errors import PerframeError
from perframe.model import Layer
from perframe.sizes.partial import PartialTensor
from perframe.tensor import BackendType

HOST = "on the host: "
CPU, GPUS = str(BackendType.CPU), (str(BackendType.GPU_COMPUTE), str(BackendType.GPU_PIXEL))


def placements(layer: Layer, specs: Mapping[str, PartialTensor]) -> dict[str, str]:
    """For each backend the reason why the layer runs elsewhere; "" if it runs there.

    A reason that begins with HOST does not count as a fallback: on every backend the layer belongs on the host.
    """
    if layer.on_host:
        return {CPU: "", **dict.fromkeys(GPUS, f"{HOST}shape arithmetic")}
    if layer.declaration.alias:
        return {CPU: "", **dict.fromkeys(GPUS, "")}  # the same data: there is nothing to run
    if layer.family == "control":
        return {CPU: "", **dict.fromkeys(GPUS, f"{HOST}it chooses or repeats layers, which run on the backend")}
    if layer.declaration.on_host:
        return {CPU: "", **dict.fromkeys(GPUS, f"{HOST}the shape of its output depends on values")}
    return {CPU: "", **dict.fromkeys(GPUS, _reason(layer, specs))}


def _reason(layer: Layer, specs: Mapping[str, PartialTensor]) -> str:
    inputs = [_operand(name, specs[name]) if name else None for name in layer.inputs]
    outputs = [_operand(name, specs[name]) for name in layer.outputs if name]
    known: Sequence[Operand | None] = [value for value, name in zip(inputs, layer.inputs, strict=True) if name]
    if None in known or None in outputs:
        return "?"  # a shape is not known before the run
    try:
        return unsupported_on_gl(layer, inputs, [value for value in outputs if value is not None]) or ""
    except PerframeError as error:
        return str(error)


def _operand(name: str, spec: PartialTensor) -> Operand | None:
    if spec.shape is None or not spec.shape.is_static:
        return None
    return Operand(name, spec.shape.to_shape(), spec.dtype, spec.value)
