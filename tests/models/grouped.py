"""Decoders in operators of com.microsoft, small, with seeded random weights: as onnxruntime-genai exports them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
BLOCK = 32  # weights that share a scale


@dataclass(frozen=True)
class Grouped:
    """A decoder with `groups` heads of keys and values. `bits` are those of its weights; `half` numbers are float16.

    Every other layer reads the last `window` keys only. Their caches have as many rows if they are `windowed`.
    """

    name: str
    bits: int = 32
    half: bool = False
    window: int = -1
    windowed: bool = False
    tied: bool = False
    accuracy: int = 0  # of products with small weights: 4 lets onnxruntime round the other factor to 8 bits
    vocabulary: int = 96
    width: int = 64
    layers: int = 2
    heads: int = 4
    groups: int = 2
    inner: int = 128
    length: int = 1024  # the most tokens

    @property
    def head(self) -> int:
        """The size of a head."""
        return self.width // self.heads

    @property
    def dtype(self) -> type[Any]:
        """Of its numbers."""
        return np.float16 if self.half else np.float32

    def caches(self) -> dict[str, NDArray[Any]]:
        """Empty caches, as onnxruntime takes them: those of a window have all their rows."""
        found = {}
        for layer in range(self.layers):
            rows = self.window if self.windowed and self._is_local(layer) else 0
            for kind in ("key", "value"):
                found[f"past_key_values.{layer}.{kind}"] = np.zeros((1, self.groups, rows, self.head), self.dtype)
        return found

    def proto(self) -> onnx.ModelProto:
        """The ONNX model."""
        return _Writer(self).model()

    def _is_local(self, layer: int) -> bool:
        return self.window > 0 and layer % 2 == 0


@dataclass
class _Writer:
    decoder: Grouped
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(5))

    def __call__(self, op: str, given: list[str], name: str, outputs: int | list[str] = 1, **attributes: Any) -> str:
        made = outputs if isinstance(outputs, list) else [name]
        domain = MICROSOFT if op in _CONTRIB else ""
        self.nodes.append(helper.make_node(op, given, made, name, domain=domain, **attributes))
        return made[0]

    def constant(self, name: str, array: NDArray[Any]) -> str:
        self.constants[name] = array
        return name

    def weights(self, name: str, depth: int, columns: int) -> NDArray[Any]:
        return (self.random.standard_normal((depth, columns)) * 2 / np.sqrt(depth)).astype(np.float32)

    def product(self, x: str, name: str, depth: int, columns: int) -> str:
        decoder, values = self.decoder, self.weights(name, depth, columns)
        if decoder.bits == 32:
            return self("MatMul", [x, self.constant(f"{name}.weight", values.astype(decoder.dtype))], name)
        codes, scales = self.small(name, values.T)
        sizes = {"K": depth, "N": columns, "bits": 4, "block_size": BLOCK, "accuracy_level": decoder.accuracy}
        return self("MatMulNBits", [x, codes, scales], name, **sizes)

    def small(self, name: str, rows: NDArray[Any]) -> tuple[str, str]:
        """Codes (rows, blocks, bytes) and scales (rows, blocks) of 4 bits."""
        if f"{name}.codes" not in self.constants:
            blocks = rows.reshape(len(rows), -1, BLOCK)
            scales = np.abs(blocks).max(-1) / 7
            codes = (np.rint(blocks / scales[..., None]) + 8).astype(np.uint8)
            self.constant(f"{name}.codes", codes[..., ::2] | codes[..., 1::2] << 4)
            self.constant(f"{name}.scales", scales.astype(self.decoder.dtype))
        return f"{name}.codes", f"{name}.scales"

    def model(self) -> onnx.ModelProto:
        decoder = self.decoder
        one = self.constant("one", np.array([1], np.int64))
        last = self("Sub", [self("ReduceSum", ["attention_mask", one], "sum", keepdims=0), one], "last")
        lengths = [self("Cast", [last], "lengths", to=TensorProto.INT32)]
        size = self("Gather", [self("Shape", ["attention_mask"], "sizes"), self.constant("at", np.array(1))], "size")
        lengths.append(self("Cast", [size], "total", to=TensorProto.INT32))
        angles = np.outer(np.arange(decoder.length), 1e4 ** -np.linspace(0, 1, decoder.head // 2, endpoint=False))
        tables = [
            self.constant(name, turn(angles).astype(decoder.dtype)) for name, turn in (("cos", np.cos), ("sin", np.sin))
        ]
        x, normal = self.embedded(), ""
        for layer in range(decoder.layers):
            x, normal = self.normalized(x, normal, f"norm.{layer}")
            x, normal = self.normalized(x, self.attended(normal, layer, lengths, tables), f"second.{layer}")
            normal = self.gated(normal, layer)
        _, normal = self.normalized(x, normal, "norm")
        self.product(normal, "logits", decoder.width, decoder.vocabulary)
        return self.finished()

    def embedded(self) -> str:
        decoder = self.decoder
        if not decoder.tied:
            table = self.random.standard_normal((decoder.vocabulary, decoder.width)).astype(decoder.dtype)
            return self("Gather", [self.constant("table", table), "input_ids"], "embedded")
        codes, scales = self.small("logits", self.weights("logits", decoder.width, decoder.vocabulary).T)
        rows = self.constant("rows", np.array([decoder.vocabulary, -1], np.int64))
        given = [self("Reshape", [codes, rows], "codes"), "input_ids", scales]
        sizes = {"bits": 4, "block_size": BLOCK, "gather_axis": 0, "quantize_axis": 1}
        return self("GatherBlockQuantized", given, "embedded", **sizes)

    def normalized(self, x: str, added: str, name: str) -> tuple[str, str]:
        """The sum, and its norm."""
        decoder = self.decoder
        weight = self.constant(f"{name}.weight", self.random.uniform(0.5, 1.5, decoder.width).astype(decoder.dtype))
        if not added:
            return x, self("SimplifiedLayerNormalization", [x, weight], name, axis=-1, epsilon=1e-6, stash_type=1)
        made = [name, "", "", f"{name}.sum"]
        return made[3], self("SkipSimplifiedLayerNormalization", [x, added, weight], name, made, epsilon=1e-6)

    def attended(self, x: str, layer: int, lengths: list[str], tables: list[str]) -> str:
        decoder, local = self.decoder, self.decoder._is_local(layer)
        packed = self.product(x, f"qkv.{layer}", decoder.width, (decoder.heads + 2 * decoder.groups) * decoder.head)
        caches = [f"{{}}.{layer}.{kind}" for kind in ("key", "value")]
        past, made = ([one.format(begin) for one in caches] for begin in ("past_key_values", "present"))
        settings = {
            **{"num_heads": decoder.heads, "kv_num_heads": decoder.groups, "do_rotary": 1},
            "local_window_size": decoder.window if local else -1,
            **({"sliding_window_cache": 1} if local and decoder.windowed else {}),
        }
        name, given = f"attention.{layer}", [packed, "", "", *past, *lengths, *tables]
        self("GroupQueryAttention", given, name, [name, *made], **settings)
        return self.product(name, f"out.{layer}", decoder.width, decoder.width)

    def gated(self, x: str, layer: int) -> str:
        decoder = self.decoder
        gate, up = (self.product(x, f"{name}.{layer}", decoder.width, decoder.inner) for name in ("gate", "up"))
        opened = self("Mul", [gate, self("Sigmoid", [gate], f"sigmoid.{layer}")], f"opened.{layer}")
        return self.product(self("Mul", [opened, up], f"gated.{layer}"), f"down.{layer}", decoder.inner, decoder.width)

    def finished(self) -> onnx.ModelProto:
        decoder, kind = self.decoder, helper.np_dtype_to_tensor_dtype(np.dtype(self.decoder.dtype))

        def value(name: str, dims: list[Any], of: int = kind) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, of, dims)

        inputs = [
            value("input_ids", ["batch", "sequence"], TensorProto.INT64),
            value("attention_mask", ["batch", "total"], TensorProto.INT64),
        ]
        outputs = [value("logits", ["batch", "sequence", decoder.vocabulary])]
        for layer in range(decoder.layers):
            what = "sliding" if decoder.windowed and decoder._is_local(layer) else "length"
            for name in ("key", "value"):
                old, new = (f"past_{what}", "total" if what == "length" else f"total_{what}")
                inputs.append(value(f"past_key_values.{layer}.{name}", ["batch", decoder.groups, old, "size"]))
                outputs.append(value(f"present.{layer}.{name}", ["batch", decoder.groups, new, "size"]))
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, decoder.name, inputs, outputs, constants)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


_CONTRIB = ("GroupQueryAttention", "MatMulNBits", "GatherBlockQuantized", "SkipSimplifiedLayerNormalization")
DECODERS = {
    one.name: one
    for one in (
        Grouped("plain"),
        Grouped("window", window=6),
        Grouped("windowed", window=6, windowed=True),
        Grouped("small", bits=4),
        Grouped("tied", bits=4, tied=True),
        Grouped("half", half=True),
        Grouped("small half", bits=4, half=True),
    )
}
