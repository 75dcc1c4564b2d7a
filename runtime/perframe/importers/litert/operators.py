"""The list of LiteRT's operators, made from the table and the schema: it cannot drift."""

from __future__ import annotations

from perframe.importers.litert.table import table
from perframe.safety.records import dataclass

HEADERS = ("operator", "support", "group", "quantized values unchanged")
# operators that the schema lists and that stand for no computation
_NONE = ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES")


@dataclass(frozen=True)
class LiteRTOperator:
    """One operator of the format. `group` is the file of its adapter in importers/litert/families."""

    name: str
    supported: bool
    group: str = ""
    quantized: bool = False

    @property
    def row(self) -> tuple[str, ...]:
        """Its row of the table."""
        return self.name, "yes" if self.supported else "no", self.group, "yes" if self.quantized else ""


def operators() -> list[LiteRTOperator]:
    """Return the operators of the schema and the custom ones that are known, by name. Raises MissingExtraError."""
    from perframe.importers.litert.file import builtin_operators

    known = table()
    missing = [name for name in builtin_operators() if name not in known and name not in _NONE]
    found = [LiteRTOperator(name, True, entry.family, entry.moves) for name, entry in known.items()]
    return sorted([*found, *(LiteRTOperator(name, False) for name in missing)], key=lambda row: row.name)


def markdown(rows: list[LiteRTOperator]) -> str:
    """Return the page docs/litert-operators.md: a row for each group."""
    groups: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: (not row.supported, row.group)):
        name = f"{row.name}†" if row.quantized else row.name
        groups.setdefault(row.group if row.supported else "not supported", []).append(name)
    lines = [
        "# LiteRT operators",
        "",
        f"perframe imports {sum(row.supported for row in rows)} of the {len(rows)} operators of",
        "LiteRT (TensorFlow Lite). A quantized tensor is dequantized before an operator and quantized after it.",
        "Operators with † only move elements, and keep them quantized. The only custom operator is",
        "`TFLite_Detection_PostProcess`.",
        "`perframe operators --format litert` prints this list.",
        "",
        "| group | operators |",
        "|---|---|",
    ]
    return "\n".join([*lines, *(f"| {group} | {', '.join(names)} |" for group, names in groups.items()), ""])
