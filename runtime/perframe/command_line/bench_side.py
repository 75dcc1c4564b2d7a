"""One side of a benchmark, in a process of its own: reads requests from stdin and answers on stdout, a JSON line each.

{"do": "open", "side": "cpu", "model": "m.onnx"}      → {"seconds": 0.1}
{"do": "run", "feed": "x.npz", "times": 10, "work": 0} → {"wall": [0.01, ...], "cpu": [0.02, ...]}
{"do": "save", "feed": "x.npz", "path": "y.npz"}       → {}
{"do": "memory"}                                       → {"peak": 104857600}
{"do": "warnings"}                                     → {"warnings": ["layer 'a' (NonZero) runs on the CPU ..."]}
{"do": "costs", "repeats": 3}                          → {"seconds": {"Conv": 0.01, ...}}
{"do": "limit", "memory": 1073741824}                  → {}
{"do": "task", "model": "m.onnx", "folder": "f"}       → {"name": "m.onnx", "ours": "m.onnx", "peers": ..., ...}

A side is a perframe backend or a key of PEERS. The answer to a request that fails is {"error": ...}.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
SCENE = 4 << 20  # bytes that a frame's other work reads and writes


class Side(Protocol):
    """A model, loaded by one runtime."""

    def run(self, feed: Arrays) -> dict[str, Any]:
        """Run one inference from arrays to arrays. Blocks."""


class PerframeSide:
    """perframe on one backend, with these arguments of a Worker. Uploads and readbacks are part of a run."""

    def __init__(self, model: str, backend: str, **options: Any) -> None:
        import perframe as pf
        from perframe.backends import waiting_for_kernels
        from perframe.command_line.options import given_key

        loaded = pf.load(model, key=given_key())
        with waiting_for_kernels():
            self.worker = pf.Worker(loaded, pf.BackendType(backend), **options)

    def run(self, feed: Arrays) -> dict[str, Any]:
        """One inference."""
        self.worker.schedule(dict(feed))
        if self.worker.backend_type == "cpu":
            return {name: self.worker.peek_output(name).numpy() for name in self.worker.model.output_names}
        requests = {name: self.worker.peek_output(name).readback_request() for name in self.worker.model.output_names}
        return {name: request.result(wait=True) for name, request in requests.items()}


class OnnxruntimeSide:
    """onnxruntime on the CPU with a fixed number of threads."""

    def __init__(self, model: str, threads: int, optimize: bool = True) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        if not optimize:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._outputs = [value.name for value in self._session.get_outputs()]

    def run(self, feed: Arrays) -> dict[str, Any]:
        """One inference."""
        return dict(zip(self._outputs, self._session.run(self._outputs, dict(feed)), strict=True))


class OpenvinoSide:
    """OpenVINO on the CPU with a fixed number of threads. Where we may round to bfloat16, it may, as is its default."""

    def __init__(self, model: str, threads: int, activations: str = "float32") -> None:
        import openvino

        options = {
            "INFERENCE_PRECISION_HINT": "bf16" if activations == "bfloat16" else "f32",
            "INFERENCE_NUM_THREADS": str(threads),
            "PERFORMANCE_HINT": "LATENCY",
        }
        compiled = openvino.Core().compile_model(model, "CPU", options)
        self._request = compiled.create_infer_request()
        self._outputs = [output.any_name for output in compiled.outputs]

    def run(self, feed: Arrays) -> dict[str, Any]:
        """Run one inference. The result arrays belong to OpenVINO, so they are copied."""
        made = self._request.infer(dict(feed))
        return {name: np.array(made[index]) for index, name in enumerate(self._outputs)}


class LitertSide:
    """LiteRT's interpreter on the CPU with a fixed number of threads, for LiteRT files. Dims are those of the feed."""

    def __init__(self, model: str, threads: int) -> None:
        from ai_edge_litert.interpreter import Interpreter

        self._interpreter = Interpreter(model, num_threads=threads)
        self._given: dict[int, tuple[int, ...]] = {}  # the shape of each input, by its index

    def run(self, feed: Arrays) -> dict[str, Any]:
        """Run one inference. Inputs are taken in the order of the file. The result arrays are copies."""
        runs = self._interpreter
        shapes = {detail["index"]: x.shape for detail, x in zip(runs.get_input_details(), feed.values(), strict=True)}
        if shapes != self._given:
            for index, shape in shapes.items():
                runs.resize_tensor_input(index, shape)
            runs.allocate_tensors()
            self._given = shapes
        for index, value in zip(shapes, feed.values(), strict=True):
            runs.set_tensor(index, value)
        runs.invoke()
        return {detail["name"]: runs.get_tensor(detail["index"]) for detail in runs.get_output_details()}


