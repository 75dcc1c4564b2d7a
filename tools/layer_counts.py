"""Counts the layers that are left of ONNX models after perframe's passes, and after onnxruntime's own optimiser.

`python tools/layer_counts.py FILE.onnx...` prints a table of Markdown: nodes in the file, and then with onnxruntime's
levels "extended" (for any machine) and "all" (for this CPU), and with perframe for any backend and for the CPU. Nodes
within bodies of branches and loops are not counted.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx
import onnxruntime

import perframe as pf
from perframe.backends import evaluator
from perframe.passes import prepare

LEVELS = ("ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL")


def nodes(path: Path) -> int:
    proto = onnx.load(path, load_external_data=False)
    return sum(node.op_type != "Constant" for node in proto.graph.node)


def optimized_by_onnxruntime(path: Path, level: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.optimized_model_filepath = f"{folder}/optimized.onnx"
        options.log_severity_level = 4
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return nodes(Path(options.optimized_model_filepath))


def rows(paths: Sequence[Path]) -> Iterator[tuple[str, list[int]]]:
    for path in sorted(paths, key=lambda path: path.stem):
        theirs = [optimized_by_onnxruntime(path, level) for level in LEVELS]
        model = pf.load(path)
        yield path.stem, [nodes(path), *theirs, len(model.layers), len(prepare(model, evaluator(), "cpu").layers)]


def main(arguments: Sequence[str]) -> None:
    print("| model | in the file | onnxruntime, extended | perframe | onnxruntime, all | perframe, for the CPU |")
    print("|---|---|---|---|---|---|")
    more = [0, 0]
    for name, (file, extended, everything, ours, for_cpu) in rows([Path(argument) for argument in arguments]):
        more[0] += ours > extended
        more[1] += for_cpu > everything
        counts = (file, extended, ours, everything, for_cpu)
        print(f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |", flush=True)
    print(f"\nmore layers than onnxruntime: {more[0]} for any machine, {more[1]} for this CPU", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
