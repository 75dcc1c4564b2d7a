"""PyTorch's exports agree with PyTorch on every backend. Both its present and its former exporter are tested."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from onnxscript import opset18
from torch.onnx.symbolic_helper import parse_args

import perframe as pf
from models.networks import NETWORKS, Arrays, Network

TOLERANCE = 1e-4  # of the largest output


# --- NonMaxSuppression, which torchvision would bring: an operator of the tests, and how each exporter writes it ---


def written_by_dynamo(boxes: Any, scores: Any, most: int, overlap: float, least: float) -> Any:
    limits = (opset18.Constant(value_ints=[most]), opset18.Constant(value_floats=[overlap]))
    return opset18.NonMaxSuppression(boxes, scores, *limits, opset18.Constant(value_floats=[least]))


@parse_args("v", "v", "i", "f", "f")
def written_by_tracing(graph: Any, boxes: Any, scores: Any, most: int, overlap: float, least: float) -> Any:
    limits = (graph.op("Constant", value_t=torch.tensor([limit])) for limit in (most, overlap, least))
    return graph.op("NonMaxSuppression", boxes, scores, *limits)


# --- exports ---


def arguments(frame: Arrays) -> tuple[torch.Tensor, ...]:
    return tuple(map(torch.from_numpy, frame.values()))


def by_dynamo(network: Network, file: Path) -> None:
    torch.onnx.export(
        network.module(),
        arguments(network.exported_with()),
        file,
        dynamo=True,
        verbose=False,
        input_names=list(network.exported_with()),
        output_names=list(network.outputs),
        dynamic_shapes={name: network.dims.get(name) for name in network.exported_with()} if network.dims else None,
        custom_translation_table={torch.ops.perframe_tests.nms.default: written_by_dynamo},
    )


def by_tracing(network: Network, file: Path) -> None:
    torch.onnx.register_custom_op_symbolic("perframe_tests::nms", written_by_tracing, 11)
    torch.onnx.export(
        network.module(),
        arguments(network.exported_with()),
        file,
        dynamo=False,
        input_names=list(network.exported_with()),
        output_names=list(network.outputs),
        dynamic_axes=network.dims,
    )


EXPORTERS = {"dynamo": by_dynamo, "tracing": by_tracing}
CASES = [(network, exporter) for network in NETWORKS for exporter in network.exporters]


@pytest.fixture(scope="session")
def export(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Network, str], Path]:
    """Exports a network, the first time that it is asked for."""
    folder = tmp_path_factory.mktemp("torch")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)

    @cache
    def exported(network: Network, exporter: str) -> Path:
        file = folder / f"{network}-{exporter}.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about values that become constants, and about the old exporter
            EXPORTERS[exporter](network, file)
        return file

    return exported


# --- comparisons ---


@cache
def expected(network: Network) -> list[Arrays]:
    """PyTorch's outputs, frame by frame."""
    module = network.module()

    def run(frame: Arrays) -> Arrays:
        with torch.inference_mode():
            made = module(*arguments(frame))
        values = made if isinstance(made, tuple) else (made,)
        return {name: value.numpy() for name, value in zip(network.outputs, values, strict=True)}

    return list(network.play(run))


def compare(got: NDArray[Any], want: NDArray[Any], what: str) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    if want.dtype.kind == "i":
        np.testing.assert_array_equal(got, want, what)
        return
    assert np.ptp(want) > 1e-2 * np.abs(want).max(), f"{what} is flat, and would hide mistakes"
    worst = np.abs(got - want).max() / np.abs(want).max()
    assert worst <= TOLERANCE, f"{what} differs by {worst:.2g} of its largest value"


@pytest.mark.parametrize(("network", "exporter"), CASES, ids=str)
def test_every_frame_is_pytorchs(
    network: Network, exporter: str, export: Callable[[Network, str], Path], backend: str, backend_context: Any
) -> None:
    """One worker for all frames, which gets its own outputs back as they are: states never leave the backend."""
    model = pf.load(export(network, exporter))
    assert {layer.op for layer in model.layers if layer.declaration.on_host} == network.on_host
    with pf.Worker(model, backend, backend_context, strict=backend != "cpu") as worker:

        def run(frame: dict[str, Any]) -> dict[str, pf.Tensor]:
            worker.schedule(frame)
            return {name: worker.peek_output(name) for name in network.outputs}

        for index, (got, want) in enumerate(zip(network.play(run), expected(network), strict=True)):
            for name, value in want.items():
                compare(got[name].download_to_array(), value, f"{name} of frame {index}")
