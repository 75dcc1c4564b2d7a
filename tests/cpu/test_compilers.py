"""Kernels are compiled in other processes, which end with this one; where none can be had, here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf
from fresh import run_fresh
from perframe.backends.cpu.compile import compilers, jit
from perframe.backends.cpu.compile.compilers import GREETING, Compilers
from perframe.errors import BackendError, InputError
from small import load, node
from support import unavailable

RUN = """
import json, sys
import numpy as np
import perframe as pf
from perframe.backends import compiled_kernels, settle_kernels
with pf.Worker(pf.load(sys.argv[1])) as worker:
    request = worker.schedule(np.arange(6, dtype=np.float32).reshape(2, 3)).peek_output().readback_request()
    done, y = request.done, request.result(wait=True)
settle_kernels()
print(json.dumps([y.tolist(), "numba" in sys.modules, len(compiled_kernels()[1]), done]))
"""
BEGIN = """
import sys, time
from perframe.backends.cpu.compile import jit
jit.kernel("gemm")
print("begun", flush=True)
time.sleep(60)
"""
EXPECTED = np.exp(-np.arange(6, dtype=np.float32).reshape(2, 3))


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Compilers:
    """Processes of a test's own, which wait for work only briefly."""
    made = Compilers()
    monkeypatch.setattr(compilers, "IDLE", 0.5)
    monkeypatch.setattr(jit, "compilers", lambda: made)
    return made


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Of y = exp(-x)."""
    path = tmp_path / "m.onnx"
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    graph = helper.make_graph([node("Neg", "x", "n"), node("Exp", "n", "y")], "small", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def start(program: str, *arguments: Any, **environment: str) -> subprocess.Popen[str]:
    """A process with an environment of its own."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)


def outcome(process: subprocess.Popen[str]) -> list[Any]:
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    found: list[Any] = json.loads(printed.splitlines()[-1])
    np.testing.assert_allclose(found[0], EXPECTED, rtol=1e-5)
    return found[1:]


def wait_until(condition: Any) -> None:
    end = time.monotonic() + 180  # compilers give way to whatever else runs
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_the_process_itself_holds_no_numba_and_waits_for_nothing(tmp_path: Path, model: Path) -> None:
    numba, compiled, done = outcome(start(RUN, model, PERFRAME_CACHE=str(tmp_path), PERFRAME_COMPILERS="2"))
    assert (numba, done) == (False, False) and compiled > 0
    assert outcome(start(RUN, model, PERFRAME_CACHE=str(tmp_path)))[:2] == [False, 0]


@pytest.mark.slow
def test_without_processes_kernels_are_compiled_here(tmp_path: Path, model: Path) -> None:
    numba, compiled, _ = outcome(start(RUN, model, PERFRAME_CACHE=str(tmp_path), PERFRAME_COMPILERS="0"))
    assert numba and compiled > 0


@pytest.mark.slow
def test_two_processes_may_compile_the_same(tmp_path: Path, model: Path) -> None:
    both = [start(RUN, model, PERFRAME_CACHE=str(tmp_path), PERFRAME_COMPILERS="1") for _ in range(2)]
    for process in both:
        outcome(process)
    assert {path.suffix for path in (tmp_path / "kernels").iterdir()} == {".o"}
    assert outcome(start(RUN, model, PERFRAME_CACHE=str(tmp_path)))[1] == 0


@pytest.mark.slow
def test_kernels_go_back_where_the_cache_cannot_be_written(tmp_path: Path, model: Path) -> None:
    (tmp_path / "file").write_text("")
    found = [outcome(start(RUN, model, PERFRAME_CACHE=str(tmp_path / "file"))) for _ in range(2)]
    assert all(not numba and compiled > 0 for numba, compiled, _ in found)


