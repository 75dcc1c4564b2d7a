"""The command `perframe save`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perframe.command_line.options import KeptDims, KeyFile, ModelName, PassphraseEnv, Seed
from perframe.command_line.terminal import say
from perframe.safety.wording import counted


def save(
    model: ModelName,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Output file: m.perframe, m.onnx, m.sentis or m.glsl.")],
    key_file: KeyFile = None,
    passphrase_env: PassphraseEnv = None,
    no_optimize: Annotated[bool, typer.Option("--no-optimize", help="Save without optimization.")] = False,
    seed: Seed = 0,
    dims: KeptDims = "",
) -> None:
    """Save an optimized model to another file, encrypted if a key is given.

    A model that is itself encrypted is read with the key that PERFRAME_KEY_FILE or PERFRAME_PASSPHRASE_ENV names.
    """
    import perframe as pf
    from perframe.command_line.options import read_key
    from perframe.command_line.sources import loaded_model, parse_dims
    from perframe.exporters.saving import check_name

    check_name(out.name)
    key = read_key(key_file, passphrase_env)
    loaded = loaded_model(model, seed, not no_optimize, parse_dims(dims))
    pf.save(loaded, out, key)
    say(f"{out}: {out.stat().st_size:,} bytes, {counted(len(loaded.layers), 'layer')}{', encrypted' if key else ''}")
