"""Memory for weights in huge pages: zeros as NumPy's, in parts that nothing shares, freed with the last of them."""

from __future__ import annotations

import gc
import mmap
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends.cpu.lowering import byte_product, gemm
from perframe.backends.cpu.program import huge_pages
from perframe.backends.cpu.program.huge_pages import BLOCK, LARGE, PAGE, SMALL, zeros

HAS_HUGE_PAGES = hasattr(mmap, "MADV_HUGEPAGE")
SIZES = [0, 1, SMALL - 1, SMALL, 100_003, PAGE, LARGE, LARGE + 1, BLOCK + 7]


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def owner(array: np.ndarray[Any, Any]) -> Any:
    """The array that holds the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


@pytest.mark.parametrize("size", SIZES)
def test_they_are_zeros(size: int) -> None:
    array = zeros((size,), np.uint8)
    assert array.shape == (size,) and array.flags.writeable and not array.any()
    array[:] = 7  # the part after it stays zero
    assert not zeros((size,), np.uint8).any()


def test_shapes_and_types_are_those_asked_for() -> None:
    array = zeros((3, 7, 1009), np.float32)
    assert array.shape == (3, 7, 1009) and array.dtype == np.float32 and array.flags.c_contiguous
    assert address(array) % 64 == 0


@pytest.mark.skipif(not HAS_HUGE_PAGES, reason="only Linux has them")
def test_small_ones_share_a_block() -> None:
    first, second = zeros((SMALL + 1,), np.uint8), zeros((SMALL + 1,), np.uint8)
    while owner(first) is not owner(second):  # the block was full
        first, second = second, zeros((SMALL + 1,), np.uint8)
    assert address(second) - address(first) == SMALL + 64


def test_threads_get_parts_of_their_own() -> None:
    def fill(number: int) -> list[np.ndarray[Any, Any]]:
        made = [zeros((SMALL + 64 * index,), np.uint8) for index in range(100)]
        for array in made:
            assert not array.any()
            array[:] = number
        return made

    with ThreadPoolExecutor(4) as threads:
        for number, made in enumerate(threads.map(fill, range(1, 9)), 1):
            assert all((array == number).all() for array in made)


@pytest.mark.skipif(not HAS_HUGE_PAGES, reason="only Linux has them")
def test_a_block_is_freed_with_its_last_part() -> None:
    parts = [zeros((LARGE,), np.uint8) for _ in range(20)]  # eight in a block
    pair = next(at for at in range(1, 20) if owner(parts[at]) is not owner(parts[at - 1]))
    block = weakref.ref(owner(parts[pair]))
    kept = parts[pair]
    del parts
    gc.collect()
    assert block() is not None and not kept.any()
    kept[:] = 3
    del kept
    gc.collect()
    assert block() is None
    assert not zeros((SMALL,), np.uint8).any()  # of another block


@pytest.mark.skipif(not HAS_HUGE_PAGES, reason="only Linux has them")
def test_the_first_page_serves_again_when_no_part_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = huge_pages._HugeBlocks()
    monkeypatch.setattr(huge_pages, "_blocks", blocks)
    places = set()
    for value in range(1, 20):
        made = [zeros((SMALL + 100 * at,), np.uint8) for at in range(5)]
        assert not any(array.any() for array in made)
        places.add(address(made[0]))
        for array in made:
            array[:] = value
        del made, array
        gc.collect()
    assert len(places) == 1
    held = zeros((PAGE,), np.uint8)  # more than the page: it goes with its parts
    block = weakref.ref(owner(held))
    more = zeros((SMALL,), np.uint8)
    assert owner(more) is block() and blocks._kept is None
    del held, more
    gc.collect()
    assert block() is None and not zeros((SMALL,), np.uint8).any()


@pytest.mark.parametrize("missing", ["advice", "memory", "madvise"])
def test_without_huge_pages_numpy_allocates(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(mmap.mmap):
        def madvise(self, *_: Any) -> None:
            raise OSError(22, "Invalid argument")

    def none(*_: Any, **__: Any) -> Any:
        raise OSError(12, "Cannot allocate memory")

    if missing == "advice":
        monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    else:
        monkeypatch.setattr(mmap, "mmap", none if missing == "memory" else Refused)
    made = [zeros((SMALL,), np.float32) for _ in range(BLOCK // (4 * SMALL) + 1)]  # more than a block holds
    assert all(array.shape == (SMALL,) and not array.any() for array in made)


@pytest.mark.skipif(not HAS_HUGE_PAGES, reason="only Linux has them")
@pytest.mark.parametrize("pack", [gemm.pack, lambda matrix: byte_product.pack(matrix.astype(np.int8))])
def test_packed_weights_lie_in_a_block(pack: Callable[[Any], Any]) -> None:
    packed = pack(np.random.default_rng(0).normal(size=(256, 512)).astype(np.float32))
    assert owner(packed).nbytes == BLOCK + PAGE


def test_two_workers_of_different_models_may_share_a_block() -> None:
    rng = np.random.default_rng(1)

    def product(columns: int) -> tuple[pf.Model, np.ndarray[Any, Any]]:
        weights = rng.normal(size=(128, columns)).astype(np.float32)
        graph = pf.FunctionalGraph("product")
        return graph.compile(y=pf.functional.matmul(graph.add_input("float32", (9, 128), "x"), weights)), weights

    x = rng.normal(size=(9, 128)).astype(np.float32)
    (first, first_weights), (second, second_weights) = product(96), product(131)
    with pf.Worker(second) as worker:
        with pf.Worker(first) as other:
            np.testing.assert_allclose(other.schedule(x).peek_output().numpy(), x @ first_weights, atol=1e-4)
            worker.schedule(x).peek_output().numpy()
        del other
        gc.collect()
        np.testing.assert_allclose(worker.schedule(x).peek_output().numpy(), x @ second_weights, atol=1e-4)
