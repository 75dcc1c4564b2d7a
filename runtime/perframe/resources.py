"""Paths of shaders, demos and assets, and of the user's cache folder.

The files lie inside the package in a wheel, and at the top of a checkout.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_ROOTS = (_PACKAGE, _PACKAGE.parents[1])


def resource(*parts: str, package: str = "") -> Path:
    """The path of a shipped file, e.g. `resource("shaders", "pool.glsl")`. Raises FileNotFoundError.

    `package` names the package of a layer from outside: its files lie inside it.
    """
    for root in _roots(package) if package else _ROOTS:
        path = root.joinpath(*parts)
        if path.exists():
            return path
    where = f"the package {package}" if package else f"this installation of perframe ({_PACKAGE})"
    raise FileNotFoundError(f"{'/'.join(parts)} is not shipped with {where}")


def cache_folder() -> Path:
    """Return the folder for what can be made again: PERFRAME_CACHE, or the user's cache folder."""
    base = os.environ.get("PERFRAME_CACHE")
    if base:
        return Path(base)
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches" / "perframe"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or _home()) / "perframe" / "cache"
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else _home() / ".cache") / "perframe"  # as XDG's specification says


def _home() -> Path:
    """The user's folder, or one among the temporary files for a user without a folder, as in some containers."""
    try:
        return Path.home()
    except RuntimeError:
        import tempfile  # late: it takes as long to import as all of this package

        return Path(tempfile.gettempdir()) / f"perframe-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _roots(package: str) -> list[Path]:
    try:
        found = find_spec(package)
    except (ImportError, ValueError):  # ValueError for __main__, which has no spec
        found = None
    return [Path(folder) for folder in (found and found.submodule_search_locations) or ()]
