"""Workers: three ways to pass inputs, outputs by name, a plan for each shape, errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from small import load, node, row


@pytest.fixture
def difference() -> pf.Model:
    """y = a - b, z = exp(a - b), for any number of columns."""
    nodes = [node("Sub", "a b", "y"), node("Exp", "y", "z")]
    return load(nodes, {"a": ["n", 3], "b": ["n", 3]}, "y z")


@pytest.fixture
def worker(difference: pf.Model, backend: str, backend_context: Any) -> Iterator[pf.Worker]:
    with pf.Worker(difference, backend, backend_context) as worker:
        yield worker


A, B = np.full((2, 3), 5, np.float32), np.full((2, 3), 3, np.float32)


def test_inputs_by_position(worker: pf.Worker) -> None:
    assert (worker.schedule(A, B).peek_output().download_to_array() == 2).all()


def test_inputs_by_name(worker: pf.Worker) -> None:
    assert (worker.schedule({"b": B, "a": A}).peek_output().download_to_array() == 2).all()


def test_inputs_set_before(worker: pf.Worker) -> None:
    worker.set_input("b", B)
    worker.set_input(0, A)
    assert (worker.schedule().peek_output().download_to_array() == 2).all()
    worker.set_input("b", A)
    assert (worker.schedule().peek_output().download_to_array() == 0).all()


def test_inputs_in_all_ways_at_once(worker: pf.Worker) -> None:
    worker.set_input("a", B)
    worker.set_input("b", B)
    assert (worker.schedule({"a": A}).peek_output().download_to_array() == 2).all()
    assert (worker.schedule(A).peek_output().download_to_array() == 2).all()


def test_inputs_as_tensors_and_lists_of_them(worker: pf.Worker) -> None:
    tensors = [pf.Tensor(A), pf.Tensor(B)]
    assert (worker.schedule(*tensors).peek_output().download_to_array() == 2).all()
    tensors[1].upload(A)
    assert (worker.schedule(*tensors).peek_output().download_to_array() == 0).all()


def test_an_empty_input_is_filled_by_upload(worker: pf.Worker) -> None:
    tensor = worker.empty_input("a", (2, 3))
    assert tensor.backend_type is worker.backend_type
    tensor.upload(A)
    assert (worker.schedule(tensor, B).peek_output().download_to_array() == 2).all()
    with pytest.raises(pf.InputError, match="open dims"):
        worker.empty_input("a")


def test_the_same_array_twice(worker: pf.Worker) -> None:
    assert not worker.schedule(A, A).peek_output().download_to_array().any()
    tensor = pf.Tensor(A)
    assert not worker.schedule(tensor, tensor).peek_output().download_to_array().any()


def test_outputs_by_name_index_or_the_first(worker: pf.Worker) -> None:
    worker.schedule(A, B)
    want = {"y": 2.0, "z": np.exp(2.0)}
    for key, name in (("y", "y"), ("z", "z"), (0, "y"), (1, "z"), (-1, "z"), (None, "y")):
        output = worker.peek_output(key)
        assert (output.name, output.shape, output.dtype) == (name, (2, 3), pf.DataType.FLOAT32)
        np.testing.assert_allclose(output.download_to_array(), want[name], 1e-5)


WRONG = pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "a: float32"),
        ({"a": A}, "b: float32"),
        ({"a": A, "b": B, "c": B}, "no input 'c'"),
        ({"a": A.astype(np.float64) + 0.1, "b": B}, "'a' is float32, and got float64.*cast=True"),
        ({"a": A.astype(np.float64), "b": B}, "'a' is float32, and got float64.*astype\\('float32'\\)"),  # exact now
        ({"a": A.astype(np.uint8), "b": B}, "'a' is float32, and got uint8.*normalize.*cast=True"),
        ({"a": A.astype(np.int64), "b": B}, "'a' is float32, and got int64.*normalize.*cast=True"),  # exact now
        ({"a": A.astype(np.uint32), "b": B}, "'a' is float32, and got uint32"),
        ({"a": A.astype(np.int16), "b": B}, "'a' is float32, and got int16.*sound as array / 32768.*cast=True"),
        ({"a": A, "b": B[:, :2]}, r"'b' has the shape \(n, 3\), and got \(2, 2\)"),
        ({"a": A, "b": B[0]}, r"'b' has the shape \(n, 3\), and got \(3,\)"),
        ({"a": A, "b": "text"}, "'b' is float32, and got 'text': pass an array"),
        ({"a": A, "b": None}, "'b' is float32, and got None: pass an array"),
        ({"a": A, "b": Image.new("L", (3, 2))}, "'b' is float32, and got uint8.*normalize.*cast=True"),
        ({"a": A[0], "b": B[0]}, r"'a' has the shape \(n, 3\), and got \(3,\)"),
        ({"a": A, "b": B[:1]}, "the dim 'n' is 2 in the input 'a', and 1 in 'b'"),
    ],
)


KIND = pytest.mark.parametrize(
    "inputs",
    [
        {"a": A.tolist(), "b": B},
        {"a": A.astype(np.float16), "b": B.astype(np.float16)},
    ],
    ids=["lists", "smaller types"],
)


@KIND
def test_inputs_that_lose_nothing_are_converted(worker: pf.Worker, inputs: dict[str, Any]) -> None:
    for _ in range(2):
        assert (worker.schedule(inputs).peek_output().download_to_array() == 2).all()
    assert (worker.schedule(**inputs).peek_output().download_to_array() == 2).all()
    assert (worker.schedule(A, b=B).peek_output().download_to_array() == 2).all()
    with pytest.raises(pf.InputError, match="no input 'c'"):
        worker.schedule(A, c=B)


def test_numbers_in_lists_are_rounded_and_arrays_are_not() -> None:
    model = load([node("Neg", "x", "y")], {"x": [2]})
    with pf.Worker(model) as worker:
        assert worker.schedule([0.1, 3]).peek_output().download_to_array().tolist() == [-np.float32(0.1), -3]
        with pytest.raises(pf.InputError, match="float64"):
            worker.schedule(np.array([0.1, 3]))
        with pytest.raises(pf.InputError, match="float64"):
            worker.schedule([1e300, 3])
        with pytest.raises(pf.InputError, match="is not an array"):
            worker.schedule([[1.0], 2.0])
    with pf.Worker(model, cast=True) as worker:
        assert worker.schedule(np.array([0.1, 3])).peek_output().download_to_array().dtype == np.float32


def test_bytes_reach_a_float_input_by_cast_and_not_by_chance() -> None:
    model = load([node("Neg", "x", "y")], {"x": [2]})
    picture = np.array([0, 255], np.uint8)
    with pf.Worker(model) as worker, pytest.raises(pf.InputError, match=r"normalize it .* cast=True"):
        worker.schedule(picture)
    with pf.Worker(model, cast=True) as worker:
        assert worker.schedule(picture).peek_output().download_to_array().tolist() == [0, -255]
    with pf.Worker(load([node("Abs", "x", "y")], {"x": [2]}, dtypes={"x": "int64", "y": "int64"})) as worker:
        assert worker.schedule(picture).peek_output().download_to_array().tolist() == [0, 255]


def test_real_numbers_do_not_become_indices() -> None:
    model = load(
        [node("Gather", "t i", "y")], {"i": [2]}, constants={"t": np.arange(5, dtype=np.float32)}, dtypes={"i": "int64"}
    )
    with pf.Worker(model) as worker:
        assert worker.schedule([3, 1]).peek_output().download_to_array().tolist() == [3, 1]
        for given in (np.ones(2), np.ones(2, np.float32), [1.0, 2.0]):
            with pytest.raises(pf.InputError, match="'i' is int64"):
                worker.schedule(given)


def test_a_worker_loads_what_load_takes(tmp_path: Path) -> None:
    path = tmp_path / "neg.perframe"
    pf.save(load([node("Neg", "x", "y")], {"x": [2]}), path)
    for source in (path, str(path), path.read_bytes()):
        with pf.Worker(source) as worker:
            assert worker.schedule([1, 2]).peek_output().download_to_array().tolist() == [-1, -2]
    with pytest.raises(pf.InputError, match="a Worker runs a Model, and got int"):
        pf.Worker(3)


@WRONG
def test_wrong_inputs_are_named(worker: pf.Worker, inputs: dict[str, Any], words: str) -> None:
    with pytest.raises(pf.InputError, match=words):
        worker.schedule(inputs)
    with pytest.raises(pf.InputError, match="first schedule"):
        worker.peek_output()
    assert (worker.schedule(A, B).peek_output().download_to_array() == 2).all()


@WRONG
def test_wrong_inputs_are_named_between_right_ones(worker: pf.Worker, inputs: dict[str, Any], words: str) -> None:
    """Inputs like those of the run before get fewer checks."""
    for rows in (1, 2):
        assert (worker.schedule(A[:rows], B[:rows]).peek_output().download_to_array() == 2).all()
        with pytest.raises(pf.InputError, match=words):
            worker.schedule(inputs)


def test_too_many_inputs_and_unknown_names(worker: pf.Worker) -> None:
    with pytest.raises(pf.InputError, match="takes 2"):
        worker.schedule(A, B, A)
    for wrong in ("c", 2, -1):
        with pytest.raises(pf.InputError):
            worker.set_input(wrong, A)
    worker.schedule(A, B)
    for wrong in ("x", 2, -3):
        with pytest.raises(pf.InputError, match="small"):
            worker.peek_output(wrong)


def test_a_name_is_one_dim_in_all_inputs(worker: pf.Worker) -> None:
    """Both inputs are declared as (n, 3). One that would broadcast is refused too, because passes rely on names."""
    for rows in (1, 4):
        with pytest.raises(pf.InputError, match="'n' is 2"):
            worker.schedule(A, np.zeros((rows, 3), np.float32))


def test_a_closed_worker_says_so(worker: pf.Worker) -> None:
    worker.schedule(A, B)
    steps = worker.schedule_iterable(A, B)
    next(steps)
    worker.release()
    worker.release()
    calls = [
        lambda: worker.schedule(A, B),
        lambda: worker.peek_output(),
        lambda: worker.set_input("a", A),
        lambda: worker.schedule_iterable(A, B),
        lambda: next(steps),
    ]
    for call in calls:
        with pytest.raises(pf.ClosedError, match="small"):
            call()


def test_no_such_backend(difference: pf.Model) -> None:
    with pytest.raises(pf.InputError, match="cpu, gpu_compute, gpu_pixel"):
        pf.Worker(difference, "tpu")


def test_iterating_yields_layers_and_ends_with_the_values(worker: pf.Worker) -> None:
    assert list(worker.schedule_iterable(A, B)) == ["y", "z"]
    np.testing.assert_allclose(worker.peek_output("z").download_to_array(), np.exp(2), 1e-5)


def test_a_run_that_was_given_up_leaves_nothing_behind(worker: pf.Worker) -> None:
    steps = worker.schedule_iterable(A, B)
    next(steps)
    worker.schedule(B, A)
    np.testing.assert_allclose(worker.peek_output("z").download_to_array(), np.exp(-2), 1e-5)


def test_run_gives_outputs_in_order(difference: pf.Model, backend: str, backend_context: Any) -> None:
    made = pf.run(difference, {"b": B, "a": A}, backend, ctx=backend_context)
    assert list(made) == ["y", "z"]
    assert all(isinstance(value, np.ndarray) and value.dtype == np.float32 for value in made.values())


# --- plans ------------------------------------------------------------------------------------------------------------


def test_shapes_share_one_worker(worker: pf.Worker) -> None:
    for count in (2, 5, 1, 2, 7, 5, 0):
        a = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
        assert (worker.schedule(a, a - 1).peek_output().download_to_array() == 1).all()
        assert worker.peek_output("z").shape == (count, 3)


def test_more_shapes_than_plans_are_kept(worker: pf.Worker) -> None:
    for count in [*range(1, 14), 3, 12]:
        a = np.full((count, 3), count, np.float32)
        np.testing.assert_array_equal(worker.schedule(a, a * 0).peek_output().download_to_array(), a)


def test_a_second_shape_compiles_nothing(worker: pf.Worker, backend: str) -> None:
    if backend != "cpu":
        pytest.skip("shaders are counted in the tests of their backend")
    from perframe.backends.cpu.compile import jit

    worker.schedule(A, B).peek_output().download_to_array()
    before = list(jit.compiled)
    for count in (1, 7, 64):
        a = np.zeros((count, 3), np.float32)
        worker.schedule(a, a).peek_output().download_to_array()
    assert jit.compiled == before


def test_values_that_decide_shapes_make_plans_of_their_own(backend: str, backend_context: Any) -> None:
    nodes = [node("Reshape", "x shape", "r"), node("Neg", "r", "y")]
    model = load(nodes, {"x": [6], "shape": [2]}, dtypes={"shape": "int64"})
    x = np.arange(6, dtype=np.float32)
    with pf.Worker(model, backend, backend_context, strict=True) as worker:
        for shape in ((2, 3), (3, 2), (-1, 1), (2, 3)):
            y = worker.schedule(x, np.array(shape)).peek_output().download_to_array()
            np.testing.assert_array_equal(y, -x.reshape(shape))
        with pytest.raises(pf.InferenceError, match="Reshape"):
            worker.schedule(x, np.array([4, 2]))


def test_its_own_output_is_an_input_of_the_next_frame(backend: str, backend_context: Any) -> None:
    """State that is fed back. It is reversed, so that overwriting it too early is wrong in any order of elements."""
    bounds = {"s": np.array([-1]), "e": np.array([-1000]), "a": np.array([0]), "t": np.array([-1])}
    model = load([node("Slice", "x s e a t", "y")], {"x": [64]}, constants=bounds)
    state = np.arange(64, dtype=np.float32)
    with pf.Worker(model, backend, backend_context) as worker:
        output = worker.schedule(state).peek_output()
        for _ in range(4):
            output = worker.schedule(output).peek_output()
        np.testing.assert_array_equal(output.download_to_array(), state[::-1])


# --- outputs that no layer makes --------------------------------------------------------------------------------------


X = row(1, -2, 3)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(
    ("nodes", "outputs", "want"),
    [
        ([node("Identity", "x", "y")], "y", [X]),
        ([node("Neg", "x", "y")], "y x", [-X, X]),
        ([node("Identity", "c", "y"), node("Neg", "x", "z")], "y z", [row(7, 8, 9), -X]),
        ([node("Neg", "x", "y")], "c y", [row(7, 8, 9), -X]),
        ([node("Add", "c c", "y"), node("Neg", "x", "z")], "y z", [row(14, 16, 18), -X]),
        ([node("Neg", "x", "a"), node("Reshape", "a column", "y")], "y a", [-X.reshape(3, 1), -X]),
        ([node("Reshape", "x column", "a"), node("Reshape", "a flat", "y")], "y a", [X, X.reshape(3, 1)]),
        ([node("Neg", "x", "a"), node("Identity", "a", "y"), node("Identity", "a", "z")], "y z", [-X, -X]),
        ([node("Shape", "x", "y"), node("Neg", "x", "z")], "y z", [np.array([3]), -X]),
        ([node("Neg", "x", "a"), node("Identity", "a", "y"), node("Exp", "a", "z")], "y z", [-X, np.exp(-X)]),
    ],
)
def test_outputs_may_be_inputs_constants_and_each_other(
    nodes: list[Any], outputs: str, want: list[Any], optimize: bool, backend: str, backend_context: Any
) -> None:
    constants = {"c": row(7, 8, 9), "column": np.array([3, 1]), "flat": np.array([-1])}
    model = load(nodes, {"x": [3]}, outputs, constants, optimize=optimize)
    with pf.Worker(model, backend, backend_context) as worker:
        for tensor in (X, pf.Tensor(X), X):
            worker.schedule(tensor)
            for name, value in zip(outputs.split(" "), want, strict=True):
                made = worker.peek_output(name).download_to_array()
                assert (made.shape, made.dtype) == (value.shape, value.dtype)
                np.testing.assert_allclose(made, value, 1e-5)


def test_an_output_that_is_an_input_is_a_copy(backend: str, backend_context: Any) -> None:
    model = load([node("Identity", "x", "y")], {"x": [3]})
    with pf.Worker(model, backend, backend_context) as worker:
        tensor = worker.empty_input()
        tensor.upload(X)
        y = worker.schedule(tensor).peek_output()
        readback = y.readback_request()
        tensor.upload(X * 0)
        np.testing.assert_array_equal(readback.result(wait=True), X)


def test_storage_is_reused_without_mixing_values(backend: str, backend_context: Any) -> None:
    """Many values whose lives overlap in all ways."""
    nodes = [node("Neg", "x", "v0")]
    for i in range(1, 12):
        nodes.append(node("Add", f"v{i - 1} v{max(0, i - 3)}", f"v{i}"))
    model = load([*nodes, node("Sub", "v11 v5", "y")], {"x": ["n"]}, "y v3", optimize=False)

    def numpy(x: Any) -> tuple[Any, Any]:
        values = [-x]
        for i in range(1, 12):
            values.append(values[i - 1] + values[max(0, i - 3)])
        return values[11] - values[5], values[3]

    with pf.Worker(model, backend, backend_context) as worker:
        for count in (3, 50, 3):
            x = np.arange(count, dtype=np.float32)
            worker.schedule(x)
            for index, want in enumerate(numpy(x)):
                np.testing.assert_allclose(worker.peek_output(index).download_to_array(), want, 1e-5)
