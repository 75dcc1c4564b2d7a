"""The checks that the environment asks for, and the limit on the size of a tensor."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from pathlib import Path

from perframe.errors import InputError
from perframe.tensor.dtypes import DataType

_UNKNOWN_MACHINE = 8 << 30  # bytes of memory, assumed where the system does not report any
_MOST_ADDRESSES = 2**63 - 1


def enabled() -> bool:
    """Whether PERFRAME_CHECK=1 asks for checks that cost time. The variable is read when a plan is made."""
    return os.environ.get("PERFRAME_CHECK", "") not in ("", "0")


def most_bytes() -> int:
    """The largest size of one tensor in bytes: PERFRAME_MAX_TENSOR_BYTES, or half of the machine's memory.

    Raises InputError if the variable is not a number of bytes.
    """
    given = os.environ.get("PERFRAME_MAX_TENSOR_BYTES", "")
    if not given:
        return machine_bytes() // 2
    if not given.isdecimal() or int(given) < 1:
        raise InputError(f"PERFRAME_MAX_TENSOR_BYTES is a number of bytes, at least 1, not {given!r}")
    return int(given)


@functools.cache
def machine_bytes() -> int:
    """The memory of the machine, or of the container in which the process runs, in bytes."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on this system
        found = _UNKNOWN_MACHINE
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        limit = "max"
    return min(found, int(limit)) if limit.isdecimal() else found


def too_large(shape: Iterable[int | str | None], dtype: DataType) -> str:
    """Return the reason why a tensor of this shape is too large; "" if it is small enough or a dim is not known."""
    dims = list(shape)
    least, known = dtype.numpy.itemsize, True  # bytes, counting the dims that are not 0
    for dim in dims:
        if type(dim) is int:
            least *= dim or 1
        else:
            known = False
    most = most_bytes()
    if least <= most or not known:
        return ""
    listed = f"({', '.join(map(str, dims))})"
    if 0 in dims:
        return "" if least <= _MOST_ADDRESSES else f"no array has the shape {listed}, though it would be empty"
    return (
        f"a {dtype} tensor of shape {listed} would take {least} bytes, and at most {most} are possible; a larger "
        "PERFRAME_MAX_TENSOR_BYTES allows more"
    )
