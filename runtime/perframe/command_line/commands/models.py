"""`perframe models`: the shipped models, with their sizes, inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.command_line.options import AsJson
from perframe.command_line.terminal import console, say_json


def models(as_json: AsJson = False) -> None:
    """List the models that ship with perframe. Their names work wherever a model file does."""
    found = shipped_models()
    if as_json:
        say_json(found)
    else:
        show(found, console())


def shipped_models() -> list[dict[str, Any]]:
    """Facts about each shipped model, for JSON."""
    from perframe.importers.loading import load
    from perframe.importers.shipped import LICENSE, MODELS

    found = []
    for shipped in MODELS.values():
        model = load(shipped.path, optimize=False)
        found.append(
            {
                "name": shipped.name,
                "purpose": shipped.purpose,
                "values": shipped.values,
                "bytes": shipped.path.stat().st_size,
                "license": LICENSE,
                "inputs": {value.name: f"{value.dtype} {value.shape}" for value in model.inputs},
                "outputs": {value.name: f"{value.dtype} {value.shape}" for value in model.outputs},
                "path": str(shipped.path),
            }
        )
    return found


def show(models: Sequence[dict[str, Any]], console: Any) -> None:
    """Print the models, a paragraph each."""
    for model in models:
        size = f"{model['bytes'] / 1024:.0f} KiB, {model['license']}"
        console.print(f"{model['name']}: {model['purpose']} ({size})", highlight=False, soft_wrap=True)
        values = f", {model['values']}" if model["values"] else ""
        for kind in ("inputs", "outputs"):
            for name, what in model[kind].items():
                console.print(f"  {kind[:-1]:<6} {name}: {what}{values}", highlight=False, soft_wrap=True)
                values = ""  # they are those of the first input
    console.print('\nUse a name instead of a file: pf.load("painter"), perframe inspect painter', soft_wrap=True)
