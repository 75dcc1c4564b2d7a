"""Tuning: every variant computes the same, the fastest is kept by driver, and broken files do no harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends import gl_choices, gl_variants
from perframe.backends.gl.compile.variants import Choices
from perframe.backends.gl.lowering import block_winograd
from perframe.execution import tuning
from small import load, node

RANDOM = np.random.default_rng(3)
TILES = [(kernel, variant) for kernel, variants in gl_variants().items() if "x" in variants[0] for variant in variants]


def convolution(kind: str, size: int) -> tuple[Any, dict[str, Any]]:
    """A convolution of this kind, and its input."""
    shape = {"window": (36, 20, 3, 3), "pointwise": (36, 20, 1, 1), "depthwise": (20, 1, 3, 3)}[kind]
    weights = RANDOM.normal(size=shape).astype(np.float32)
    group, pad = 20 if kind == "depthwise" else 1, shape[-1] // 2
    layer = node("Conv", "x w", "y", group=group, pads=[pad] * 4)
    x = RANDOM.normal(size=(2, 20, size, size + 1)).astype(np.float32)
    return load([layer], {"x": list(x.shape)}, constants={"w": weights}), {"x": x}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path))


@pytest.fixture
def choices(gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> Choices:
    """The variants on the context's driver; those that a test chooses are gone after it."""
    found: Choices = gl_choices(gl_context)
    monkeypatch.setattr(found, "_chosen", dict(found._chosen))
    return found


