"""The `//@` lines of a kernel agree with its text: what it reads of its inputs, and what an invocation computes."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

import perframe as pf
from perframe.backends.gl.compile.program import Kernel, load_kernel, parse_kernel

SHADERS = Path(__file__).parents[2] / "shaders"
KERNELS = sorted(
    path.relative_to(SHADERS).with_suffix("").as_posix()
    for path in SHADERS.rglob("*.glsl")
    if path.parent.name not in ("lib", "shell")
)
FUNCTIONS = {"element": "element", "texel": "texel", "strip": "strip", "tile": "tile", "grid": "tile"}
BY_DEFINES = {("random", "X"), ("convert/texture_to_tensor", "X")}  # read by formulas that a lowering writes


def variants(kernel: Kernel) -> list[tuple[str, ...]]:
    """All sets of the defines on which the kernel's text depends."""
    names = sorted(set(re.findall(r"#\s*ifn?def (\w+)", kernel.body)))
    return [chosen for count in range(len(names) + 1) for chosen in combinations(names, count)]


def remaining(body: str, defines: tuple[str, ...]) -> str:
    """The lines of a body that remain with these defines. Conditions of more than a name keep their lines."""
    kept, conditions = [], list[bool | None]()
    for line in body.splitlines():
        found = re.match(r"#\s*(ifdef|ifndef|if|else|elif|endif)\b\s*(\w*)", line)
        if found is None:
            kept += [line] if False not in conditions else []
        elif found[1] == "endif":
            conditions.pop()
        elif found[1] == "else":
            conditions[-1] = None if conditions[-1] is None else not conditions[-1]
        elif found[1] == "elif":
            conditions[-1] = None
        else:
            conditions.append(None if found[1] == "if" else (found[2] in defines) == (found[1] == "ifdef"))
    return "\n".join(kept)


def read_in(text: str, name: str) -> tuple[bool, bool]:
    """Whether a text reads elements and texels of an input, by its name or by one to which macros append its number."""
    prefix = name.rstrip("0123456789")
    names = name if prefix == name else rf"(?:{name}|{prefix}##\w+?(?:##)?)"
    elements, texels = (re.search(rf"\b{names}{end}\(", text) for end in ("(?:_four|_at)?", "_texel"))
    return elements is not None, texels is not None


@pytest.mark.parametrize("name", KERNELS)
def test_declared_reads_and_units_are_those_of_the_text(name: str) -> None:
    kernel = load_kernel(name)
    for defines in variants(kernel):
        text = remaining(kernel.body, defines)
        for given in kernel.inputs:
            if (name, given) not in BY_DEFINES:
                assert kernel.reads(given, defines) == read_in(text, given), (given, defines)
        if not name.startswith(("convert/", "draw/")):
            assert re.search(rf"^\w+ {FUNCTIONS[kernel.unit(defines)]}\(", text, re.MULTILINE), defines


@pytest.mark.parametrize("line", ["input X pixels", "unit texels", "unit texel when SMALL", "long loops", "input X if"])
def test_a_line_that_says_something_unknown_is_refused(line: str) -> None:
    with pytest.raises(pf.BackendError, match=f"odd.glsl: cannot read '//@ {line}'"):
        parse_kernel("odd", f"//@ {line}\n")
