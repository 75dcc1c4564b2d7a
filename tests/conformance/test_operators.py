"""The table of operators agrees with the cases, and the docs agree with the table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from conformance.suite import Case, all_cases, not_passed, not_strict
from conformance.write_list import BACKENDS, is_node, runs_between_plans
from perframe.backends import gl_dtypes
from perframe.importers.operators import OnnxOperator, markdown, operators
from perframe.tensor import DataType

ROOT = Path(__file__).resolve().parents[2]


def test_the_docs_have_the_table() -> None:
    said = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    assert said == markdown(operators(gl_dtypes)), "perframe operators --markdown > docs/operators.md"
    assert "|  |" not in said, "an empty cell says nothing"


@pytest.mark.slow
def test_the_table_agrees_with_the_cases() -> None:
    """An operator whose own cases all pass is not missing; one that is missing has no case that passes."""
    missing = {row.name for row in operators(gl_dtypes) if row.how == "missing"}
    listed = {name for _, name in not_passed()}
    for case in all_cases():
        nodes = case.model.graph.node
        if case.name not in listed and all(node.domain in ("", "ai.onnx") for node in nodes):
            assert not missing & {node.op_type for node in nodes}, f"{case.name} passes"
    assert not missing, f"{sorted(missing)} are missing"


# --- where operators run: what the registry claims, and what strict workers did with the cases ---

NAMES = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
NUMPYS = {"float": "float32", "double": "float64"}  # all others are called alike


def first_dtype(case: Case) -> str | None:
    """The dtype, by ONNX's name, of the first input of a case of one operator, or else of its output."""
    graph = case.model.graph
    (node,) = graph.node
    wanted = node.input[0] if node.input and node.input[0] else node.output[0]
    for value in (*graph.input, *graph.output):
        if value.name == wanted and value.type.HasField("tensor_type"):
            return NAMES[value.type.tensor_type.elem_type]
    return None


def shown(backend: str) -> Iterator[tuple[str, str, str, bool]]:
    """Operator, dtype, case, and whether a strict worker ran it; the conformance test holds each case to it.

    A case that is refused for the dtype of another input or of an output says nothing of the first's.
    """
    for case in all_cases():
        if not is_node(case) or len(case.model.graph.node) != 1 or case.model.graph.node[0].domain:
            continue
        fails = ("all", case.name) in not_passed() or (backend, case.name) in not_passed()
        dtype = first_dtype(case)
        if not fails and dtype is not None and not runs_between_plans(case):
            reason = not_strict().get(("all", case.name)) or not_strict().get((backend, case.name), "")
            name = case.model.graph.node[0].op_type
            why = reason.partition(": ")[2]
            if why in set(DataType) - {NUMPYS.get(dtype, dtype)} and reason.startswith(f"{name}:"):
                continue
            yield name, dtype, case.name, not reason


@pytest.mark.slow
@pytest.mark.parametrize("gpu", BACKENDS[1:])
def test_operators_run_where_the_table_says(gpu: str) -> None:
    """A dtype is claimed if and only if a strict worker runs a case of it, where there are cases."""
    table: dict[str, OnnxOperator] = {row.name: row for row in operators(gl_dtypes)}
    ran: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    for name, dtype, case, strictly in shown(gpu):
        ran[name, dtype][case] = strictly
    wrong = []
    for (name, dtype), cases in ran.items():
        row = table[name]
        if row.how == "layer" and not row.planned and (dtype in row.gpu) != any(cases.values()):
            wrong.append(f"{name} of {dtype}: {'claimed' if dtype in row.gpu else 'not claimed'}, and {cases}")
    for name in {name for name, _ in ran if table[name].how in ("composite", "function") or table[name].planned}:
        if not any(any(cases.values()) for (other, _), cases in ran.items() if other == name):
            wrong.append(f"{name}: by its parts or while planning, and no case of it runs")
    assert not wrong, "\n".join(wrong)