@pytest.mark.parametrize("processes", ["0", "1"])
def test_an_error_names_the_kernel(
    processes: str, cache: Path, fresh: Compilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFRAME_COMPILERS", processes)
    for _ in range(2):
        with pytest.raises(BackendError, match=r"the kernel 'elementwise' could not be compiled: \w+Error"):
            np.array([jit.kernel("elementwise", "nonsense = = 1")], np.int64)


@pytest.mark.quick(cases=0)
def test_an_error_reaches_the_reader(cache: Path, fresh: Compilers, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = jit.kernel.__wrapped__
    monkeypatch.setattr(jit, "kernel", lambda name, text="": asked(name, text and "nonsense = = 1"))
    with pf.Worker(load([node("Exp", "x", "y")], {"x": [2, 3]})) as worker:
        worker.schedule(EXPECTED)
        with pytest.raises(BackendError, match="the kernel 'elementwise'"):
            worker.peek_output().download_to_array()


@pytest.mark.slow
def test_processes_end_when_there_is_nothing_to_do(cache: Path, fresh: Compilers) -> None:
    assert int(jit.kernel("pad"))
    fresh.settle()
    assert not fresh.busy
    wait_until(lambda: "perframe-compiler" not in [thread.name for thread in threading.enumerate()])
    assert int(jit.kernel("gemm.scale"))  # in a new one


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_processes_end_with_the_one_that_was_killed(tmp_path: Path) -> None:
    process = start(BEGIN, PERFRAME_CACHE=str(tmp_path))
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    wait_until(lambda: children(process.pid))
    found = children(process.pid)
    time.sleep(1)  # in the middle of a kernel
    process.kill()
    process.communicate()
    wait_until(lambda: not any(map(runs, found)))


def children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def impostor(folder: Path, lines: str) -> str:
    """A program that is called like an interpreter."""
    path = folder / "python-of-another-kind"
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.slow
def test_a_process_reads_requests_only_when_all_libraries_are_loaded() -> None:
    """On Windows a library that looks at its streams while it is loaded would wait for the reader for ever."""
    run_fresh(
        "import os, sys, threading\n"
        "from perframe.backends.cpu.compile import compile_process\n"
        "os.dup2(os.open(os.devnull, os.O_RDONLY), 0)\n"
        "start = threading.Thread.start\n"
        "def starting(thread):\n"
        "    assert 'numba' in sys.modules, 'it reads too early'\n"
        "    start(thread)\n"
        "threading.Thread.start = starting\n"
        "compile_process.main()\n"
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="writes shell scripts")
@pytest.mark.parametrize(
    "lines", ["exit 1", "echo usage: something", f"printf '{GREETING.decode()!s}'; read x; exit 3"]
)
def test_what_no_process_compiles_is_compiled_here(
    lines: str, cache: Path, fresh: Compilers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", impostor(tmp_path, lines))
    requested = [jit.kernel("pad"), jit.kernel("gemm.scale"), jit.kernel("walk.build_help")]
    assert all(int(address) for address in requested)
    assert len(list(cache.iterdir())) == 3


def test_frozen_programs_are_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compilers.process_count() > 0
    monkeypatch.setattr(sys, "executable", "/usr/bin/painter")
    assert compilers.process_count() == 0
    monkeypatch.undo()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert compilers.process_count() == 0


def test_the_number_of_processes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_COMPILERS", "3")
    assert compilers.process_count() == 3
    monkeypatch.setenv("PERFRAME_COMPILERS", "many")
    with pytest.raises(InputError, match="PERFRAME_COMPILERS"):
        jit.kernel("pad")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_wait_for_the_threads_of_another(cache: Path, fresh: Compilers) -> None:
    address = jit.kernel("gemm.scale")
    child = os.fork()
    if not child:
        os._exit(0 if int(address) else 1)
    assert os.waitpid(child, 0)[1] == 0
    fresh.settle()


@pytest.mark.parametrize("where", ["gpu_compute", "gpu_pixel"])
def test_a_gpu_asks_only_for_the_kernels_of_its_host_part(
    where: str, gl_context: Any, fresh: Compilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "gpu_compute" and gl_context.version_code < 430:
        unavailable("gpu_compute needs GL 4.3")
    asked: list[str] = []
    kernel = jit.kernel
    monkeypatch.setattr(jit, "kernel", lambda name, text="": asked.append(name) or kernel(name, text))
    with pf.Worker(load([node("Exp", "x", "y")], {"x": [2, 3]}), where, gl_context) as worker:
        worker.schedule(EXPECTED).peek_output().download_to_array()
    assert not asked


@pytest.mark.slow
def test_a_process_that_stops_answering_is_ended(
    cache: Path, fresh: Compilers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It greets, takes the request, and says nothing more: the kernel is compiled here."""
    silent = tmp_path / "python-silent"
    silent.write_text(f"#!/bin/sh\nprintf '{GREETING.decode()}'; read request; exec sleep 60\n")
    silent.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(silent))
    monkeypatch.setattr(compilers, "REPLY", 0.5)
    monkeypatch.setenv("PERFRAME_COMPILERS", "1")
    assert int(jit.kernel("pad"))
    fresh.settle(20)
    assert not fresh.busy


@pytest.mark.slow
def test_where_no_thread_can_be_had_kernels_are_compiled_here(
    cache: Path, fresh: Compilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert int(jit.kernel("pad"))
    assert not fresh.busy and fresh.progress == 1.0


@pytest.mark.slow
def test_progress_is_told(cache: Path, fresh: Compilers, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr(compilers, "NEWS", 0.0)
    monkeypatch.setattr(compilers, "SILENCE", 0.0)
    monkeypatch.setattr("perframe.execution.inspected.kernel_progress", lambda: fresh.progress)
    with pf.Worker(load([node("Tanh", "x", "y")], {"x": [3]})) as worker:
        kernels = [jit.kernel(name) for name in ("pad", "resize", "gather")]
        assert not worker.ready and worker.progress < 1
        assert all(map(int, kernels))
        fresh.settle(60)
        assert worker.ready and worker.progress == 1
    assert caplog.text.count(", once on this machine: runs are slower until then") == 1
    assert re.search(r"(\d) of (?!\1)\d kernels are compiled, about \d+ s to go", caplog.text)
    assert re.search(r"(\d) of \1 kernels are compiled$", caplog.text, re.MULTILINE)
    with pytest.raises(pf.ClosedError):
        _ = worker.progress


FORK = """
import os, threading, time
import numpy as np, onnx.parser
import perframe as pf
from perframe.backends.cpu.compile import jit
from perframe.passes import prepared
from perframe.plan import constants
int(jit.kernel("walk"))
link, inside = jit._linker().link, threading.Event()
def slow(*given):
    inside.set()
    time.sleep(1)
    return link(*given)
jit._linker().link = slow
holders = [threading.Thread(target=jit.kernel, args=("arithmetic",))]
head = '<ir_version: 10, opset_import: ["": 21]>'
graph = onnx.parser.parse_model(head + "g (float[3] x) => (float[3] y) { y = Relu (x) }")
worker = pf.Worker(pf.load(graph))
x = pf.Tensor(np.full(3, -1, np.float32))
for lock in (prepared._lock, constants._lock, worker._lock, x.data_on_backend.lock):
    def hold(lock=lock):
        with lock:
            time.sleep(1)
    holders.append(threading.Thread(target=hold))
for holder in holders:
    holder.start()
inside.wait(20)
child = os.fork()
if not child:
    int(jit.kernel("pad"))
    with prepared._lock, constants._lock:
        made = worker.schedule(x).peek_output().download_to_array()
        os._exit(0 if not made.any() and x.download_to_array().all() else 1)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_finds_all_locks_free() -> None:
    process = start(FORK)
    try:
        made, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert made.strip() == "0"


ENDS = """
import sys, time
from perframe.backends.cpu.compile import compilers, jit
compilers.STAY = float(sys.argv[1]) if len(sys.argv) > 1 else compilers.STAY
for name in ("pad", "resize", "gather", "gemm.scale"):
    jit.kernel(name)
while not jit.compilers()._processes:
    time.sleep(0.01)
"""


@pytest.mark.slow
def test_processes_compile_on_for_the_cache(tmp_path: Path) -> None:
    """A process whose patience is over leaves its kernels to the processes that compile them."""
    process = start(ENDS, 0, PERFRAME_CACHE=str(tmp_path), PERFRAME_COMPILERS="1")
    process.communicate(timeout=60)
    kernels = tmp_path / "kernels"
    assert process.returncode == 0 and len([*kernels.glob("*.o")] if kernels.exists() else []) < 4
    wait_until(lambda: len(list(kernels.glob("*.o"))) == 4)


@pytest.mark.slow
def test_a_process_waits_for_its_kernels_at_its_end(tmp_path: Path) -> None:
    process = start(ENDS + "sys.stderr = sys.stdout", 150, PERFRAME_CACHE=str(tmp_path), PERFRAME_COMPILERS="1")
    said, _ = process.communicate(timeout=180)
    assert process.returncode == 0 and len([*(tmp_path / "kernels").glob("*.o")]) == 4
    assert "waiting up to 149 s for kernels that later runs need (4 left)" in said and "runs are slower" not in said


@pytest.mark.slow
def test_a_process_that_fails_does_not_wait(tmp_path: Path) -> None:
    process = start(ENDS + "raise KeyboardInterrupt", 150, PERFRAME_CACHE=str(tmp_path), PERFRAME_COMPILERS="1")
    began = time.monotonic()
    process.communicate(timeout=180)
    kernels = tmp_path / "kernels"
    assert process.returncode and len([*kernels.glob("*.o")] if kernels.exists() else []) < 4
    assert time.monotonic() - began < 100
