"""Tables and help texts fit 80 columns: they wrap, and cut nothing. Each option has a help text."""

from __future__ import annotations

import io
import re
from dataclasses import fields

import pytest
from rich.table import Table
from typer.testing import CliRunner

from perframe.command_line.cli import COMMANDS, app, built
from perframe.execution.layer_check import Comparison
from perframe.inspection.comparison import ValueComparison, show
from perframe.safety.console import SafeConsole


def printed(table: Table, width: int = 80) -> str:
    file = io.StringIO()
    SafeConsole(file=file, width=width).print(table)
    return file.getvalue()


def test_a_table_cuts_no_name_and_no_number() -> None:
    table = Table("layer", "operator", box=None)
    for column in ("multiply-adds", "largest error", "milliseconds"):
        table.add_column(column, justify="right")
    for index in range(3):
        name = f"node_of_a_very_long_name_{index}_" + "x" * 60
        table.add_row(name, "ConvTransposeWithAnEvenLongerName", "1,234,567,890", "1.23456e-07", "123.456 ms")
    said = printed(table)
    assert "…" not in said and max(map(len, said.splitlines())) <= 80
    for number in ("1,234,567,890", "1.23456e-07", "123.456"):
        assert said.count(number) == 3
    assert re.sub(r"[^x]", "", said).count("x") >= 180


def test_comparisons_keep_long_names_in_one_piece() -> None:
    name = "/backbone/stage.2/block.3/attention/self/query/MatMul_output_0"
    wide = (1, 1024, 1024, 1024, 1024, 1024)
    values = [
        ValueComparison(name, "DotProductAttention", name, "float32", (1, 64), 1.25e-7, 3.5e-7, (0, 63), 1, 1, True),
        ValueComparison("a" * 90, "Add", "b", "float32", wide, 0, 0, (0,) * 6, 1, 1, True),
        ValueComparison("y", "Add", "y", "float32", (1,), 0, 0, (0,), 1, 1, True),
    ]
    checks = [Comparison(*(getattr(one, field.name) for field in fields(Comparison))) for one in values]
    for comparisons in (values, checks):
        file = io.StringIO()
        show(comparisons, SafeConsole(file=file, width=80))
        lines = file.getvalue().splitlines()
        assert max(map(len, lines)) <= 80 and name in lines
        assert any(line.startswith("y  Add float32 (1,)") for line in lines)
        assert file.getvalue().count("1.25e-07") == file.getvalue().count("3.5e-07") >= 1


@pytest.mark.parametrize("name", ["", *sorted(set(COMMANDS) - {"demo"})])
def test_help_names_values_in_words(name: str) -> None:
    """Flags take no value, and no value is called by a type of Python."""
    said = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80"}, terminal_width=80).output
    assert "--help" in said and not re.search(r"<\w+|[{}]|INTEGER|TEXT|range", re.sub(r"value ranges", "", said)), said
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_is_whole_and_plain(name: str) -> None:
    command = built(name)
    assert command.help
    for parameter in command.params:
        text = getattr(parameter, "help", None)
        if parameter.name not in ("help", "arguments"):
            assert text, f"{name}: {parameter.name} has no help"
            assert (len(text.split()) <= 25 and text[0] in "./") or text[0].isupper() or text.startswith("int4"), text


def test_the_list_of_models_fits() -> None:
    said = CliRunner().invoke(app, ["models"]).output
    assert "audio: float32 (1, 512), 16,000 samples a second in -1..1\n" in said
    assert "painter" in said and max(map(len, said.splitlines())) <= 80
