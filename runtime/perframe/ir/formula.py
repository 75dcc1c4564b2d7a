"""Scalar formulas, written once. A formula runs as it stands with NumPy; `translate` writes it for Numba or in GLSL.

A formula is a function of assignments and one `return`. It may use its parameters, numbers, arithmetic, comparisons,
`& | ^ ~ << >>`, other formulas, and the words of vocabulary.py. `/` is for floats only, and `//` and `%` are not
allowed: integer division and modulo have names of their own, because Python, C and GLSL do not agree. Comparisons with
NaN are false, and `minimum` and `maximum` return NaN, as NumPy's do.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import zlib
from collections.abc import Callable
from typing import Any

from perframe.errors import FormulaError

Kind = str  # "float", "int" or "bool"

_SAME = {"abs", "sign", "minimum", "maximum", "clamp", "trunc_div", "floor_mod", "trunc_mod", "power", "where"}
_PREDICATES = {"is_nan", "is_inf"}
_FLOATS = {
    *("floor", "ceil", "round_even", "exp", "log", "log1p", "sqrt", "erf", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "to_float"),
}
_INVERTED = {"exp", "log", "sqrt"}  # compilers cancel one with another: exp(log(x)) is x to them
_OPERATORS: dict[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.LShift: "<<", ast.RShift: ">>"},
    **{ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.USub: "-", ast.Invert: "~"},
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
}
_SHIFTS: dict[type[ast.AST], str] = {ast.LShift: "shift_left", ast.RShift: "shift_right"}
_ON_BOOLS = {ast.BitAnd: ("&&", "and"), ast.BitOr: ("||", "or"), ast.BitXor: ("!=", "!="), ast.Invert: ("!", "not ")}

_INSTEAD: dict[type[ast.AST], str] = {
    ast.Pow: "power(x, y)",
    ast.Mod: "floor_mod(x, y)",
    ast.FloorDiv: "floor(x / y)",
    ast.Not: "~",
    ast.BoolOp: "& or |, in parentheses",
    ast.If: "where(condition, yes, no)",
    ast.IfExp: "where(condition, yes, no)",
}
_MEANT = {"max": "maximum", "min": "minimum", "pow": "power", "round": "round_even", "float": "to_float"}


@functools.cache
def _top_function(path: str, first: int) -> ast.FunctionDef | None:
    """The function that begins in this line of a file; None if it lies within another, or is not found. To parse the
    whole file takes longer.
    """
    lines = linecache.getlines(path)[first - 1 :]
    head = next((index for index, line in enumerate(lines) if line.startswith("def ")), len(lines))  # after decorators
    ends = (index for index in range(head + 1, len(lines)) if lines[index][0] not in " \t\r\n#)")
    try:
        (found,) = ast.parse("\n" * (first - 1) + "".join(lines[: next(ends, len(lines))])).body
    except (SyntaxError, ValueError):
        return None
    return found if isinstance(found, ast.FunctionDef) else None


@functools.cache
def _functions_of(path: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """The functions in a file or a notebook's cell, by name and first line."""
    statements: list[ast.AST] = [*ast.parse("".join(linecache.getlines(path))).body]
    for node in statements:  # most of a tree are expressions, which hold no functions
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            statements += getattr(node, part, ())
    found = [node for node in statements if isinstance(node, ast.FunctionDef)]
    return {(x.name, x.decorator_list[0].lineno if x.decorator_list else x.lineno): x for x in found}


def keywords(function: Callable[..., Any]) -> list[str]:
    """Return the names of a formula's attributes: its keyword-only parameters, in order."""
    code = function.__code__
    return list(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])


def name_in_text(function: Callable[..., Any]) -> str:
    """Return the name of a formula in text. Formulas of different modules may have one name, and meet in one kernel."""
    name, module = function.__name__, function.__module__
    return name if module.startswith("perframe.") else f"{name}_{zlib.crc32(module.encode()):08x}"


