"""States that `perframe process` carries from picture to picture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import perframe as pf
from media.films import film, grey

COUNTING = """<ir_version: 9, opset_import: ["" : 17]>
counting (float[1, 3, h, w] x, float[1, 3, 36, 64] sum, float[1] count) => (
    float[1, 3, h, w] y, float[1, 3, h, w] next_sum, float[1] next_count)
{
    y = Identity(x)
    next_sum = Add(x, sum)
    one = Constant<value: tensor = float[1] {1.0}>()
    next_count = Add(count, one)
}"""


@pytest.mark.parametrize(("jobs", "lead"), [(1, 0), (2, 0), (1, 2)])
def test_states_follow_the_pictures_of_a_chunk(jobs: int, lead: int, tmp_path: Path) -> None:
    onnx.save(parser.parse_model(COUNTING), tmp_path / "m.onnx")
    carry = {"next_sum": "sum", "next_count": "count"}
    source, out = film(tmp_path / "in", 10), tmp_path / "out"
    pf.process(source, out, tmp_path / "m.onnx", carry=carry, chunk=4, lead=lead, jobs=jobs, suffix=".npz")
    for index in range(10):
        first = max(0, index // 4 * 4 - lead)
        with np.load(out / f"{index:06d}.npz") as arrays:
            assert arrays["next_count"] == [index - first + 1]
            total = sum(grey(one).astype(np.float64) / 255 for one in range(first, index + 1))
            assert np.allclose(arrays["next_sum"][0].transpose(1, 2, 0), total, atol=1e-4)
    with pytest.raises(pf.InputError, match=r"has 3 inputs .* states with carry \(--carry OUTPUT=INPUT\)"):
        pf.process(source, tmp_path / "other", tmp_path / "m.onnx")
    with pytest.raises(pf.InputError, match=r"carry names 'summ', which is not an input; the inputs are .*sum"):
        pf.process(source, tmp_path / "other", tmp_path / "m.onnx", carry={"next_sum": "summ", "next_count": "count"})
    (tmp_path / "script.py").write_text("def update(frame): pass")
    with pytest.raises(pf.InputError, match="carry is for a model without a script"):
        pf.process(source, tmp_path / "other", tmp_path / "m.onnx", script=tmp_path / "script.py", carry=carry)


@pytest.mark.quick(cases=0)
def test_the_command_takes_states(tmp_path: Path) -> None:
    onnx.save(parser.parse_model(COUNTING), tmp_path / "m.onnx")
    film(tmp_path / "in", 3)
    command = [sys.executable, "-m", "perframe.command_line.cli", "process", "in", "--out", "out", "--suffix", ".npz"]
    command += ["--model", "m.onnx", "--carry"]
    done = subprocess.run([*command, "next_sum=sum,next_count=count"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out" / "000002.npz") as arrays:
        assert arrays["next_count"] == [3]
    done = subprocess.run([*command, "next_sum"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0 and "--carry takes OUTPUT=INPUT" in done.stderr
