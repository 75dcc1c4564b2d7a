"""The table of calls names every function, and the backends agree on them. test_with_torch.py compares the values."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from functional.calling import run
from functional.cases import CASES, ELSEWHERE
from functional.sentis import SENTIS
from perframe.functional.methods import Methods

ROOT = Path(__file__).resolve().parents[2]
# one or more of each family, and those that are built from several layers
ON_EVERY_BACKEND = (
    "log1p atan2 floor_divide remainder fmod round clamp where logical_xor bitwise_and nan_to_num softplus prelu glu "
    "swish sum var norm any argmax topk sort cumsum flatten movedim tile repeat_interleave split flip roll stack "
    "diagonal as_strided pad gather index_select one_hot scatter scatter_reduce slice_scatter full_like arange "
    "meshgrid einsum scaled_dot_product_attention conv2d conv_transpose2d max_pool2d avg_pool2d adaptive_avg_pool2d "
    "batch_norm layer_norm rms_norm interpolate grid_sample pixel_shuffle unfold stft nms box_iou"
)


def test_every_function_is_in_the_table() -> None:
    public = {name for name in vars(pf.functional) if name in pf.functional.__all__}
    assert public == {*CASES, *ELSEWHERE}


def test_functions_of_an_input_are_methods() -> None:
    called = {name: getattr(pf.functional, name) for name in pf.functional.__all__}
    of_input = {name for name, one in called.items() if next(iter(inspect.signature(one).parameters)) == "input"}
    methods = {name for name in vars(Methods) if not name.startswith("_")}
    assert methods == of_input
    assert all(getattr(pf.FunctionalTensor, name) is called[name] for name in methods)


def test_functions_show_their_signatures(capsys: pytest.CaptureFixture[str]) -> None:
    help(pf.functional.leaky_relu)
    shown = capsys.readouterr().out
    assert "leaky_relu(input: 'Given', negative_slope: 'float' = 0.01) -> 'FunctionalTensor'" in shown
    assert "Return x, and negative_slope * x for negative x." in shown


def test_all_of_sentis_is_here() -> None:
    assert len(SENTIS) > 180
    assert not {new for new in SENTIS.values() if not callable(getattr(pf.functional, new, None))}


@pytest.mark.parametrize("name", CASES)
def test_every_function_has_a_sentence(name: str) -> None:
    sentence = getattr(pf.functional, name).__doc__
    assert sentence and sentence.splitlines()[0][0].isupper() and sentence.strip().endswith(".")


@pytest.mark.slow
def test_backends_agree(backend: str, backend_context: Any) -> None:
    """All these calls are one model: the NumPy of the reference backend is compared with each backend's kernels."""
    calls = [(name, case) for name in ON_EVERY_BACKEND.split() for case in CASES[name]]
    expected = [[*results] for results in run(calls, "cpu")]
    for (name, case), got, want in zip(calls, run(calls, backend, backend_context), expected, strict=True):
        for one, other in zip(got, want, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape), name
            np.testing.assert_allclose(one, other, 1e-4, 1e-4, err_msg=f"{name}: {case.args!r:.300}")
