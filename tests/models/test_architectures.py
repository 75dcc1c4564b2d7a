"""Architectures of transformers, timm and torchvision agree with onnxruntime on every backend.

These are a dozen of different kinds; `make models` and `make sweep` do all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from agreement import agree

import perframe as pf
from models.architectures import ARCHITECTURES
from models.architectures.exporting import export
from perframe.inspection.comparison import relative_differences

NAMES = (
    "bert",
    "llama",
    "t5",
    "vit",
    "swin",
    "segformer",
    "detr",
    "wav2vec2",
    "whisper",
    "timm_ghostnetv2_100",
    "timm_xcit_nano_12_p16_224",
    "torchvision_deeplabv3_mobilenet_v3_large",
)

Arrays = list[Any]


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Exports an architecture, the first time that it is asked for."""
    folder = tmp_path_factory.mktemp("architectures")

    @cache
    def file(name: str) -> Path:
        export(ARCHITECTURES[name], folder / f"{name}.onnx")
        return folder / f"{name}.onnx"

    return file


def feed(name: str) -> dict[str, Any]:
    architecture = ARCHITECTURES[name]
    return {key: value.numpy() for key, value in zip(architecture.inputs(), architecture.example(), strict=True)}


def run_onnxruntime(file: Path, fed: dict[str, Any], optimize: bool) -> Arrays:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"]).run(None, fed)


@cache
def expected(name: str, file: Path) -> tuple[Arrays, list[float]]:
    """onnxruntime's outputs, and what its own optimizations change."""
    optimized, plain = (run_onnxruntime(file, feed(name), optimize) for optimize in (True, False))
    assert any(np.ptp(value) > 1e-2 * np.abs(value).max() for value in optimized if value.dtype.kind == "f")
    return optimized, relative_differences(plain, optimized)


@pytest.mark.parametrize("name", NAMES)
def test_an_architecture_agrees(name: str, exported: Callable[[str], Path], backend: str, backend_context: Any) -> None:
    file = exported(name)
    wanted, noise = expected(name, file)
    with pf.Worker(pf.load(file), backend, backend_context, strict=True) as worker:
        worker.schedule(feed(name))
        got = [worker.peek_output(output).download_to_array() for output in worker.model.output_names]
    assert [value.dtype for value in got] == [value.dtype for value in wanted]
    apart = relative_differences(got, wanted)
    assert agree(apart, noise), f"differs by {apart}, onnxruntime's own noise is {noise}"