PEERS: dict[str, Callable[..., Side]] = {
    "onnxruntime": OnnxruntimeSide,
    "openvino": OpenvinoSide,
    "litert": LitertSide,
}


def peak_memory() -> int | None:
    """The peak memory of this process in bytes; None if the system does not report it.

    On Linux `ru_maxrss` includes the peak of a larger process that started this one. The figure read here does not.
    """
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@cache
def load_feed(path: str) -> Arrays:
    """The inputs in an .npz file. Each file is read only once."""
    from perframe.safety.archives import read_feed

    return read_feed(path)


class Warnings(logging.Handler):
    """Keeps the warnings of a log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.texts.append(record.getMessage())


class Answers:
    """The answers to requests: one method for each request."""

    def __init__(self) -> None:
        self._side: Side | None = None
        self._warnings = Warnings()
        logging.getLogger("perframe").addHandler(self._warnings)

    @property
    def side(self) -> Side:
        """The side that `open` made."""
        assert self._side is not None, "open first"
        return self._side

    def open(self, side: str, model: str, **options: Any) -> dict[str, Any]:
        """Load the model, and return the seconds that it took, the runtime's import included."""
        start = time.perf_counter()
        self._side = PEERS[side](model, **options) if side in PEERS else PerframeSide(model, side, **options)
        return {"seconds": time.perf_counter() - start}

    def run(self, feed: str, times: int, work: float = 0.0) -> dict[str, Any]:
        """Time inferences, one by one: by the clock on the wall, and by the time of all threads on the CPU. Each comes
        after `work` seconds of other work.
        """
        arrays, wall, cpu = load_feed(feed), [], []
        scene = np.zeros(SCENE if work else 0, np.uint8)
        for _ in range(times):
            end = time.perf_counter() + work
            while time.perf_counter() < end:
                scene += 1
            start = time.perf_counter(), time.process_time()
            self.side.run(arrays)
            wall.append(time.perf_counter() - start[0])
            cpu.append(time.process_time() - start[1])
        return {"wall": wall, "cpu": cpu}

    def save(self, feed: str, path: str) -> dict[str, Any]:
        """Write the outputs that are arrays of numbers, in order."""
        outputs = self.side.run(load_feed(feed)).values()
        numbers = [value for value in outputs if isinstance(value, np.ndarray) and value.dtype != object]
        with Path(path).open("wb") as file:
            np.savez(file, *numbers)
        return {}

    def memory(self) -> dict[str, Any]:
        """Return the peak memory of the process so far."""
        return {"peak": peak_memory()}

    def warnings(self) -> dict[str, Any]:
        """Return what perframe warned of so far."""
        return {"warnings": self._warnings.texts}

    def costs(self, repeats: int) -> dict[str, Any]:
        """Return the seconds that perframe's steps on the CPU take, by operator; the last run has made a plan."""
        seconds: dict[str, float] = {}
        if isinstance(self._side, PerframeSide):
            for step in self._side.worker.report(repeats):
                seconds[step.operator] = seconds.get(step.operator, 0.0) + (step.seconds or 0.0)
        return {"seconds": seconds}

    def limit(self, memory: int) -> dict[str, Any]:
        """Let allocations beyond `memory` bytes fail, where the system can do that."""
        if sys.platform != "win32":
            import resource

            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        return {}

    def task(self, model: str, folder: str, dims: Mapping[str, int], seed: int) -> dict[str, Any]:
        """Make a benchmark's task: a separate process survives a file that ends this one."""
        from perframe.command_line.contest import make_task

        made = make_task(model, Path(folder), dims, seed)
        return {name: str(value) for name, value in vars(made).items() if value is not None}


def serve(requests: TextIO, replies: TextIO) -> None:
    """Answer requests until they end."""
    answers = Answers()
    for line in requests:
        request = json.loads(line)
        try:
            reply = getattr(answers, request.pop("do"))(**request)
        except Exception as error:  # the other process reports it
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


def main() -> None:
    """Serve requests on the original stdout. A library that prints to stdout then writes to stderr."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, replies)


if __name__ == "__main__":
    main()
