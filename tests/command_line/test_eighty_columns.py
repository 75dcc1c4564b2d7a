"""Tables and help texts fit 80 columns: they wrap, and cut nothing. Each option has a help text."""

from __future__ import annotations

import io
import re

import pytest
from rich.table import Table

from perframe.command_line.cli import COMMANDS, built
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


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_is_whole_and_plain(name: str) -> None:
    command = built(name)
    assert command.help
    for parameter in command.params:
        text = getattr(parameter, "help", None)
        if parameter.name not in ("help", "arguments"):
            assert text, f"{name}: {parameter.name} has no help"
            assert (len(text.split()) <= 25 and text[0] in "./") or text[0].isupper() or text.startswith("int4"), text
