"""The functions that formulas call, taken out of `shaders/lib/math.glsl` without its macros.

The file redefines words of GLSL by macros (`#define sin sin_`), which would change the rest of the user's shader. Here
each macro is applied to the lines behind it, as the preprocessor would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from perframe.resources import resource

_MACRO = re.compile(r"#define (\w+) (\w+)$")
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
_DECLARED = re.compile(r"^(?:const )?\w+ (\w+)")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
ZERO = "zero_bits"  # a variable that is 0, and no compiler knows it
_OWN = (
    f"uint {ZERO};",
    f"float APART(float x) {{ return uintBitsToFloat(floatBitsToUint(x) ^ {ZERO}); }}",
    f"bool as_made(bool x) {{ return x != ({ZERO} != 0u); }}",  # x > 0.0 ? 0.0 : x would become a minimum without NaN
    f"float zero() {{ return uintBitsToFloat({ZERO}); }}",  # 0.0 * x would become 0.0, also for NaN and infinities
    "float within_turn(float x) { float turns = floor(x * 0.15915494309 + 0.5); return APART(APART("
    "x - turns * 6.28125) - turns * 0.00193500518798828125) - turns * 3.0199159795e-7; }",
)
# Calls are inlined, and a network may have hundreds of sines: drivers would compile the library's exact reduction of
# angles for half a minute. Whole turns in three parts leave an error of 2e-6 for angles up to 100,000.
_REDUCED = {
    f"{name}_": f"float {name}_(float x) {{ return {name}(within_turn(x)); }}" for name in ("sin", "cos", "tan")
}


@cache
def _library() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The definitions by the names that they declare, all of one name together in order; and the macros."""
    macros: dict[str, str] = {}
    lines = []
    for line in resource("shaders", "lib", "math.glsl").read_text(encoding="utf-8").splitlines():
        found = _MACRO.match(line)
        if found:
            macros[found[1]] = found[2]
        elif not line.startswith("#"):
            lines.append(_renamed(line.partition("//")[0].rstrip(), macros))
    definitions: dict[str, str] = {}
    for text in (*_OWN, *_statements("\n".join(lines))):
        declared = _DECLARED.match(text)
        assert declared is not None, text
        definitions[declared[1]] = "\n".join(filter(None, (definitions.get(declared[1]), text)))
    return definitions | _REDUCED, macros


def _statements(text: str) -> Iterator[str]:
    """Yield the declarations of constants and the functions of a text without comments and directives."""
    depth, start = 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "{(") - (letter in "})")
        if depth == 0 and letter in ";}":
            yield text[start : index + 1].strip()
            start = index + 1


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return _IDENTIFIER.sub(lambda found: names.get(found[0], found[0]), text)


@cache
def called_words() -> frozenset[str]:
    """The functions of GLSL that the library and formulas may call: no argument may have their names."""
    definitions, macros = _library()
    return frozenset(_CALLED.findall("\n".join(definitions.values()))) | frozenset(macros)


class FormulaLibrary:
    """Functions of formulas for one network. The names of all begin with the network's name."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._asked: dict[str, None] = {}  # functions of the library
        self._formulas: dict[str, str] = {}  # by the name in the formula compiler's text, all of one name together

    def add(self, functions: str, expression: str) -> str:
        """Add functions that the formula compiler wrote, a line each, and return an expression that calls them."""
        own = {}
        for text in functions.splitlines():
            declared = _DECLARED.match(text)
            assert declared is not None, text
            own[declared[1]] = self._name(declared[1])
            kept = self._formulas.get(declared[1], "")
            if text not in kept:
                self._formulas[declared[1]] = f"{kept}\n{text}".strip()
        return _renamed(expression, own)

    def call(self, name: str, argument: str = "") -> str:
        """Return a call of a function of the library: `as_made` of a bool of another layer, or `zero`."""
        self._asked[name] = None
        return f"{self._name(name)}({argument})"

    def texts(self) -> tuple[list[str], str]:
        """Return definitions in order, and the name of the variable that is 0, or "" if no formula needs it.

        Only those functions of the library are there that the formulas need.
        """
        definitions, macros = _library()
        formulas = [_renamed(text, macros) for text in self._formulas.values()]
        needed: set[str] = set()
        waiting = {*self._asked, *_IDENTIFIER.findall("\n".join(formulas))}
        while waiting:
            name = waiting.pop()
            if name in definitions and name not in needed:
                needed.add(name)
                waiting |= set(_IDENTIFIER.findall(definitions[name]))
        names = {name: self._name(name) for name in (*needed, *self._formulas)}
        kept = [text for name, text in definitions.items() if name in needed]
        return [_renamed(text, names) for text in (*kept, *formulas)], names.get(ZERO, "")

    def _name(self, name: str) -> str:
        return f"{self._prefix}_{name.strip('_')}"