@pytest.mark.parametrize(("kernel", "variant"), TILES)
def test_every_tile_computes_the_same(kernel: str, variant: str, gl_context: Any, choices: Choices) -> None:
    kind, _, of_maps = kernel.partition(", ")
    sizes = {"small map": 7, "middle map": 13, "": 17}
    model, feed = convolution(kind.removesuffix(" patch"), sizes[of_maps])
    wanted = pf.run(model, feed)["y"]
    choices.asked.clear()
    with choices.trying(kernel, variant):
        y = pf.run(model, feed, "gpu_compute", strict=True, ctx=gl_context)["y"]
    assert kernel in choices.asked
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("dims", "options", "asks"),
    [
        (["n", 64, 40, 40], {}, True),
        (["n", 64, "h", 40], {}, False),
        (["n", 64, 40, 40], {"activations": "float16"}, False),
        ([2, 64, 40, 40], {}, False),
    ],
)
def test_winograds_way_needs_one_size_and_full_precision(
    dims: list[Any],
    options: dict[str, Any],
    asks: bool,
    gl_context: Any,
    choices: Choices,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another size may not compile another kernel, halves are too coarse, and points of many pictures are too large."""
    monkeypatch.setattr(block_winograd, "MOST_TEXELS", 36 * 100 * 16)
    model = load([node("Conv", "x w", "y", pads=[1] * 4)], {"x": dims}, constants={"w": np.ones((64, 64, 3, 3), "f4")})
    choices.asked.clear()
    with pf.Worker(model, "gpu_compute", gl_context, **options) as worker:
        worker.schedule(np.ones((2 if dims[0] == 2 else 1, 64, 40, 40), np.float32))
        assert ("window of 3 x 3" in choices.asked) is asks


@pytest.mark.parametrize("variant", gl_variants()["depthwise lines"])
@pytest.mark.parametrize(
    ("size", "window"),
    [
        ((7, 24), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ((9, 16), {"kernel_shape": [5, 7], "pads": [1, 3, 5, 3], "dilations": [2, 1]}),
        ((9, 8), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ((9, 12), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),  # lines that begin in the middle of a strip
        ((7, 20), {"kernel_shape": [5, 3], "pads": [3, 1, 2, 1]}),  # planes that begin there too
        ((5, 4), {"kernel_shape": [2, 3], "pads": [2, 1, 3, 1], "dilations": [3, 1]}),  # two lines in each strip
        ((9, 8), {"kernel_shape": [3, 3], "pads": [1, 0, 1, 2]}),  # the window's middle is beside the pixel
        ((9, 13), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),  # lines that end within a strip
        ((7, 7), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),  # lines that begin and end within one
        ((7, 7), {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}),
        ((7, 7), {"kernel_shape": [7, 7], "pads": [3, 3, 3, 3]}),
        ((6, 14), {"kernel_shape": [5, 5], "pads": [3, 2, 5, 2], "dilations": [2, 1]}),
        ((5, 11), {"kernel_shape": [7, 7], "pads": [2, 3, 4, 3]}),
        ((6, 9), {"kernel_shape": [3, 1], "pads": [1, 0, 1, 0]}),
        ((6, 9), {"kernel_shape": [3, 3], "pads": [0, 1, 1, 1]}),  # fewer lines than the data has
        ((6, 6), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),  # three lines in a strip
    ],
    ids=str,
)
def test_depthwise_lines_compute_the_same(
    size: tuple[int, int], window: dict[str, Any], variant: str, gl_context: Any, choices: Choices
) -> None:
    weights = RANDOM.normal(size=(20, 1, *window["kernel_shape"])).astype(np.float32)
    x = RANDOM.normal(size=(2, 20, *size)).astype(np.float32)
    x[0, 3, 4, -1] = np.inf  # must not reach the line below
    x[0, 8, 3, 0] = np.nan
    model = load([node("Conv", "x w", "y", group=20, **window)], {"x": list(x.shape)}, constants={"w": weights})
    wanted = pf.run(model, {"x": x})["y"]
    with choices.trying("depthwise lines", variant):
        y = pf.run(model, {"x": x}, "gpu_pixel", strict=True, ctx=gl_context)["y"]
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("cache")
def test_the_fastest_variant_is_kept_for_later_processes(
    gl_context: Any, choices: Choices, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seconds = tuning.Worker, dict[Any, float]()

    def planned(*arguments: Any) -> Any:
        """A worker that seems as fast as the variant that was chosen when it was made."""
        worker = real(*arguments)
        seconds[worker] = 0.5 if choices["window"] == "4x2x1" else 1.0
        return worker

    measure = tuning._step_times
    monkeypatch.setattr(tuning, "Worker", planned)
    monkeypatch.setattr(tuning, "_step_times", lambda worker, x: [seconds[worker] for _ in measure(worker, x)])
    model, feed = convolution("window", 13)
    (trial,) = [trial for trial in pf.tune(model, feed, ctx=gl_context, repeats=1) if trial.kernel == "window"]
    assert trial.chosen == "4x2x1" != trial.before and set(trial.seconds) == set(gl_variants()["window"])
    assert choices["window"] == "4x2x1" == Choices(choices.driver)["window"]
    assert Choices(("another", "GPU", "1"))["window"] == gl_variants()["window"][0]


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("where", ["gpu_compute", "gpu_pixel"])
def test_real_times_are_measured_on_both_backends(where: str, gl_context: Any, choices: Choices) -> None:
    model, feed = convolution("pointwise", 13)
    trials = pf.tune(model, feed["x"], where, gl_context, repeats=1)  # the only input, without its name
    kernels = {"gpu_compute": {"reads", "pointwise"}, "gpu_pixel": {"texels"}}[where]
    assert {trial.kernel for trial in trials} == kernels
    assert all(seconds > 0 for trial in trials for seconds in trial.seconds.values())


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("text", ["", "{", "[]", '{"chosen": 3}', '{"chosen": {"window": ["4x2x1"]}}'])
def test_a_damaged_file_leaves_the_defaults(text: str, choices: Choices) -> None:
    choices.path.parent.mkdir(parents=True)
    defaults = Choices(choices.driver)._chosen  # not those of the developer's own cache
    choices.path.write_text(text)
    assert Choices(choices.driver)._chosen == defaults


@pytest.mark.usefixtures("cache")
def test_a_variant_that_is_gone_is_left_out(choices: Choices) -> None:
    choices.path.parent.mkdir(parents=True)
    chosen = {"window": "99x99x1", "gone": "1", "pointwise": "4x2x1"}
    defaults = Choices(choices.driver)._chosen
    choices.path.write_text(json.dumps({"chosen": chosen}))
    assert Choices(choices.driver)._chosen == defaults | {"pointwise": "4x2x1"}


def test_the_cpu_has_nothing_to_tune(monkeypatch: pytest.MonkeyPatch) -> None:
    model, feed = convolution("window", 5)
    with pytest.raises(pf.BackendError, match="gpu_compute"):
        pf.tune(model, feed, "cpu")
    monkeypatch.setattr("perframe.backends.choose_backend", lambda ctx: (pf.BackendType.CPU, "no GPU"))
    with pytest.raises(pf.BackendError, match="'auto' chooses the CPU here"):
        pf.tune(model, feed, "auto")
    with pytest.raises(pf.InputError, match="at least 1"):
        pf.tune(model, feed, "gpu_pixel", repeats=0)
