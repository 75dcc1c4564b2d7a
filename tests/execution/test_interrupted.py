"""What ends a run from outside: Ctrl-C in the thread that waits, a job that calls sys.exit, a fork; and pickles."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np
import pytest

import perframe as pf
from fresh import run_fresh
from perframe.backends.cpu.threads.jobs import ThreadJob
from small import load, node, row

CANNOT_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")


@pytest.fixture
def double() -> pf.Model:
    return load([node("Add", "x x", "y")], {"x": [3]})


def raised(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)], ids=["Ctrl-C", "exit"])
def test_an_interrupt_is_raised_once_where_it_came(error: BaseException, double: pf.Model) -> None:
    """The thread that waits runs the job. Whoever uses the job's results later gets an error that it can handle."""
    with pf.Worker(double) as worker:
        x = pf.Tensor(row(1, 2, 3))
        y = worker.schedule(x).peek_output()
        y.download_to_array()
        job: Any = ThreadJob(raised, (error,))
        y.data_on_backend.write = job  # type: ignore[attr-defined]  # as if the run were this job
        readback = y.readback_request()
        with pytest.raises(type(error)):
            y.download_to_array()
        for _ in range(2):
            with pytest.raises(pf.BackendError, match=f"interrupted by {type(error).__name__}: schedule it again"):
                y.download_to_array()
        assert readback.done
        with pytest.raises(pf.BackendError, match="interrupted"):
            readback.result()
        for _ in range(3):
            np.testing.assert_array_equal(worker.schedule(x).peek_output().download_to_array(), [2, 4, 6])


def test_a_job_that_exits_ends_neither_its_thread_nor_later_runs(double: pf.Model) -> None:
    with pf.Worker(double) as worker:
        target = pf.Tensor(row(0, 0, 0))
        for _ in range(8):
            job = pf.jobs.schedule(lambda: raised(SystemExit(1)), writes=[target])
            while not job.done:
                pass
            with pytest.raises(pf.BackendError, match="interrupted by SystemExit"):
                job.wait()
        np.testing.assert_array_equal(worker.schedule(row(1, 2, 3)).peek_output().download_to_array(), [2, 4, 6])


COLD = """
import os, signal, sys, tempfile, threading, time
os.environ["PERFRAME_CACHE"] = tempfile.mkdtemp()
import numpy as np, perframe as pf
from gl.graphs import network
worker = pf.Worker(network())
x = np.ones((1, 3, 8, 8), np.float32)
threading.Timer(float(sys.argv[1]), lambda: os.kill(os.getpid(), signal.SIGINT)).start()
interrupts, end = 0, time.monotonic() + float(sys.argv[1]) + 0.5
while time.monotonic() < end:
    try:
        worker.schedule(x).peek_output().download_to_array()
    except KeyboardInterrupt:
        interrupts += 1
assert interrupts == 1, interrupts
for one in (worker, pf.Worker(network())):
    assert np.allclose(one.schedule(x).peek_output().download_to_array(), 1.5)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signal to the process itself")
@pytest.mark.parametrize("seconds", ["0.05", "0.4", "0.9"])
def test_ctrl_c_while_kernels_are_compiled(seconds: str) -> None:
    run_fresh(COLD, seconds)


FORK = """
import os, time
import numpy as np, perframe as pf
from small import Gate, gated, load, node, row
double, gate = load([node("Add", "x x", "y")], {"x": [3]}), Gate()
worker = pf.Worker(double)
worker.schedule(row(0, 0, 0)).peek_output().download_to_array()
y = worker.schedule(gated(row(1, 2, 3), gate)).peek_output()
readback, queued = y.readback_request(), pf.jobs.schedule(lambda: None, depends_on=[y])
child = os.fork()
if not child:
    assert readback.done and queued.done  # a loop that polls goes on
    for use in (readback.result, y.download_to_array, queued.wait, y.readback_request().result):
        try:
            use()
        except pf.BackendError as error:
            assert "when this process was forked" in str(error)
        else:
            raise AssertionError(use)
    with pf.Worker(double) as own:
        assert own.schedule(row(1, 2, 3)).peek_output().download_to_array().tolist() == [2, 4, 6]
    assert worker.schedule(row(4, 5, 6)).peek_output().download_to_array().tolist() == [8, 10, 12]
    os._exit(7)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
gate.open()
assert y.download_to_array().tolist() == [2, 4, 6] and readback.result(wait=True).tolist() == [2, 4, 6]
assert status == 7, status
"""


@pytest.mark.quick(cases=0)
@CANNOT_FORK
def test_a_run_under_way_ends_in_a_forked_child() -> None:
    run_fresh(FORK)


def test_pickles(double: pf.Model) -> None:
    x = pf.Tensor(row(1, 2, 3))
    x.name = "numbers"
    again = pickle.loads(pickle.dumps(x))
    assert again.name == "numbers" and again.dtype is x.dtype and again.shape == x.shape
    np.testing.assert_array_equal(again.download_to_array(), [1, 2, 3])
    with pf.Worker(double) as worker:
        y = worker.schedule(x).peek_output()
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(y)).download_to_array(), [2, 4, 6])
        with pytest.raises(pf.InputError, match="pickle its model"):
            pickle.dumps(worker)


def test_a_tensor_on_a_gpu_is_not_pickled(gl_context: Any, double: pf.Model) -> None:
    with (
        pf.Worker(double, "gpu_pixel", gl_context) as worker,
        pytest.raises(pf.InputError, match=r"call numpy\(\) to wait"),
    ):
        pickle.dumps(worker.schedule(row(1, 2, 3)).peek_output())
