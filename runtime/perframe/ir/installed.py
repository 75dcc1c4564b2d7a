"""Modules that installed packages name as entry points, such as `perframe.layers = "my_package.layers"`."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.machinery import PathFinder

from perframe.errors import ModelError


@cache
def import_installed(group: str, what: str) -> None:
    """Import the modules of a group, once. Raises ModelError if one cannot be imported; `what` names their content."""
    if not _is_mentioned(group):
        return
    from importlib import metadata  # imported late: it takes as long as loading a small model

    for entry in metadata.entry_points(group=group):
        try:
            entry.load()
        except Exception as error:
            raise ModelError(
                f"the {what} of an installed package cannot be imported from {entry.value}: {error}"
            ) from error


def _is_mentioned(group: str) -> bool:
    """Whether an installed package may have entry points of a group: by the texts, or where they cannot be read."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    for folder in sys.path:
        try:
            found = os.listdir(folder or os.curdir)
        except FileNotFoundError:
            continue
        except OSError:  # an archive
            return True
        for name in found:
            if name.lower().endswith("-info"):  # .dist-info, .egg-info, or EGG-INFO
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        if group.encode() in file.read():
                            return True
                except (FileNotFoundError, NotADirectoryError):
                    continue
    return False
