"""An elementwise layer with constant scalars joins the epilogue of the layer before it."""

from __future__ import annotations

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.epilogue import FAMILIES, Stage, parameters
from perframe.ir.report import refuse
from perframe.passes.match import scalar, sole_producer
from perframe.tensor import DataType

MAX_STAGES = 4
MAX_NUMBERS = 16  # of a layer's own formula and its epilogue together; kernels take any number


def extended(target: Layer, *stages: Stage) -> tuple[Stage, ...] | None:
    """Return the layer's epilogue with more stages; None if it would be too long."""
    return with_stages(target, (*target.epilogue, *stages))


def with_stages(target: Layer, epilogue: tuple[Stage, ...]) -> tuple[Stage, ...] | None:
    """Return an epilogue for the layer; None if it is too long."""
    numbers = len(parameters(epilogue))
    if target.family == "elementwise":
        numbers += len(target.declaration.attributes)
    return epilogue if len(epilogue) <= MAX_STAGES and numbers <= MAX_NUMBERS else None


def stage_of(layer: Layer, source: Value) -> Stage | None:
    """Return the layer as a stage of an epilogue of `source`; None if it cannot be one."""
    data = source.spec
    if data.values is not None and data.value is None:  # declarations follow no shape arithmetic through an epilogue
        return None
    entry = layer.declaration
    specs = [value.spec for value in (*layer.operands, *layer.results)]
    if layer.family != "elementwise" or "result" in entry.attributes or "to" in entry.attributes or layer.epilogue:
        return None
    if (
        any(spec.dtype is not DataType.FLOAT32 for spec in specs)
        or None in layer.inputs
        or layer.inputs.count(source) != 1
    ):
        return None
    operands = [None if value is source else scalar(value.constant) for value in layer.operands]
    if sum(operand is None for operand in operands) != 1:
        return None
    if source.spec.shape != layer.output.spec.shape or source.spec.shape is None:
        return None
    return Stage(layer.op, tuple(sorted(layer.attributes.items())), tuple(operands))


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    fused = 0
    for layer in model.walk():
        for source in dict.fromkeys(layer.operands):
            target = sole_producer(source, *FAMILIES)
            if target is None or target.outputs[1:]:
                continue
            read = target.output if target.family == "quantized" else target.input(0)
            if read.spec.dtype is not DataType.FLOAT32:
                continue
            stage = stage_of(layer, source)
            epilogue = None if stage is None else extended(target, stage)
            if stage is not None and epilogue is None:
                refuse(layer, f"{target.name!r} has as many fused layers as a kernel takes")
            if epilogue is not None:
                target.epilogue = epilogue
                model.absorb(target, layer)
                fused += 1
                break
    return fused
