"""The page "Coming from Sentis" lists all public names, and each expression there works."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.resources import resource
from sentis_names import BLOCK, FROM_FILE, PAGE, TYPES, page

ROWS = [(title, theirs, ours) for title, rows in TYPES.items() for theirs, ours in rows.items()]
FILE = Path(str(resource("assets") / "languages" / "tokenizer.json"))


@pytest.fixture
def names(tmp_path: Path, gl_context: Any) -> dict[str, Any]:
    """The names that expressions use."""
    model = pf.load("digits")
    pf.save(model, tmp_path / "m.perframe")
    array = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    tensor, graph = pf.Tensor(array), pf.FunctionalGraph()
    worker = pf.Worker(model)
    worker.schedule(tensor)
    worker.set_input("ink", tensor)
    return {
        **{"pf": pf, "np": np, "math": math, "io": io, "model": model, "worker": worker, "array": array},
        **{"tensor": tensor, "shape": tensor.shape, "storage": tensor.data_on_backend, "path": tmp_path / "m.perframe"},
        **{"graph": graph, "f": graph.add_input("float32", (2, 8)), "commands": pf.CommandBuffer(gl_context)},
        **{"converter": pf.TextureConverter(), "picture": np.zeros((6, 8, 3), np.uint8), "ctx": gl_context},
        **{"canvas": pf.Tensor(np.zeros((1, 3, 6, 8), np.float32)), "how": pf.TextureTransform()},
        **{"dynamic": pf.DynamicTensorShape(("n", 3)), "tokenizer_json": FILE},
    }


@pytest.mark.parametrize(("title", "theirs", "ours"), ROWS, ids=[f"{title}: {theirs}" for title, theirs, _ in ROWS])
def test_what_stands_for_a_name_works(title: str, theirs: str, ours: str, names: dict[str, Any]) -> None:
    if title.startswith("Tokenizer"):
        pytest.importorskip("tokenizers", reason="needs the extra tokenizers")
        names["tokenizer"] = pf.text.Tokenizer(FILE)
    if "gpu_compute" in ours and names["ctx"].version_code < 430:
        pytest.skip("compute shaders need GL 4.3")
    made = eval(ours, names)
    if ours.startswith("ctx and "):
        assert made.backend_type in ours and names["tensor"].data_on_backend is made
    assert made is not None or ours.endswith(")")  # only calls may return nothing


def test_the_page_has_all_names() -> None:
    (found,) = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert found == page(), "run python tests/sentis_names.py"
    assert len(ROWS) > 130 and len(FROM_FILE.split()) == len(set(FROM_FILE.split()))
