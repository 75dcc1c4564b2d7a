"""Small networks of the kinds that people export from PyTorch, with seeded weights, and how each of them is played.

A network is played frame by frame; what it puts out may be an input of its next frame (`Network.feeds`). The same play
drives the module itself and a worker, each with its own states, so that what drifts apart over time is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

Arrays = dict[str, NDArray[Any]]
Frames = Callable[[np.random.Generator], Sequence[Arrays]]


@dataclass(frozen=True, eq=False)  # compared and hashed as itself
class Network:
    """A module, its inputs frame by frame (the first ones also export it), and its open dims."""

    name: str
    make: Callable[[], nn.Module]
    frames: Frames
    outputs: tuple[str, ...] = ("y",)
    dims: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # open ones: input → axis → name
    feeds: Mapping[str, str] = field(default_factory=dict)  # input → the last frame's output
    example: Frames | None = None  # to export with, where the first frame has sizes 0 or 1
    exporters: tuple[str, ...] = ("dynamo", "tracing")
    on_host: AbstractSet[str] = frozenset()  # operators for which GL waits, as their output's shape depends on data

    def __str__(self) -> str:
        return self.name

    def module(self) -> nn.Module:
        """The module, with the same random weights each time, ready to infer."""
        torch.manual_seed(5)
        module = self.make().eval()
        for layer in module.modules():
            if isinstance(layer, nn.BatchNorm2d):  # a fresh one changes nothing
                assert layer.running_mean is not None and layer.running_var is not None
                nn.init.normal_(layer.running_mean, std=0.3)
                nn.init.uniform_(layer.running_var, 0.5, 1.5)
        return module

    def given(self) -> Sequence[Arrays]:
        """The inputs of all frames; the first one has the states to begin with too."""
        return self.frames(np.random.default_rng(11))

    def exported_with(self) -> Arrays:
        """The inputs that an exporter traces."""
        return (self.example or self.frames)(np.random.default_rng(11))[0]

    def play(self, run: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The outputs of all frames by `run`. Each call also gets the outputs of the call before."""
        states: dict[str, Any] = {}
        for frame in self.given():
            outputs = run({**frame, **states})
            yield outputs
            states = {name: outputs[source] for name, source in self.feeds.items()}


def normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


def pictures(*shape: int) -> Frames:
    return lambda rng: [{"x": normal(rng, *shape)} for _ in range(3)]


def conv(inputs: int, outputs: int, size: int = 3, act: type[nn.Module] = nn.ReLU, **more: Any) -> nn.Module:
    layer = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False, **more)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), act())


# --- convolutions ---


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, channels // 4, 1), nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class InvertedResidual(nn.Module):
    def __init__(self, inputs: int, wide: int, outputs: int, size: int, stride: int, act: type[nn.Module]) -> None:
        super().__init__()
        self.skips = stride == 1 and inputs == outputs
        self.layers = nn.Sequential(
            conv(inputs, wide, 1, act),
            conv(wide, wide, size, act, stride=stride, groups=wide),
            SqueezeExcite(wide),
            conv(wide, outputs, 1, nn.Identity),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.skips else self.layers(x)


def mobilenet() -> nn.Module:
    """After MobileNetV3: depthwise convolutions, squeeze and excite, hard swish."""
    return nn.Sequential(
        conv(3, 8, 3, nn.Hardswish, stride=2),
        InvertedResidual(8, 16, 8, 3, 1, nn.ReLU),
        InvertedResidual(8, 24, 12, 5, 2, nn.Hardswish),
        InvertedResidual(12, 32, 12, 5, 1, nn.Hardswish),
        conv(12, 48, 1, nn.Hardswish),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(48, 32),
        nn.Hardswish(),
        nn.Dropout(0.2),
        nn.Linear(32, 10),
    )


class UNet(nn.Module):
    """Two levels; up by a transposed convolution and by bilinear resampling."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.bottom = conv(3, 8), conv(8, 12), conv(12, 16)
        self.up = nn.ConvTranspose2d(16, 12, 2, stride=2)
        self.third, self.fourth = conv(24, 8), conv(16, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x)
        second = self.second(F.max_pool2d(first, 2))
        bottom = self.bottom(F.max_pool2d(second, 2))
        third = self.third(torch.cat([self.up(bottom), second], 1))
        larger = F.interpolate(third, scale_factor=2, mode="bilinear", align_corners=False)
        return torch.softmax(self.head(self.fourth(torch.cat([larger, first], 1))), 1)


class ConvGRU(nn.Module):
    """A video network: a convolutional GRU between an encoder and a head."""

    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.encoder = conv(3, hidden, stride=2)
        self.gates = nn.Conv2d(2 * hidden, 2 * hidden, 3, padding=1)
        self.candidate = nn.Conv2d(2 * hidden, hidden, 3, padding=1)
        self.head = nn.Conv2d(hidden, 4, 1)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        x = self.encoder(x)
        reset, update = torch.sigmoid(self.gates(torch.cat([x, state], 1))).chunk(2, 1)
        candidate = torch.tanh(self.candidate(torch.cat([x, reset * state], 1)))
        state = (1 - update) * state + update * candidate
        return F.pixel_shuffle(self.head(state), 2), state


def conv_gru_frames(rng: np.random.Generator) -> Sequence[Arrays]:
    frames = [{"x": normal(rng, 1, 3, 16, 24)} for _ in range(6)]
    frames[0]["state"] = np.zeros((1, 8, 8, 12), np.float32)
    return frames


class Warp(nn.Module):
    """Moves a picture by a flow that it finds itself."""

    def __init__(self) -> None:
        super().__init__()
        self.flow = nn.Sequential(conv(3, 8), nn.Conv2d(8, 2, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        batch, _, height, width = x.shape
        rows, columns = torch.linspace(-1, 1, height), torch.linspace(-1, 1, width)
        y, across = torch.meshgrid(rows, columns, indexing="ij")
        grid = torch.stack([across, y], -1).expand(batch, -1, -1, -1) + 0.3 * self.flow(x).permute(0, 2, 3, 1)
        near = F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=True)
        return near + F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


# --- sequences ---


class EncoderLayer(nn.Module):
    """Attention and a layer of neurons, each with a normalisation after it, written out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor, src_key_padding_mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.mix(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        seen = ~src_key_padding_mask[:, None, None]
        attended = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], seen)
        x = self.first(x + self.out(attended.transpose(1, 2).reshape(batch, length, width)))
        return self.second(x + self.down(F.gelu(self.up(x))))


