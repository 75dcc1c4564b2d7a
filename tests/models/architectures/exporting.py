"""Exports architectures: each in a process of its own, so that one that fails or hangs does not stop the others.

`python -m models.architectures.exporting FOLDER [NAME...]` writes FOLDER/NAME.onnx. A file that exists is left alone.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import torch

from models.architectures import ARCHITECTURES
from models.architectures.architecture import Architecture

LIMIT_SECONDS = 300
OPSET = 18


def export(architecture: Architecture, file: Path) -> None:
    """Write one architecture; a file that is only half written has another name."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")  # about values that become constants, and about the former exporter
    module, example, names = architecture.module(), architecture.example(), list(architecture.inputs())
    part = file.with_suffix(".part")
    if architecture.exporter == "dynamo":
        shapes = tuple(architecture.dims.get(name) for name in names)
        torch.onnx.export(
            module,
            example,
            part,
            dynamo=True,
            verbose=False,
            external_data=False,
            input_names=names,
            dynamic_shapes=(shapes,) if architecture.dims else None,
        )
    else:
        torch.onnx.export(
            module,
            example,
            part,
            dynamo=False,
            opset_version=OPSET,
            input_names=names,
            dynamic_axes=architecture.dims,
        )
    part.replace(file)


def export_apart(name: str, folder: Path) -> str:
    """Export one architecture in another process; returns what went wrong, or nothing."""
    command = [sys.executable, "-m", __spec__.name, str(folder), name, "--here"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}  # configs alone: nothing is fetched
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return f"took more than {LIMIT_SECONDS} s"
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else lines[-1] if lines else f"exit status {done.returncode}"


def main() -> None:
    """Export what is missing, and say what failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--here", action="store_true", help="export in this process")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    chosen = options.names or list(ARCHITECTURES)
    if options.here:
        for name in chosen:
            export(ARCHITECTURES[name], options.folder / f"{name}.onnx")
        return
    missing = [name for name in chosen if not (options.folder / f"{name}.onnx").exists()]
    failed = {}
    for index, name in enumerate(missing):
        start = time.monotonic()
        error = export_apart(name, options.folder)
        print(f"{index + 1}/{len(missing)} {name}: {error or 'exported'}, {time.monotonic() - start:.0f} s", flush=True)
        if error:
            failed[name] = error
    sys.exit(f"{len(failed)} of {len(missing)} failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
