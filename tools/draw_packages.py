"""Draws the imports between packages: `python tools/draw_packages.py` writes them into docs/architecture.md.

An arrow is left out if longer ways imply it. With --check nothing is written, and an outdated drawing exits with 1, as
do more than MOST_FLOORS packages on top of each other.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import grimp

PAGE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
BLOCK = re.compile(r"(?<=<!-- packages -->\n).*?(?=<!-- end of packages -->)", re.DOTALL)
ROOT = "perframe"
INNER = ("perframe.backends.cpu", "perframe.backends.gl")  # packages with their own boxes
ROOTS = ("perframe.backends", "perframe.backends.choosing")  # they join the backends, which know backends.protocol
MOST_FLOORS = 9
ASIDE = {"errors", "resources", "safety"}  # every package may import these

Edges = Mapping[str, frozenset[str]]


def package_of(module: str) -> str:
    """The box of a module."""
    inner = next((name for name in INNER if module == name or module.startswith(f"{name}.")), None)
    if inner is None and module.startswith(f"{ROOTS[0]}.") and module not in ROOTS:
        return "backends.protocol"
    return inner.removeprefix(f"{ROOT}.") if inner else module.split(".")[1] if "." in module else ROOT


def imports() -> Edges:
    """The packages that each package imports from."""
    graph = grimp.build_graph(ROOT, exclude_type_checking_imports=True, cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        known = {package_of(other) for other in graph.find_modules_directly_imported_by(module)}
        found.setdefault(package_of(module), set()).update(known)
    aside = ASIDE | {ROOT, "__main__"}
    return {name: frozenset(known - {name} - aside) for name, known in found.items() if name not in aside}


def floors(edges: Edges) -> dict[str, int]:
    """The floor of each package: one above the highest of those that it imports. Raises ValueError for a circle."""

    @functools.cache
    def floor(name: str, above: frozenset[str] = frozenset()) -> int:
        if name in above:
            raise ValueError(f"{', '.join(sorted(above))} import each other in a circle")
        return 1 + max([floor(other, above | {name}) for other in edges[name]], default=0)

    return {name: floor(name) for name in edges}


def drawing(edges: Edges) -> str:
    """The drawing as Mermaid's text. Arrows lead from a package to those that it imports."""
    level = floors(edges)

    @functools.cache
    def below(name: str) -> frozenset[str]:
        return edges[name].union(*map(below, edges[name]))

    lines = ["```mermaid", "flowchart TD"]
    for name in sorted(edges, key=lambda name: (-level[name], name)):
        through = frozenset[str]().union(*map(below, edges[name]))
        lines += [f"    {name} --> {other}" for other in sorted(edges[name] - through)]
    return "\n".join([*lines, "```", ""])


def main() -> int:
    """Write the drawing, or compare it."""
    page = PAGE.read_text(encoding="utf-8")
    edges = imports()
    level = floors(edges)
    if max(level.values()) > MOST_FLOORS:
        print(f"{max(level, key=lambda name: level[name])} lies {max(level.values())} floors high")
        return 1
    made = BLOCK.sub(lambda _: drawing(edges), page)
    if "--check" not in sys.argv:
        PAGE.write_text(made, encoding="utf-8")
    elif made != page:
        print("docs/architecture.md shows other imports: run python tools/draw_packages.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
