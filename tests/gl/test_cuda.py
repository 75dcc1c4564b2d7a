"""Tensors on a GPU in CUDA, tried with a stand-in for its runtime: values, the order of calls, streams and copies."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import perframe as pf
from gl.cuda_stand_in import Runtime, host_view, on_gpu
from gl.graphs import graph, network
from gl.raw import Application
from perframe.backends.gl.context import devices
from perframe.tensor.dlpack import capsule_of, contents
from support import unavailable

SHAPES = [(), (1,), (3,), (2, 3, 5), (33,), (4, 8, 64), (3, 41, 43), (0, 4)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_])
def test_values_there_and_back(where: str, shape: Any, dtype: Any, cuda: Runtime, gl_context: Any) -> None:
    values = np.random.default_rng(1).integers(0, 2 if dtype is np.bool_ else 99, shape).astype(dtype)
    tensor = on_gpu(values, where, gl_context)
    with tensor.on_cuda() as array:
        view = host_view(array)
        held = {np.float32: "float32", np.float16: "float16"}.get(dtype, "int32")
        assert array.dtype == view.dtype.name == held and array.shape == view.shape == shape
        np.testing.assert_array_equal(view, values)
        view[...] = 1 - view
    np.testing.assert_array_equal(tensor.numpy(), (1 - values.astype(view.dtype)).astype(dtype))
    tensor.release()


@pytest.mark.parametrize("access", ["read", "write", "read_write"])
def test_access_says_what_is_copied(where: str, access: str, cuda: Runtime, gl_context: Any) -> None:
    values = np.arange(77, dtype=np.float32)
    tensor = on_gpu(values, where, gl_context)
    tensor.readback_request()
    while not tensor.is_readback_request_done():
        pass
    with tensor.on_cuda(access=access) as array:
        assert array.__cuda_array_interface__["data"][1] is (access == "read")
        assert contents(array.__dlpack__(max_version=(1, 0))).is_read_only is (access == "read")
        view = host_view(array)
        assert (access == "write") is not np.array_equal(view, values)
        view[:] = 5
    flags = {"read": 1, "write": 2, "read_write": None}[access]
    assert next((call[2] for call in cuda.calls if call[0].endswith("SetMapFlags")), None) == flags
    np.testing.assert_array_equal(tensor.numpy(), values if access == "read" else np.full(77, 5))
    names = cuda.names()
    if where == "gpu_pixel":
        assert (names.count("cudaMemcpy2DFromArrayAsync") == 0) is (access == "write")
        assert (names.count("cudaMemcpy2DToArrayAsync") == 0) is (access == "read")
    else:
        assert not any("Memcpy" in name for name in names)


def test_a_frame_registers_and_allocates_nothing(where: str, cuda: Runtime, gl_context: Any) -> None:
    tensor = on_gpu(np.arange(9, dtype=np.float32), where, gl_context)
    frames = []
    for _ in range(3):
        with tensor.on_cuda(stream=7) as array:
            host_view(array)[:] += 1
        frames.append(cuda.names())
    assert any("Register" in name for name in frames[0])
    assert frames[1] == frames[2]
    assert not any("Register" in name or "Malloc" in name for name in frames[1])
    assert [name for name in frames[1] if "Resource" in name and "Sub" not in name and "Pointer" not in name] == [
        "cudaGraphicsMapResources",
        "cudaGraphicsUnmapResources",
    ]
    np.testing.assert_array_equal(tensor.numpy(), np.arange(9) + 3)


def test_a_release_unregisters_before_gl_deletes(where: str, cuda: Runtime, gl_context: Any) -> None:
    tensor = on_gpu(np.arange(9, dtype=np.float32), where, gl_context)
    with tensor.on_cuda() as array:
        array.__dlpack__(stream=5)
    assert len(cuda.resources) == len(cuda.events) == 1
    tensor.release()
    pf.Tensor(np.zeros(1, np.float32)).pin(where, gl_context)  # dropped objects are freed at the next use
    assert cuda.resources == [] and cuda.events == [] and not cuda.allocated


def test_a_worker_and_cuda_take_turns(where: str, cuda: Runtime, gl_context: Any) -> None:
    functional = pf.FunctionalGraph()
    x = functional.add_input("float32", (1, 3, 8, 8), "x")
    model = functional.compile(y=x * 2)
    given = on_gpu(np.zeros((1, 3, 8, 8), np.float32), where, gl_context)
    with pf.Worker(model, backend=where, ctx=gl_context) as worker:
        for number in range(1, 4):
            with given.on_cuda(access="write") as array:
                host_view(array)[...] = number
            output = worker.schedule(given).peek_output("y")
            with output.on_cuda() as array:
                assert (host_view(array) == 2 * number).all()
                host_view(array)[...] = -number
            assert (output.numpy() == -number).all()
    assert sum("Register" in name for name in cuda.names()) == 2


def test_outputs_of_convolutions_are_row_major(where: str, cuda: Runtime, gl_context: Any) -> None:
    """Such outputs were channel blocks inside the network."""
    values = np.random.default_rng(0).standard_normal((1, 8, 6, 7)).astype(np.float32)
    weights = np.random.default_rng(1).standard_normal((12, 8, 3, 3)).astype(np.float32)
    layers = [("Conv", ["x", "w"], ["z"]), ("Conv", ["z", "v"], ["y"])]
    constants = {"w": weights, "v": np.random.default_rng(2).standard_normal((12, 12, 1, 1)).astype(np.float32)}
    model = graph(layers, {"x": (1, 8, 6, 7)}, constants=constants)
    with pf.Worker(model, backend=where, ctx=gl_context) as worker:
        output = worker.schedule(values).peek_output("y")
        wanted = output.numpy()
        with output.on_cuda(access="read") as array:
            np.testing.assert_array_equal(host_view(array), wanted)


def test_another_shape_is_another_buffer(where: str, cuda: Runtime, gl_context: Any) -> None:
    """A worker enlarges its storage: that has another GL name, which is registered again."""
    functional = pf.FunctionalGraph()
    x = functional.add_input("float32", ("n",), "x")
    with pf.Worker(functional.compile(y=x * 2), backend=where, ctx=gl_context) as worker:
        for count in (5, 5000, 7, 5000):
            values = np.arange(count, dtype=np.float32)
            with worker.schedule(values).peek_output("y").on_cuda() as array:
                np.testing.assert_array_equal(host_view(array), values * 2)
    on_gpu(np.zeros(1, np.float32), where, gl_context).release()
    assert cuda.resources == [] and not cuda.allocated


def test_halves_of_a_worker(where: str, cuda: Runtime, gl_context: Any) -> None:
    functional = pf.FunctionalGraph()
    x = functional.add_input("float32", (5,), "x")
    model = functional.compile(y=x + 1)
    with pf.Worker(model, backend=where, ctx=gl_context, activations="float16") as worker:
        output = worker.schedule(np.arange(5, dtype=np.float32)).peek_output("y")
        with output.on_cuda() as array:
            assert array.dtype == ("float16" if output.data_on_backend.element_bytes == 2 else "float32")
            np.testing.assert_array_equal(host_view(array), np.arange(1, 6))


def test_dlpack_describes_the_memory(where: str, cuda: Runtime, gl_context: Any) -> None:
    cuda.device, cuda.devices_of_context = 3, [2, 3]
    tensor = on_gpu(np.arange(6, dtype=np.int64).reshape(2, 3), where, gl_context)
    with tensor.on_cuda() as array:
        assert array.__dlpack_device__() == (2, 3)
        for version in (None, (1, 0)):
            found = contents(array.__dlpack__(stream=1, max_version=version))
            assert (found.address, found.shape, found.strides) == (array.address, (2, 3), (3, 1))
            assert (found.dtype, found.device) == ("int32", (2, 3))
        with pytest.raises(pf.InputError, match="is not exported to"):
            array.__dlpack__(dl_device=(1, 0))
        with pytest.raises(pf.InputError, match="let the other library copy it"):
            array.__dlpack__(copy=True)
    for use in (lambda: array.address, lambda: array.__dlpack__(), lambda: array.__cuda_array_interface__):
        with pytest.raises(pf.ClosedError, match="used after the end of its block"):
            use()


def test_streams_wait_for_each_other(where: str, cuda: Runtime, gl_context: Any) -> None:
    tensor = on_gpu(np.arange(6, dtype=np.float32), where, gl_context)
    with tensor.on_cuda(stream=SimpleNamespace(cuda_stream=40)) as array:
        assert array.__cuda_array_interface__["stream"] == 40
        cuda.calls.clear()
        array.__dlpack__(stream=40)  # its own
        array.__dlpack__(stream=-1)  # the consumer orders its work itself
        assert cuda.calls == []
        array.__dlpack__(stream=50)
        array.__dlpack__()  # the default stream
        event = cuda.events[0]
        waits = [("cudaEventRecord", event, 40), ("cudaStreamWaitEvent", 50, event, 0)]
        waits += [("cudaEventRecord", event, 40), ("cudaStreamWaitEvent", 1, event, 0)]
        assert cuda.calls[-4:] == waits
        cuda.calls.clear()
    order = [("cudaEventRecord", event, 50), ("cudaStreamWaitEvent", 40, event, 0)]
    assert cuda.calls[:4] == [*order, ("cudaEventRecord", event, 1), ("cudaStreamWaitEvent", 40, event, 0)]
    assert cuda.calls[-1][0] == "cudaGraphicsUnmapResources" and cuda.calls[-1][3] == 40
    with tensor.on_cuda() as array:
        assert array.__cuda_array_interface__["stream"] == 1  # 0 is not allowed there
        cuda.calls.clear()
        array.__dlpack__(stream=1)
        assert cuda.calls == []


class OtherLibrary:
    """An array of another library in CUDA memory."""

    def __init__(self, values: Any, device: int = 2) -> None:
        self.values, self.device, self.streams = values, (device, 0), list[Any]()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, stream: Any = None) -> Any:
        self.streams.append(stream)
        address, dtype = self.values.ctypes.data, pf.DataType.of(self.values.dtype)
        return capsule_of(self.values, address, self.values.shape, dtype, device=self.device)


class OldLibrary:
    """One without DLPack."""

    def __init__(self, values: Any, stream: int | None = None) -> None:
        interface = values.__array_interface__
        self.__cuda_array_interface__ = {name: interface[name] for name in ("shape", "typestr", "strides", "data")}
        self.__cuda_array_interface__ |= {"version": 3, "stream": stream}
        self.values = values


@pytest.mark.parametrize("kind", [OtherLibrary, OldLibrary])
def test_an_array_is_copied_on_the_device(where: str, kind: Any, cuda: Runtime, gl_context: Any) -> None:
    tensor = on_gpu(np.zeros((3, 50), np.float32), where, gl_context)
    values = np.random.default_rng(2).standard_normal((3, 50)).astype(np.float32)
    given = kind(values)
    tensor.copy_from_cuda(given, stream=9)
    np.testing.assert_array_equal(tensor.numpy(), values)
    copies = [call for call in cuda.calls if call[0] == "cudaMemcpyAsync"]
    assert [call[3:] for call in copies] == [(600, cuda.cudaMemcpyKind.cudaMemcpyDeviceToDevice, 9)]
    assert "cudaMemcpy2DFromArrayAsync" not in cuda.names()
    if kind is OtherLibrary:
        assert given.streams == [9]
    else:
        tensor.copy_from_cuda(OldLibrary(values, 12), stream=9)
        event = cuda.events[0]
        assert ("cudaEventRecord", event, 12) in cuda.calls and ("cudaStreamWaitEvent", 9, event, 0) in cuda.calls


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            OtherLibrary(np.zeros((2, 3), np.float32)),
            r"int32 \(3, 2\) .*, not float32 \(2, 3\); a GPU holds bool",
        ),
        (OtherLibrary(np.zeros((3, 2), np.bool_)), "not bool"),
        (OldLibrary(np.zeros((2, 3), np.int32).T), "row-major order: make it contiguous"),
        (OtherLibrary(np.zeros((3, 2), np.int32), device=1), r"not in CUDA memory: upload\(array\)"),
        ([[0, 0]] * 3, "neither __dlpack__ nor __cuda_array_interface__"),
    ],
)
def test_an_array_that_does_not_fit(where: str, given: Any, message: str, cuda: Runtime, gl_context: Any) -> None:
    values = np.array([[0, 1], [1, 0], [1, 1]], bool)
    tensor = on_gpu(values, where, gl_context)
    with pytest.raises(pf.InputError, match=message):
        tensor.copy_from_cuda(given)
    assert cuda.calls == []
    np.testing.assert_array_equal(tensor.numpy(), values)


def test_gl_state_stays(where: str, cuda: Runtime, gl_context: Any) -> None:
    application = Application(gl_context)
    tensor = on_gpu(np.arange(6, dtype=np.float32), where, gl_context)
    before = application.gl.state()
    with tensor.on_cuda() as array:
        assert application.gl.state() == before
        host_view(array)[:] = 0
    assert application.gl.state() == before


def test_another_network_runs_meanwhile(where: str, cuda: Runtime, gl_context: Any) -> None:
    tensor = on_gpu(np.arange(6, dtype=np.float32), where, gl_context)
    given = np.zeros((1, 3, 4, 4), np.float32)
    with pf.Worker(network(), backend=where, ctx=gl_context) as worker, tensor.on_cuda():
        worker.schedule(given).peek_output().numpy()


def test_the_program_of_the_page(
    cuda: Runtime, gl_context: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy stands in for CuPy."""
    if gl_context.version_code < 430:
        unavailable("gpu_compute needs GL 4.3")
    page = (Path(__file__).parents[2] / "docs" / "other-libraries.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", page, re.S | re.M)
    program, shown = next(block for block in blocks if "on_cuda" in block[0])
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(from_dlpack=host_view))
    device = devices.device_for(None)  # the program has no context, and the stand-in needs that of its tensors
    with device.current():
        runtime = Runtime(device.ctx)
    monkeypatch.setattr(sys.modules["cuda.bindings"], "runtime", runtime)
    exec(compile(program, "other-libraries.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == shown
    gl_context.__enter__()
