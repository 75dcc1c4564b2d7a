"""Checks of a model that a file describes. An importer makes them node by node."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.errors import ModelError
from perframe.ir import Layer, Model, epilogue
from perframe.ir.declaration import Declaration, find_declaration
from perframe.ir.epilogue import Stage


def check(model: Model) -> None:
    """Raise ModelError unless each value is made once and before it is read, and each layer fits its inputs."""
    if not all(value.name for value in model.inputs):
        raise ModelError(f"{model.name}: an input has no name")
    if "" in model.constants:
        raise ModelError(f"{model.name}: a constant has no name")
    model.verify()
    for layer in model.layers:
        for body in layer.inner_models.values():
            check(body)
        _check_form(layer)
    model.infer()
    for value in model.outputs:
        made = value.spec
        fits = value.shape is None or made.shape is None or value.shape.may_be(made.shape)
        if (value.dtype, value.kind) != (made.dtype, made.kind) or not fits:
            raise ModelError(f"{model.name}: the output {value} would be {made}")


def _check_form(layer: Layer) -> None:
    where = f"layer {layer.name!r} ({layer.op})"
    if layer.epilogue and (layer.family not in epilogue.FAMILIES or layer.outputs[1:]):
        raise ModelError(f"{where} has an epilogue, and its kernels apply none")
    if layer.channels_last and not layer.declaration.spatial:
        raise ModelError(f"{where} has its channels last, and its kernels want them second")
    _check_stages(layer.epilogue, where)


def _takes(entry: Declaration, stage: Stage) -> bool:
    """Whether the formula that a stage chooses takes its operands. Optional ones may be absent, as a limit of Clip."""
    try:
        formula = stage.formula
    except (LookupError, TypeError, ValueError):  # no formula takes this number of operands
        return False
    count = len(stage.operands)
    is_known = entry.required <= count <= len(entry.inputs) or entry.variadic
    return formula is not None and is_known and formula.__code__.co_argcount == count


def _check_stages(stages: Sequence[Stage], where: str) -> None:
    for stage in stages:
        entry = find_declaration(stage.op)
        if entry is not None:
            entry.with_defaults(dict(stage.attributes))
        if entry is None or entry.family != "elementwise" or not _takes(entry, stage):
            raise ModelError(f"{where}: {stage.op!r:.200} with {len(stage.operands)} operands cannot be in an epilogue")
        for operand in stage.operands:
            if isinstance(operand, tuple):
                _check_stages(operand, where)
            elif operand is not None and type(operand) not in (int, float):
                raise ModelError(f"{where}: an operand of {stage.op} in its epilogue is {operand!r:.200}")
