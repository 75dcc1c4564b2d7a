"""Paths of shaders, demos and assets, and of the user's cache folder, and digests for the names of its files.

The files lie inside the package in a wheel, and at the top of a checkout.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

try:
    from _blake2 import blake2b  # hashlib has the same, and loads OpenSSL, which takes 4 ms of a start
except ImportError:  # another Python than CPython
    from hashlib import blake2b

log = logging.getLogger("perframe")

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


def digest_of(*parts: bytes | str) -> str:
    """A digest of the parts, one after the other, as 64 hexadecimal digits."""
    state = blake2b(digest_size=32)
    for part in parts:
        state.update(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part)
    return state.hexdigest()


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
    """The user's folder, or one that lasts as long as this process for a user without one, as in some containers."""
    try:
        return Path.home()
    except RuntimeError:
        return _folder_of_this_process()


@cache
def _folder_of_this_process() -> Path:
    """A folder among the temporary files whose name nobody can guess, and make before: what lies there is run."""
    import shutil  # late, as the next one: they take as long to import as all of this package
    import tempfile

    folder, own = tempfile.mkdtemp(prefix="perframe-"), os.getpid()

    def remove() -> None:
        if os.getpid() == own:  # and not in a process that was forked
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    log.warning("there is no home folder: caches last as long as the process. PERFRAME_CACHE names a folder for them")
    return Path(folder)


def _roots(package: str) -> list[Path]:
    try:
        found = find_spec(package)
    except (ImportError, ValueError):  # ValueError for __main__, which has no spec
        found = None
    return [Path(folder) for folder in (found and found.submodule_search_locations) or ()]
