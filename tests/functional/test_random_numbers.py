"""Random numbers: a seed gives the same ones everywhere, and they are distributed as asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import InputError

F = pf.functional
MANY = (100, 100)


def drawn(seed: int | None) -> pf.Model:
    graph = pf.FunctionalGraph()
    x, p = graph.add_input("float32", ("n", "m"), "x"), graph.add_input("float32", (4,), "p")
    made = {
        "rand": F.rand(MANY, seed=seed),
        "randn": F.randn(*MANY, seed=seed),
        "normal": F.normal(3, 0.5, MANY, seed=seed),
        "randint": F.randint(-2, 5, MANY, seed=seed),
        "rand_like": F.rand_like(x, seed=seed),
        "randn_like": F.randn_like(x, seed=seed),
        "normal_like": F.normal_like(-1, 2, x, seed=seed),
        "randint_like": F.randint_like(x, 3, seed=seed),
        "bernoulli": F.bernoulli(F.full_like(x, 0.25), seed=seed),
        "multinomial": F.multinomial(p, 10000, True, seed=seed),
        "multinomial_once": F.multinomial(p, 3, seed=seed),
        "random_choice": F.random_choice(F.constant([5, 7, 9]), MANY, seed=seed),
        "random_choice_p": F.random_choice(F.constant([5, 7, 9, 11]), (5000,), p, seed=seed),
    }
    return graph.compile(**made)


INPUTS = {"x": np.zeros(MANY, np.float32), "p": np.array([0.1, 0.2, 0, 0.7], np.float32)}


@pytest.mark.slow
def test_distributions() -> None:
    got = pf.run(drawn(5), INPUTS)
    for name in ("rand", "rand_like"):
        assert got[name].min() >= 0 and got[name].max() < 1 and abs(got[name].mean() - 0.5) < 0.02
    for name, mean, deviation in (("randn", 0, 1), ("randn_like", 0, 1), ("normal", 3, 0.5), ("normal_like", -1, 2)):
        assert abs(got[name].mean() - mean) < 0.05 and abs(got[name].std() - deviation) < 0.05, name
    assert got["randint"].dtype == np.int64 and got["randint_like"].dtype == np.float32
    assert sorted(np.unique(got["randint"])) == [*range(-2, 5)]
    assert sorted(np.unique(got["randint_like"])) == [0, 1, 2]
    assert abs(got["bernoulli"].mean() - 0.25) < 0.02 and set(np.unique(got["bernoulli"])) == {0, 1}
    np.testing.assert_allclose(np.bincount(got["multinomial"], minlength=4) / 10000, INPUTS["p"], atol=0.02)
    assert sorted(got["multinomial_once"]) == [0, 1, 3], "no index comes twice, and none of weight 0"
    np.testing.assert_allclose([(got["random_choice"] == value).mean() for value in (5, 7, 9)], 1 / 3, atol=0.03)
    assert set(np.unique(got["random_choice_p"])) == {5, 7, 11}


def test_a_seed_decides_on_every_backend(backend: str, backend_context: Any) -> None:
    want, got = pf.run(drawn(5), INPUTS), {}
    with pf.Worker(drawn(5), backend, backend_context) as worker:
        worker.schedule(INPUTS)
        got = {name: worker.peek_output(name).download_to_array() for name in want}
    for name in ("rand", "randint", "rand_like", "bernoulli", "random_choice"):
        np.testing.assert_allclose(got[name], want[name], atol=1e-6, err_msg=name)
    np.testing.assert_allclose(got["randn"], want["randn"], atol=1e-4)


def test_without_a_seed_each_run_differs() -> None:
    model = drawn(None)
    first, second = (pf.run(model, INPUTS) for _ in range(2))
    assert not [name for name in ("rand", "randn", "randint", "bernoulli") if np.array_equal(first[name], second[name])]


def test_ranges_are_checked() -> None:
    with pytest.raises(InputError, match="no integer from 5 to below 5"):
        F.randint(5, 5, (1,))
    with pytest.raises(InputError, match="more numbers than float32 tells apart"):
        F.randint(0, 1 << 30, (1,))
