"""Passes that run only in models with certain operators: they would change nothing in others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import perframe as pf
from fresh import run_fresh
from perframe import passes
from perframe.backends import evaluator
from perframe.importers.light import light_model, light_names
from perframe.ir.index import FILE_OF
from perframe.passes import ONLY_WITH, PASSES, PREPARATIONS, module_of, optimize, prepare
from perframe.passes.patterns import Op, Rules

SHIPPED = sorted((Path(__file__).resolve().parents[2] / "assets").rglob("*.onnx"))
OF_RULES = sorted(name for name in ONLY_WITH if isinstance(module_of(name).run, Rules))
SMALL = """
import sys
from perframe.functional.graph import FunctionalGraph
import perframe as pf
graph = FunctionalGraph()
x = graph.add_input(pf.DataType.FLOAT32, (1, 4))
with pf.Worker(graph.compile(pf.functional.relu(x + 1)), "cpu"):
    print(*[name.rpartition(".")[2] for name in sys.modules if ".passes." in name])
"""


def parts(pattern: Op) -> Iterator[Op]:
    """A pattern of a layer, and those within it."""
    yield pattern
    for part in pattern.inputs:
        if isinstance(part, Op):
            yield from parts(part)


def test_the_table_names_passes_and_operators() -> None:
    known = {*PASSES, *(name for names in PREPARATIONS.values() for name in names)}
    assert set(ONLY_WITH) <= known
    assert {op for ops in ONLY_WITH.values() for op in ops.split()} <= set(FILE_OF)


@pytest.mark.parametrize("name", OF_RULES)
def test_each_rule_matches_one_of_the_operators(name: str) -> None:
    rules: Any = module_of(name).run
    wanted = set(ONLY_WITH[name].split())
    assert len(OF_RULES) > 5 and rules._rules
    for pattern, _ in rules._rules:
        assert any(part.ops and part.ops <= wanted and not part.families for part in parts(pattern)), pattern.ops


@pytest.mark.parametrize("source", [*SHIPPED, *light_names()], ids=lambda source: Path(source).name)
def test_no_pass_that_is_left_out_would_change_a_model(source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = light_model(source) if isinstance(source, str) else source.read_bytes()
    some, every = pf.load(data, optimize=False), pf.load(data, optimize=False)
    facts = []
    for model, table in ((some, ONLY_WITH), (every, {})):
        monkeypatch.setattr(passes, "ONLY_WITH", table)
        optimize(model, evaluator())
        model.preparations = None
        made = [model, *(prepare(model, evaluator(), backend) for backend in PREPARATIONS)]
        facts.append([[(layer.op, layer.name, layer.input_names) for layer in one.layers] for one in made])
        assert [report.name for report in model.report.passes if report.changes]
    assert facts[0] == facts[1]


def test_what_is_left_out_is_not_imported() -> None:
    imported = run_fresh(SMALL).split()
    assert "fuse_activation" in imported and not set(ONLY_WITH) & set(imported)
