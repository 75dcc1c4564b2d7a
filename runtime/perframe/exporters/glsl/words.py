"""Identifiers and literals of GLSL."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import numpy as np

from perframe.errors import InputError, ModelError

LETTERS = "xyzw"
VECTORS = {"float": "vec", "int": "ivec", "bool": "bvec"}
# keywords of GLSL 3.30, 4.30 and ES 3.00, and the words that they reserve
_WORDS = (
    "active asm atomic_uint attribute bool break buffer case cast centroid class coherent common const "
    "continue default discard do double else enum extern external false filter fixed flat float for fvec2 "
    "fvec3 fvec4 goto half highp hvec2 hvec3 hvec4 if in inline inout input int interface invariant "
    "isampler1D layout long lowp main mediump namespace noinline noperspective noise1 out output packed "
    "partition patch precise precision public readonly resource restrict return row_major sample shared short "
    "sizeof smooth static struct subroutine superp switch template this true typedef uint uniform union "
    "unsigned using varying void volatile while writeonly "
)
_TYPE = re.compile(r"[biud]?vec[234]|d?mat[234](x[234])?|[iu]?(sampler|image)(1D|2D|3D|Cube|Buffer)\w*")
_LOCAL = re.compile(r"v\d+")  # the variables of the function
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")


def is_identifier(name: str) -> bool:
    """Whether a shader may use the name, and also the name with an underscore and more behind it."""
    return bool(_NAME.fullmatch(name)) and not (
        name.startswith("gl_") or name in _WORDS.split() or _TYPE.fullmatch(name)
    )


def check_name(name: str) -> None:
    """Raise InputError unless a shader may use the name."""
    if not isinstance(name, str) or not is_identifier(name):
        raise InputError(
            f"name={name!r} cannot name a function in GLSL: give letters, digits and single underscores, begin with a "
            "letter, and avoid the words of the language"
        )


def identifier(name: str, taken: Collection[str] = (), function: str = "") -> str:
    """Return an identifier like a model's name for a value: none that is taken, or that `function` uses inside."""
    found = "_".join(part for part in re.split(r"[^A-Za-z0-9]+", name) if part)
    if not is_identifier(found) or found.startswith(f"{function}_") or found in taken or _LOCAL.fullmatch(found):
        found = f"value_{found}" if found else "value"
    made, count = found, 2
    while made in taken:
        made, count = f"{found}_{count}", count + 1
    return made


def literal(value: Any, kind: str) -> str:
    """Return a number as text. A float is exact. Raises ModelError for an integer that 32 bits do not hold."""
    if kind == "bool":
        return str(bool(value)).lower()
    if kind == "int":
        if not -(2**31) < int(value) < 2**31:
            raise ModelError(f"it reads the constant {value}, and integers of a shader have 32 bits")
        return str(int(value))
    number = np.float32(value)
    if not np.isfinite(number):
        return f"uintBitsToFloat(0x{number.view(np.uint32):08x}u)"
    return str(number)


def vector(kind: str, width: int) -> str:
    """Return the type of 1 to 4 numbers of a kind."""
    return kind if width == 1 else f"{VECTORS[kind]}{width}"


def joined(parts: list[str], kind: str) -> str:
    """Return an expression of the vector of 1 to 4 scalar expressions."""
    return parts[0] if len(parts) == 1 else f"{vector(kind, len(parts))}({', '.join(parts)})"