def torch_layer(width: int, heads: int) -> nn.Module:
    return nn.TransformerEncoderLayer(width, heads, 2 * width, activation="gelu", batch_first=True)


class Encoder(nn.Module):
    """A transformer over vectors, some of which are padding."""

    def __init__(self, layer: Callable[[int, int], nn.Module] = EncoderLayer, width: int = 16) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(32, width))
        self.layers = nn.ModuleList(layer(width, 4) for _ in range(2))
        self.head = nn.Linear(width, 5)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        x = x + self.positions[: x.shape[1]]
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        return torch.log_softmax(self.head(x), -1)


def encoder_frames(*sizes: tuple[int, int]) -> Frames:
    def frame(rng: np.random.Generator, batch: int, length: int) -> Arrays:
        ends = np.linspace(length, length / 2, batch).round()
        return {"x": normal(rng, batch, length, 16), "padding": np.arange(length) >= ends[:, None]}

    return lambda rng: [frame(rng, *size) for size in sizes]


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """Rotary positions, of head × place × width."""
    even, odd = x.chunk(2, -1)
    return torch.cat([even * angles.cos() - odd * angles.sin(), odd * angles.cos() + even * angles.sin()], -1)


class Norm(nn.Module):
    """By the root of the mean square, written out as language models do."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class DecoderLayer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = Norm(width), Norm(width)
        self.mix, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, angles: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        def split(part: Tensor) -> Tensor:
            return part.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        query, key, value = (split(part) for part in self.mix(self.before(x)).chunk(3, -1))
        keys = torch.cat([keys, rotated(key, angles)], 2)
        values = torch.cat([values, value], 2)
        attended = F.scaled_dot_product_attention(rotated(query, angles), keys, values)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), keys, values


class Decoder(nn.Module):
    """One step of a language model: a token, and the keys and values of those before it."""

    def __init__(self, width: int = 16, heads: int = 2, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.frequencies = nn.Buffer(100.0 ** -torch.linspace(0, 1, width // heads // 2))
        self.head = nn.Linear(width, 40)

    def forward(self, token: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x, angles, made = self.embedding(token), keys.shape[3] * self.frequencies, []
        for index, layer in enumerate(self.layers):
            x, *cache = layer(x, angles, keys[index], values[index])
            made.append(cache)
        logits = self.head(x)
        keys, values = (torch.stack(parts) for parts in zip(*made, strict=True))
        return logits, logits.argmax(-1), keys, values


def decoder_frames(rng: np.random.Generator, past: int = 0) -> Sequence[Arrays]:
    first = {"token": np.array([[3]]), "keys": normal(rng, 2, 1, 2, past, 8), "values": normal(rng, 2, 1, 2, past, 8)}
    return [first, *({} for _ in range(5))]


class Tagger(nn.Module):
    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, width)
        self.lstm = nn.LSTM(width, width, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * width, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(self.embedding(x))[0])


def tagger_frames(rng: np.random.Generator) -> Sequence[Arrays]:
    return [{"x": rng.integers(0, 50, size)} for size in ((2, 9), (3, 5))]


# --- detection ---


@torch.library.custom_op("perframe_tests::nms", mutates_args=())
def nms(boxes: Tensor, scores: Tensor, most: int, overlap: float, least: float) -> Tensor:
    """ONNX's NonMaxSuppression: (batch, class, box) of the chosen boxes, the best first within each class."""
    left = []
    for batch, label in np.ndindex(*scores.shape[:2]):
        chosen: list[int] = []
        for box in scores[batch, label].argsort(descending=True, stable=True).tolist():
            over = (float(overlap_of(boxes[batch, box], boxes[batch, other])) > overlap for other in chosen)
            if len(chosen) < most and scores[batch, label, box] > least and not any(over):
                chosen.append(box)
        left += [(batch, label, box) for box in chosen]
    return torch.tensor(left, dtype=torch.int64).reshape(-1, 3)


