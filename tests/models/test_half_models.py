"""Models of float16 on both GL backends, strictly: results of float32, with half of the memory for weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from models.halves import in_float16, rounded
from models.zoo import SHARED, ZOO, Entry, imagenet

LEAST_ROUNDED = {"cpu": (5e-4, 2e-4)}  # it rounds only inputs and outputs
ROUNDED = 2e-3, 3e-4
# Edges of a segment are steep: if each layer of this file rounds its results, single pixels change as much.
STEEP = {"selfie_segmentation": (0.08, 2e-3)}
PICTURE = (1, 3, 224, 224)
LARGE = ("densenet121", "inception_v1", "inception_v2", "shufflenet")
TEN = (*ZOO, *(Entry(f"light_{name}", PICTURE, imagenet, small=name == "shufflenet") for name in LARGE))

pytestmark = pytest.mark.usefixtures("shared")


def size_of_weights(worker: pf.Worker) -> int:
    return sum(part.read + part.packed for part in worker.memory_use)


def outputs(worker: pf.Worker, x: Any) -> dict[str, Any]:
    worker.schedule(x)
    return {name: worker.peek_output(name).download_to_array() for name in worker.model.output_names}


@pytest.mark.parametrize("entry", [pytest.param(e, marks=[] if e.small else pytest.mark.slow) for e in TEN], ids=str)
def test_results_are_those_of_float32(entry: Entry, backend: str, backend_context: Any) -> None:
    proto = onnx.load_from_string(entry.file) if isinstance(entry.file, bytes) else onnx.load(entry.file)
    x = entry.real(SHARED / "images" / "astronaut.png").astype(np.float16)
    most, most_typical = LEAST_ROUNDED.get(backend) or STEEP.get(entry.name, ROUNDED)
    half, strict = pf.load(in_float16(proto)), backend != "cpu"
    expected = pf.run(rounded(proto), {half.inputs[0].name: x.astype(np.float32)})
    with (
        pf.Worker(half, backend, backend_context, strict=strict) as worker,
        pf.Worker(rounded(proto), backend, backend_context, strict=strict) as whole,
    ):
        found = outputs(worker, x)
        for name, value in expected.items():
            assert found[name].dtype == np.float16 and found[name].shape == value.shape
            error = np.abs(found[name] - value) / np.abs(value).max()
            typical = np.sqrt(np.mean(error**2))
            assert error.max() <= most, f"{name} differs by {error.max():.2g} of its largest value"
            assert typical <= most_typical, f"{name} differs by {typical:.2g} in the root mean square"
        if strict:
            outputs(whole, x.astype(np.float32))
            assert not worker.fallbacks
            assert size_of_weights(worker) <= 0.52 * size_of_weights(whole)
