"""The indexes of operators: a model imports only the files that declare and adapt its operators."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fresh import run_fresh
from perframe.ir.index import FILE_OF

ROOT = Path(__file__).resolve().parents[2]


def test_the_indexes_are_up_to_date() -> None:
    command = [sys.executable, "tools/index_operators.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_declaration_imports_its_own_file_only() -> None:
    code = "import sys; from perframe.ir.declaration import declaration; declaration('Conv'); print(*sys.modules)"
    imported = {name.rpartition(".")[2] for name in run_fresh(code).split() if ".layers." in name}
    assert "conv" in imported and len(imported) < 5 < len(set(FILE_OF.values()))


def test_an_adapter_imports_its_own_file_only() -> None:
    code = (
        "import sys; from perframe.importers.adapters import adapters_of as of; print(len(of('Resize')), *sys.modules)"
    )
    count, *modules = run_fresh(code).split()
    assert count == "2" and [name for name in modules if ".adapters." in name] == ["perframe.importers.adapters.basic"]


def test_a_file_that_the_index_lacks_is_found() -> None:
    """The index makes imports faster; without it every file is imported."""
    code = "from perframe.ir import declaration as d; d.FILE_OF.clear(); print(d.declaration('Det').family)"
    assert run_fresh(code).strip() == "linalg"


def test_a_name_of_perframe_is_taken_before_its_file_is_imported() -> None:
    code = (
        "import perframe as pf\n"
        "def Det(x): return x\n"
        "try: pf.layers.layer()(Det)\n"
        "except pf.ModelError as error: print(error)\n"
    )
    assert "layer Det is declared twice: in perframe.layers.linalg.Det and in __main__.Det" in run_fresh(code)
