"""The command `perframe models`."""

from __future__ import annotations

import json

import typer

from perframe.command_line.options import AsJson, console


def models(as_json: AsJson = False) -> None:
    """List the models that ship with perframe. Their names work wherever a model file does."""
    from perframe.command_line.models import shipped_models, show

    found = shipped_models()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        show(found, console())
