"""Kernels that come compiled in a wheel: one library for each system, with code for each level of processors.

A level is a size of vectors and the features of its code. A kernel's symbol has its level, and a hash of the sources
and the variant's text, so that no kernel of other sources is found. What the library lacks is compiled (see jit.py).
`tools/kernel_library.py` makes the library; a checkout has none.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import sys
from pathlib import Path

from perframe.backends.cpu.kernels.sizes import LANES, REGISTERS
from perframe.backends.cpu.processor import LEVELS, architecture, has
from perframe.resources import digest_of

log = logging.getLogger("perframe")

_SUFFIXES = {"win32": ".dll", "darwin": ".dylib"}


def file_name(system: str, machine: str) -> str:
    """The library's name for a system, as `sys.platform` names it, and an architecture."""
    return f"kernels-{system}-{machine}{_SUFFIXES.get(system, '.so')}"


def symbol(sources: str, name: str, text: str, lanes: int = LANES, registers: int = REGISTERS) -> str:
    """The name of a kernel in the library. `sources` is a hash of the kernels' sources."""
    digest = digest_of(f"{sources} {name} {text}")[:32]
    return f"kernel_{lanes}x{registers}_{digest}"


def address(sources: str, name: str, text: str) -> int | None:
    """The address of a kernel in the library, or None where it is not there."""
    library = _library()
    if library is None:
        return None
    try:
        function = library[symbol(sources, name, text)]
    except AttributeError:
        return None
    return ctypes.cast(function, ctypes.c_void_p).value


@functools.cache
def _library() -> ctypes.CDLL | None:
    """The library, or None where there is none for this system and processor."""
    path, needed = library_path(), LEVELS.get((architecture(), LANES, REGISTERS))
    if needed is None or not path.is_file() or not all(map(has, needed)):
        return None
    try:
        size, _ = stated(path)
        if path.stat().st_size != size:  # the system would end the process in the middle of it
            raise OSError(f"it has {path.stat().st_size:,} bytes instead of {size:,}")
        return ctypes.CDLL(str(path))
    except (OSError, ValueError) as error:
        log.warning(
            "the compiled kernels in %s cannot be used (%s): each is compiled again; install perframe again",
            path,
            error,
        )
        return None


def library_path() -> Path:
    """Where the library of this system lies in a wheel."""
    return Path(__file__).parent / file_name(sys.platform, architecture())


def stated(path: Path) -> tuple[int, str]:
    """A library's size in bytes and its SHA-256, as the file beside it says. Raises OSError or ValueError."""
    size, digest = path.with_name(f"{path.name}.sum").read_text(encoding="ascii").split()
    return int(size), digest


def describe() -> str:
    """Say what the library has. Raises OSError or ValueError where it is damaged."""
    path = library_path()
    if not path.is_file():
        return "none came compiled; each is compiled when it is first needed"
    size, digest = stated(path)
    import hashlib  # OpenSSL takes 4 ms to load

    if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        raise OSError(f"{path} is not as it was made")
    if _library() is None:
        return "those that came compiled are for newer processors; each is compiled when it is first needed"
    return f"the usual ones came compiled ({size / 1e6:.1f} MB)"