def _instead(node: ast.AST) -> str:
    """What to write in place of something that formulas do not know."""
    if isinstance(node, ast.Call):
        return ": call functions of perframe.ir.vocabulary, by their names alone"
    node = node.op if isinstance(node, ast.UnaryOp) else node
    return f": write {_INSTEAD[type(node)]}" if type(node) in _INSTEAD else ""


class _Text:
    """Walks one formula and writes it in `language` ("python" or "glsl"); knows the kind of every expression."""

    def __init__(self, function: Callable[..., Any], kinds: dict[str, Kind], language: str) -> None:
        self.path = inspect.getfile(function)
        first = function.__code__.co_firstlineno
        found = _top_function(self.path, first) or _functions_of(self.path).get((function.__name__, first))
        if found is None or found.name != function.__name__:
            raise FormulaError(f"{self.path}: formula {function.__name__}: its text is missing; write it in a file")
        self.tree, self.name = found, name_in_text(function)
        self.names = dict(kinds)
        self.glsl = language == "glsl"
        self.language = language
        self.globals = function.__globals__
        self.needed: dict[str, str] = {}

    def fail(self, node: ast.AST, why: str) -> FormulaError:
        line = getattr(node, "lineno", self.tree.lineno)
        return FormulaError(f"{self.path}:{line}: formula {self.tree.name}: {why}")

    def literal(self, value: bool | float, kind: Kind) -> str:
        if kind == "bool":
            return str(builtins.bool(value)).lower() if self.glsl else str(builtins.bool(value))
        if kind == "int":
            return str(int(value)) if self.glsl else f"int32({int(value)})"
        text = repr(float(value))
        return text if self.glsl else f"float32({text})"

    def same(self, node: ast.AST, *parts: ast.expr) -> tuple[list[str], Kind]:
        """Write all parts in one kind: literals take the kind of the other parts."""
        written = [(part, None if isinstance(part, ast.Constant) else self.expression(part)) for part in parts]
        kinds = {text[1] for _, text in written if text}
        if len(kinds) > 1:
            raise self.fail(node, f"mixes {' and '.join(sorted(kinds))}; convert one with to_float()")
        kind = kinds.pop() if kinds else "float"
        return [text[0] if text else self.literal(part.value, kind) for part, text in written], kind  # type: ignore[attr-defined]

    def expression(self, node: ast.expr) -> tuple[str, Kind]:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            kind = "bool" if isinstance(node.value, bool) else "float"
            return self.literal(node.value, kind), kind
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                raise self.fail(node, f"unknown name {node.id!r}")
            return node.id, self.names[node.id]
        if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
            if isinstance(node.operand, ast.Constant):
                text, kind = self.expression(node.operand)
                return f"(-{text})", kind
            text, kind = self.expression(node.operand)
            return f"({self.operator(node.op, kind, node)}{text})", kind
        if isinstance(node, ast.BinOp):
            (left, right), kind = self.same(node, node.left, node.right)
            if isinstance(node.op, ast.Div) and kind != "float":
                raise self.fail(node, "`/` is for floats: use trunc_div()")
            if kind == "float" and not self.is_given(node.left):
                right = self.apart(node.right, right)
            if self.glsl and type(node.op) in _SHIFTS:  # GLSL leaves shifts by more than the width undefined
                return f"{_SHIFTS[type(node.op)]}({left}, {right})", kind
            return f"({left} {self.operator(node.op, kind, node)} {right})", kind
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            (left, right), _ = self.same(node, node.left, node.comparators[0])
            return f"({left} {_OPERATORS[type(node.ops[0])]} {right})", "bool"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self.call(node, node.func.id)
        raise self.fail(node, f"does not know {ast.unparse(node)!r}{_instead(node)}")

    def is_given(self, node: ast.expr) -> bool:
        """Whether a kernel has the value as a literal or as a parameter."""
        attributes = {argument.arg for argument in self.tree.args.kwonlyargs}
        return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in attributes)

    def apart(self, node: ast.expr, text: str) -> str:
        """Hide from GLSL's compilers where a value comes from. With infinities and NaN, x - x is not 0."""
        return f"APART({text})" if self.glsl and not self.is_given(node) else text

    def operator(self, op: ast.AST, kind: Kind, node: ast.AST) -> str:
        if kind == "bool" and type(op) in _ON_BOOLS:
            return _ON_BOOLS[type(op)][0 if self.glsl else 1]
        if type(op) not in _OPERATORS or kind == "bool":
            raise self.fail(node, f"does not know {type(op).__name__} of {kind}{_instead(op)}")
        return _OPERATORS[type(op)]

    def call(self, node: ast.Call, name: str) -> tuple[str, Kind]:
        if name == "where":
            condition, kind = self.expression(node.args[0])
            if kind != "bool":
                raise self.fail(node, "the first argument of where() must be a comparison")
            (yes, no), kind = self.same(node, *node.args[1:])
            return (f"({condition} ? {yes} : {no})" if self.glsl else f"({yes} if {condition} else {no})"), kind
        if name == "to_float":
            text, _ = self.expression(node.args[0])
            return f"float({text})" if self.glsl else f"float32({text})", "float"
        arguments, kind = self.same(node, *node.args)
        if name in _FLOATS and kind != "float":
            raise self.fail(node, f"{name}() is for floats, not {kind}")
        if name in _INVERTED:
            arguments = [self.apart(node.args[0], arguments[0])]
        if name in _PREDICATES:
            return f"{name}({', '.join(arguments)})", "bool"
        if name in _SAME or name in _FLOATS:
            return f"{name}({', '.join(arguments)})", kind
        other = getattr(self.globals.get(name), "formula", None)
        if other is None:
            meant = f": write {_MEANT[name]}()" if name in _MEANT else ""
            raise self.fail(node, f"{name}() is neither in the vocabulary nor a formula{meant}")
        text, kind = translate(other, [kind] * len(arguments), self.language)
        self.needed[name] = text
        return f"{name_in_text(other)}({', '.join(arguments)})", kind

    def write(self) -> tuple[str, Kind]:
        lines, kind = [], "float"
        for statement in self.tree.body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # the docstring
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                text, kind = self.expression(statement.value)
                name = statement.targets[0].id
                declared = "" if name in self.names or not self.glsl else f"{kind} "
                self.names[name] = kind
                lines.append(f"{declared}{name} = {text}")
            elif isinstance(statement, ast.Return) and statement.value is not None:
                text, kind = self.expression(statement.value)
                lines.append(f"return {text}")
            else:
                raise self.fail(
                    statement, f"does not know {ast.unparse(statement).splitlines()[0]!r}{_instead(statement)}"
                )
        arguments = self.tree.args.args + self.tree.args.kwonlyargs
        if self.glsl:
            signature = ", ".join(f"{self.names[a.arg]} {a.arg}" for a in arguments)
            body = " ".join(line + ";" for line in lines)
            text = f"{kind} {self.name}({signature}) {{ {body} }}"
        else:
            body = "".join(f"\n    {line}" for line in lines)
            text = f"@inline\ndef {self.name}({', '.join(a.arg for a in arguments)}):{body}\n"
        return "\n".join([*self.needed.values(), text]), kind


def translate(function: Callable[..., Any], kinds: list[Kind], language: str) -> tuple[str, Kind]:
    """Return a formula as the text of a function in "python" (for Numba) or "glsl", and the kind of its result.

    `kinds` holds the kinds of the positional parameters; keyword-only parameters (attributes) are floats. Raises
    FormulaError with the line.
    """
    return _translate(function, tuple(kinds), language)


@functools.cache
def _translate(function: Callable[..., Any], kinds: tuple[Kind, ...], language: str) -> tuple[str, Kind]:
    signature = inspect.signature(function)
    names: dict[str, Kind] = {}
    given = iter(kinds)
    for parameter in signature.parameters.values():
        names[parameter.name] = "float" if parameter.kind is parameter.KEYWORD_ONLY else next(given)
    return _Text(function, names, language).write()
