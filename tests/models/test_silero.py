"""Voice activity over ten seconds of audio, its state fed back at every step, as onnxruntime has it at every step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import perframe as pf

RATE, STEP, SECONDS = 16000, 512, 10


def audio() -> np.ndarray[Any, Any]:
    """Vowel-like tones that come and go over noise, float32 in -1..1."""
    rng = np.random.default_rng(3)
    t = np.arange(RATE * SECONDS) / RATE
    pitch = 120 + 40 * np.sin(2 * np.pi * 0.7 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voice = sum(np.sin(k * phase) / k for k in range(1, 12)) * (np.sin(2 * np.pi * 0.4 * t) > 0)
    return (0.15 * voice + 0.02 * rng.standard_normal(t.size)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["silero_vad", "silero_vad_op18_ifless"])
def test_every_step_is_onnxruntimes(name: str, shared: Path, backend: str, backend_context: Any) -> None:
    path = shared / "models" / f"{name}.onnx"
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    samples, rate = audio(), np.array(RATE, np.int64)
    ours = theirs = np.zeros((2, 1, 128), np.float32)
    probabilities = []
    with pf.Worker(pf.load(path), backend, backend_context) as worker:
        for first in range(0, samples.size - STEP + 1, STEP):
            step = samples[None, first : first + STEP]
            want, theirs = peer.run(None, {"input": step, "state": theirs, "sr": rate})
            worker.schedule({"input": step, "state": ours, "sr": rate})
            got, ours = (worker.peek_output(index).download_to_array() for index in (0, 1))
            np.testing.assert_allclose(got, want, atol=1e-3, err_msg=f"at sample {first}")
            np.testing.assert_allclose(ours, theirs, atol=5e-3, err_msg=f"the state after sample {first}")
            probabilities.append(float(want[0, 0]))
    assert len(probabilities) == 312 and max(probabilities) > 10 * min(probabilities) and np.abs(theirs).max() > 1