@nms.register_fake
def _(boxes: Tensor, scores: Tensor, most: int, overlap: float, least: float) -> Tensor:
    return torch.empty(torch.library.get_ctx().new_dynamic_size(), 3, dtype=torch.int64)


def overlap_of(one: Tensor, other: Tensor) -> Tensor:
    """Intersection over union of two boxes of two corners."""
    shared = (torch.minimum(one[2:], other[2:]) - torch.maximum(one[:2], other[:2])).clamp(0).prod()
    return shared / ((one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod() - shared)


class Detector(nn.Module):
    """One scale of anchors, boxes decoded, suppressed and gathered inside the graph."""

    def __init__(self, classes: int = 2, side: int = 6) -> None:
        super().__init__()
        self.backbone = nn.Sequential(conv(3, 8, stride=2), conv(8, 12, stride=2))
        self.boxes = nn.Conv2d(12, 4, 1)
        self.scores = nn.Sequential(nn.Conv2d(12, classes, 1), nn.InstanceNorm2d(classes), nn.Sigmoid())
        centers = (torch.arange(side) + 0.5) / side
        self.anchors = nn.Buffer(torch.stack(torch.meshgrid(centers, centers, indexing="ij"), -1).reshape(-1, 2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = self.backbone(x)
        moved, size = self.boxes(features).flatten(2).transpose(1, 2).chunk(2, -1)
        center, half = self.anchors + 0.1 * moved, 0.15 * torch.exp(0.3 * size)
        boxes = torch.cat([center - half, center + half], -1)
        scores = self.scores(features).flatten(2)
        batch, label, index = nms(boxes, scores, 10, 0.2, 0.6).unbind(1)
        return boxes[batch, index], scores[batch, label, index], label


BATCH_AND_LENGTH = {"x": {0: "batch", 1: "length"}, "padding": {0: "batch", 1: "length"}}

NETWORKS = (
    Network("mobilenet", mobilenet, pictures(1, 3, 32, 32)),
    Network("unet", UNet, pictures(1, 3, 16, 24)),
    Network("conv_gru", ConvGRU, conv_gru_frames, ("y", "next_state"), feeds={"state": "next_state"}),
    Network("warp", Warp, pictures(2, 3, 16, 12)),
    Network("encoder", Encoder, encoder_frames((2, 7), (3, 12), (2, 7)), dims=BATCH_AND_LENGTH),
    Network(
        "torch_encoder",
        partial(Encoder, torch_layer),
        encoder_frames((2, 7), (3, 12), (2, 7)),
        dims=BATCH_AND_LENGTH,
        exporters=("dynamo",),  # tracing writes the length into the graph, and onnxruntime refuses another one too
    ),
    Network(
        "torch_encoder_of_7",
        partial(Encoder, torch_layer),
        encoder_frames((2, 7), (3, 7)),
        dims={"x": {0: "batch"}, "padding": {0: "batch"}},
        exporters=("tracing",),
    ),
    Network(
        "decoder",
        Decoder,
        decoder_frames,
        ("logits", "next_token", "next_keys", "next_values"),
        dims={"keys": {3: "past"}, "values": {3: "past"}},
        feeds={"token": "next_token", "keys": "next_keys", "values": "next_values"},
        example=partial(decoder_frames, past=4),
    ),
    Network("tagger", Tagger, tagger_frames, dims={"x": {0: "batch", 1: "length"}}),
    Network("detector", Detector, pictures(1, 3, 24, 24), ("boxes", "scores", "labels"), on_host={"FilledRows"}),
)
