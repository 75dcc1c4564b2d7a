"""Where each layer of a model runs on each backend, without running it."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.backends import unsupported_on_gl
from perframe.backends.operand import Operand
from perframe.errors import PerframeError
from perframe.ir import Layer
from perframe.ir.sizes.partial import PartialTensor
from perframe.passes.work import Specs, spec_in
from perframe.tensor import BackendType

HOST = "on the host: "
CPU, GPUS = str(BackendType.CPU), (str(BackendType.GPU_COMPUTE), str(BackendType.GPU_PIXEL))


def placements(layer: Layer, specs: Specs | None) -> dict[str, str]:
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


def _reason(layer: Layer, specs: Specs | None) -> str:
    inputs = [None if value is None else _operand(value.name, spec_in(specs, value)) for value in layer.inputs]
    outputs = [_operand(value.name, spec_in(specs, value)) for value in layer.results]
    known: Sequence[Operand | None] = [x for x, value in zip(inputs, layer.inputs, strict=True) if value is not None]
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
