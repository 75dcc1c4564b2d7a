"""The files of families: each function has the parameters that its backend gives it."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import perframe as pf
from perframe.backends.cpu import families as of_cpu
from perframe.backends.cpu.families import CpuFamily
from perframe.backends.gl import families as of_gl
from perframe.backends.gl.families import GLFamily
from perframe.ir.family_files import read_family

PARAMETERS = {  # by the record: of each function
    CpuFamily: {
        "compute": ("layer", "form", "inputs", "outputs"),
        "lower": ("layer", "form", "inputs", "outputs", "scratch"),
        "takes_gaps": ("layer", "inputs", "outputs"),
        "overwrites": ("layer",),
    },
    GLFamily: {"lower": ("call", "tools"), "supports": ("call",), "dims": ("form",)},
}


@pytest.mark.parametrize(("package", "record"), [(of_cpu, CpuFamily), (of_gl, GLFamily)])
def test_functions_have_the_parameters_of_their_record(package: Any, record: Any) -> None:
    for file in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{file.name}")
        assert read_family(record, file.name, package.__name__.removeprefix("perframe.")) is not None
        for name, wanted in PARAMETERS[record].items():
            function = vars(module).get(name)
            if function is not None:
                required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
                assert tuple(p.name for p in required) == wanted, f"{module.__name__}.{name}"


def test_a_file_without_a_needed_function_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "unready" / "backends" / "cpu" / "families"
    folder.mkdir(parents=True)
    (folder / "blur.py").write_text("def lower(layer, form, inputs, outputs, scratch): return None\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(pf.ModelError, match=r"unready\.backends\.cpu\.families\.blur does not define compute"):
        read_family(CpuFamily, "unready.blur", "backends.cpu.families")
    assert read_family(CpuFamily, "unready.sharpen", "backends.cpu.families") is None
