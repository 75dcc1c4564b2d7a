"""The table of operators says what the cases show, and the docs say what the table says."""

from __future__ import annotations

from pathlib import Path

from conformance.suite import all_cases, not_passed
from perframe.backends import gl_families
from perframe.importers.operators import markdown, operators

ROOT = Path(__file__).resolve().parents[2]


def test_the_docs_have_the_table() -> None:
    said = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    assert said == markdown(operators(gl_families())), "perframe operators --markdown > docs/operators.md"


def test_the_table_is_what_the_cases_show() -> None:
    """An operator whose own cases all pass is not missing; one that is missing has no case that passes."""
    missing = {row.name for row in operators(gl_families()) if row.how == "missing"}
    listed = {name for _, name in not_passed()}
    for case in all_cases():
        nodes = case.model.graph.node
        if case.name not in listed and all(node.domain in ("", "ai.onnx") for node in nodes):
            assert not missing & {node.op_type for node in nodes}, f"{case.name} passes"
    assert not missing, f"{sorted(missing)} are missing"
