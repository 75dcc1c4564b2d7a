"""Runtimes on Vulkan beside the GPU backends: how they run a model, and where they are installed.

They never meet perframe's own packages: they have an environment of their own, and `side.py` runs in it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]

# ncnn's own converter, pnnx, asks for PyTorch, which it does not need for ONNX files: no package brings others with it.
PACKAGES = (
    "--no-deps",
    "flatbuffers==25.12.19",
    "ncnn==1.0.20261020",
    "numpy==2.4.6",
    "onnxruntime-webgpu==1.27.0",
    "packaging==26.3",
    "pnnx==20261020",
    "portalocker==4.4.2",
    "protobuf==7.36.2",
    "requests==2.34.2",
    "tqdm==4.70.1",
)
PARAMETERS, WEIGHTS = "model.ncnn.param", "model.ncnn.bin"  # as pnnx names them


def peers_python() -> Path:
    """The Python of an environment with the peers. The first call makes it, which takes a minute."""
    from perframe.conversion.environments import made_environment

    return made_environment("shader-peers", PACKAGES)


def convert_to_ncnn(model: Path, folder: Path, python: Path) -> Path:
    """Convert an ONNX file by pnnx in a folder; return the file of ncnn's parameters. Raises BackendError.

    perframe writes the file first, in ONNX's newest operators: pnnx reads an old softmax as a new one.
    """
    import perframe as pf
    from perframe.errors import BackendError

    folder.mkdir()
    pf.save(pf.load(model, optimize=False), folder / "model.onnx")
    (pnnx,) = python.parents[1].glob("lib/python*/site-packages/pnnx/pnnx")  # the module around it needs PyTorch
    done = subprocess.run([pnnx, "model.onnx", "fp16=0"], cwd=folder, capture_output=True, text=True)
    if done.returncode or not (folder / PARAMETERS).exists():
        last = ((done.stderr or done.stdout).strip().splitlines() or ["nothing was printed"])[-1]
        raise BackendError(f"pnnx cannot convert {model}: exit status {done.returncode}: {last}")
    return folder / PARAMETERS


class NcnnSide:
    """ncnn on the first Vulkan device, in float32. It takes one array, whose batch is 1, and drops the batch's dim."""

    def __init__(self, model: str, threads: int) -> None:
        import ncnn

        assert ncnn.get_gpu_count() > 0, "ncnn sees no Vulkan device"
        self._ncnn, self._net = ncnn, ncnn.Net()
        options = self._net.opt
        options.use_vulkan_compute, options.num_threads = True, threads
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
        parameters = Path(model)
        self._load(self._net.load_param, parameters)
        self._load(self._net.load_model, parameters.with_name(WEIGHTS))
        self._outputs = sorted(self._net.output_names(), key=lambda name: int(name.removeprefix("out")))

    @staticmethod
    def _load(load: Any, path: Path) -> None:
        if load(str(path)) != 0:
            raise ValueError(f"ncnn cannot load {path}")

    def run(self, feed: Arrays) -> dict[str, Any]:
        """Run one inference. Result arrays are copies."""
        (value,) = feed.values()
        if value.shape[0] != 1:
            raise ValueError(f"ncnn takes a batch of 1, not an input of the shape {value.shape}")
        extractor = self._net.create_extractor()
        extractor.input("in0", self._ncnn.Mat(np.ascontiguousarray(value[0])))
        outputs = {}
        for name in self._outputs:
            status, made = extractor.extract(name)
            if status != 0:
                raise ValueError(f"ncnn cannot compute {name}: status {status}")
            outputs[name] = np.array(made)
        return outputs


class WebgpuSide:
    """onnxruntime with its WebGPU provider, on Vulkan."""

    def __init__(self, model: str, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        providers = ["WebGpuExecutionProvider", "CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(model, options, providers=providers)
        assert self._session.get_providers() == providers, "onnxruntime has no WebGPU provider here"
        self._outputs = [value.name for value in self._session.get_outputs()]

    def run(self, feed: Arrays) -> dict[str, Any]:
        """Run one inference."""
        return dict(zip(self._outputs, self._session.run(self._outputs, dict(feed)), strict=True))


PEERS = {"ncnn": NcnnSide, "onnxruntime-webgpu": WebgpuSide}
