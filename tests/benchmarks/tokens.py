"""Tokens of language models on the CPU, beside onnxruntime: `PYTHONPATH=tests python -m tests.benchmarks.tokens`.

Both generate with caches, in turns, with random weights, on as many threads. onnxruntime takes its caches as OrtValues;
those of GroupQueryAttention lie in one buffer, which its outputs share. Compare figures within one run only. Most
decoders come from transformers (the extra `zoo`).
"""

from __future__ import annotations

import logging
import statistics
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import onnx
import onnxruntime
import typer
from rich.console import Console
from rich.table import Table

import perframe as pf
from models.decoders import Decoder, export
from models.grouped import Grouped

BLOCK = 32  # weights that share a scale
THREADS = 2


@dataclass(frozen=True)
class Case:
    """A decoder, how many tokens a generation has, and the precision: of onnxruntime's activations too."""

    name: str
    decoder: Decoder | Grouped
    tokens: int
    bits: int = 32
    accuracy: int = 0  # of MatMulNBits: 4 lets onnxruntime compute with int8 activations


def _gpt2(width: int, layers: int, heads: int, words: int) -> Decoder:
    values = {"vocab_size": words, "n_embd": width, "n_layer": layers, "n_head": heads, "n_positions": 1024}
    return Decoder("gpt2", "GPT2LMHeadModel/GPT2", values, heads, layers=layers, head_size=width // heads)


def _llama(width: int, layers: int, heads: int, words: int) -> Decoder:
    values = {"vocab_size": words, "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    more = {"intermediate_size": 3 * width, "num_key_value_heads": heads // 2, "max_position_embeddings": 1024}
    return Decoder(
        "llama", "LlamaForCausalLM/Llama", values | more, heads // 2, layers=layers, head_size=width // heads
    )


def _grouped(width: int, layers: int, heads: int, bits: int) -> Grouped:
    sizes = {"vocabulary": 8000, "width": width, "layers": layers, "heads": heads, "groups": heads // 2}
    return Grouped("grouped", bits, accuracy=4, inner=3 * width, **sizes)  # 4 is what onnxruntime-genai writes


CASES = (
    Case("gpt2-4M", _gpt2(256, 4, 8, 4000), 200),
    Case("llama-25M", _llama(512, 6, 8, 8000), 100),
    Case("llama-25M-int4", _llama(512, 6, 8, 8000), 100, 4),
    Case("llama-25M-int4-int8", _llama(512, 6, 8, 8000), 100, 4, 4),
    Case("gpt2-100M", _gpt2(768, 13, 12, 8000), 40),
    Case("llama-100M", _llama(768, 12, 12, 8000), 40),
    Case("llama-100M-int4", _llama(768, 12, 12, 8000), 40, 4),
    Case("grouped-25M", _grouped(512, 6, 8, 32), 200),
    Case("grouped-25M-int4", _grouped(512, 6, 8, 4), 200),
    Case("grouped-100M", _grouped(768, 12, 12, 32), 40),
    Case("grouped-100M-int4", _grouped(768, 12, 12, 4), 40),
)


def write(case: Case, folder: Path) -> Path:
    """The decoder's file."""
    file = folder / "decoder.onnx"
    if isinstance(case.decoder, Grouped):
        onnx.save(case.decoder.proto(), file)
        return file
    export(case.decoder, file)
    if case.bits == 32:
        return file
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(
        onnx.load(file), block_size=BLOCK, is_symmetric=True, accuracy_level=case.accuracy or None
    )
    logging.getLogger("onnxruntime").setLevel(logging.WARNING)  # it tells of each node
    quantizer.process()
    made = folder / "small.onnx"
    quantizer.model.save_model_to_file(str(made))
    return made


def given(token: int, total: int, names: Iterable[str]) -> dict[str, Any]:
    """The inputs of one token, apart from caches."""
    values = {
        "input_ids": np.array([[token]], np.int64),
        "attention_mask": np.ones((1, total), np.int64),
        "position_ids": np.array([[total - 1]], np.int64),
    }
    return {name: value for name, value in values.items() if name in names}


def ours(file: Path, capacity: int, activations: str) -> tuple[Callable[[], None], Callable[[int, int], int]]:
    """A reset, and a function that takes a token and gives the next one."""
    model = pf.text.without_mask(pf.load(file))
    carry = pf.text.carry_of(model)
    worker = pf.Worker(model, activations=activations, carry=carry, carry_capacity=capacity)
    names = [value.name for value in model.inputs]
    worker.warmup(given(5, 1, names))

    def step(token: int, total: int) -> int:
        return int(worker.schedule(given(token, total, names)).peek_output("logits").numpy()[0, -1].argmax())

    return worker.reset, step


def theirs(file: Path, head: int, capacity: int) -> tuple[Callable[[], None], Callable[[int, int], int]]:
    """The same of onnxruntime, for heads of a size. With a `capacity` the caches have as many rows, and the outputs lie
    where the inputs do.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs() if not value.name.startswith("past")]
    caches = [value for value in session.get_inputs() if value.name.startswith("past")]
    outputs = {value.name: value.name.replace("past_key_values", "present") for value in caches}
    past: dict[str, Any] = {}

    def reset() -> None:
        for value in caches:
            empty = np.zeros((1, value.shape[1], capacity, head), np.float32)
            past[value.name] = onnxruntime.OrtValue.ortvalue_from_numpy(empty)

    def step(token: int, total: int) -> int:
        binding = session.io_binding()
        for name, array in given(token, total, names).items():
            binding.bind_cpu_input(name, array)
        binding.bind_output("logits")
        for name, value in past.items():
            binding.bind_ortvalue_input(name, value)
            if capacity:
                binding.bind_ortvalue_output(outputs[name], value)
            else:
                binding.bind_output(outputs[name])
        session.run_with_iobinding(binding)
        logits, *kept = binding.get_outputs()
        if not capacity:
            past.update(zip(past, kept, strict=True))
        return int(logits.numpy()[0, -1].argmax())

    return reset, step


def generation(sides: tuple[Callable[[], None], Callable[[int, int], int]], tokens: int) -> tuple[list[int], float]:
    """The tokens of one generation, and the median seconds of one."""
    reset, step = sides
    reset()
    token, made, times = 5, list[int](), list[float]()
    for total in range(1, tokens + 1):
        begin = perf_counter()
        token = step(token, total)
        times.append(perf_counter() - begin)
        made.append(token)
    return made, statistics.median(times)


def main(
    names: Annotated[list[str] | None, typer.Argument()] = None, rounds: int = 7, activations: str = "float32"
) -> None:
    """Time the decoders of these names, or all. `activations` are those of our workers."""
    table = Table("decoder", "parameters", "ours, ms", "onnxruntime, ms", "ratio", "rounds", "same tokens")
    for case in CASES:
        if names and case.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = write(case, Path(folder))
            decoder, capacity = case.decoder, case.tokens + 8
            shared = capacity if isinstance(decoder, Grouped) else 0
            head = decoder.head if isinstance(decoder, Grouped) else decoder.head_size
            sides = ours(file, capacity, activations), theirs(file, head, shared)
            size = pf.load(file).parameter_count
            texts = [generation(one, case.tokens)[0] for one in sides]  # plans are made, and both are warm
            pairs = [[generation(one, case.tokens)[1] for one in sides] for _ in range(rounds)]
        ratios = [theirs / ours for ours, theirs in pairs]
        middle = [1e3 * statistics.median(column) for column in zip(*pairs, strict=True)]
        table.add_row(
            case.name,
            f"{size / 1e6:.1f} M",
            *(f"{time:.3f}" for time in middle),
            f"{statistics.median(ratios):.2f}",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
            f"{sum(map(int.__eq__, *texts))} of {case.tokens}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    typer.run(main)
