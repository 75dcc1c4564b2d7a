"""The commands take .sentis files, and write them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import perframe as pf
from command_line.conftest import Command
from importers.sentis_files import network


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "network.sentis"
    path.write_bytes(network()[0])
    return path


def test_files_are_inspected_run_and_checked(perframe: Command, file: Path) -> None:
    assert json.loads(perframe("inspect", file, "--json")[1])["operators"]["Relu"] == [1, 0]
    found = json.loads(perframe("run", file, "--dims", "batch=3", "--json")[1])
    assert found["outputs"]["y"]["shape"] == [3, 5]
    status, out, _ = perframe("check", file, "--backend", "cpu", "--dims", "batch=2")
    assert status == 0 and "runs" in out
    status, out, _ = perframe("compare", file, "--dims", "batch=2")
    assert status == 0 and "0 further" in out
    assert perframe("profile", file, "--dims", "batch=2", "--frames", "2")[0] == 0


@pytest.mark.parametrize("name", ["m.sentis", "m.onnx", "m.perframe"])
def test_files_are_optimized_saved_quantized_and_converted(perframe: Command, file: Path, name: str) -> None:
    out, x = file.with_name(name), network()[1]
    wanted = pf.run(file, x)["y"]
    for command in (("optimize", file, "--out", out), ("save", file, out), ("convert", file, out, "--verify")):
        status, _, error = perframe(*command)
        assert status == 0, error
        np.testing.assert_allclose(pf.run(out, x)["y"], wanted, 1e-6, 1e-6)
    status, _, error = perframe("quantize", file, out)
    assert status == 0, error
    np.testing.assert_allclose(pf.run(out, x)["y"], wanted, 0, 0.05)


@pytest.mark.slow  # a network of the wheel
def test_models_of_other_formats_are_converted(perframe: Command, tmp_path: Path) -> None:
    source = pf.load("digits")
    pf.save(source, tmp_path / "digits.onnx")
    status, out, _ = perframe("convert", tmp_path / "digits.onnx", tmp_path / "digits.sentis", "--verify", "--json")
    assert status == 0 and json.loads(out)["kind"] == "onnx"
    assert pf.load(tmp_path / "digits.sentis").output_names == source.output_names
