"""An architecture: a module from its config, with seeded random weights, and the inputs that export it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

SEED = 5
Exporter = Literal["tracing", "dynamo"]
Tensors = dict[str, Tensor]


@dataclass(frozen=True, eq=False)  # compared and hashed as itself
class Architecture:
    """A module that gets inputs by name, the inputs, their open dims, and the exporter that can write it."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[], Tensors]
    exporter: Exporter = "tracing"
    dims: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # open ones: input → axis → name
    seed: int = SEED

    def __str__(self) -> str:
        return self.name

    def module(self) -> Named:
        """The module, ready to infer, with the same random weights each time."""
        torch.manual_seed(self.seed)
        module = Named(self.make().eval().float().requires_grad_(False), tuple(self.inputs()))
        randomize_constant_weights(module)
        settle_batch_norms(module, self.example())
        with torch.inference_mode():
            made = module(*self.example())
        if not any(value.is_floating_point() and value.numel() and value.min() < value.max() for value in made):
            raise ValueError(f"{self.name} puts out the same value everywhere: give it another seed")
        return module

    def example(self) -> tuple[Tensor, ...]:
        """The inputs in order, the same each time."""
        torch.manual_seed(self.seed + 1)
        return tuple(self.inputs().values())


class Named(nn.Module):
    """A module whose inputs come in order and go in by name, and whose outputs are a flat tuple of tensors."""

    def __init__(self, module: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        """All tensors that the module puts out, each once."""
        made = self.module(**dict(zip(self.names, values, strict=True)))
        return tuple({id(tensor): tensor for tensor in tensors_in(made)}.values())


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in nested tuples, lists and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_in(item)


def randomize_constant_weights(module: nn.Module) -> None:
    """Gives weights that begin as zeros, ones or 1e-6 random values: they would hide a layer, or do nothing."""
    for weight in module.parameters():
        if weight.is_floating_point() and weight.numel() > 1 and bool((weight == weight.flatten()[0]).all()):
            is_zero = bool(weight.flatten()[0] == 0)
            nn.init.normal_(weight, std=0.05) if is_zero else nn.init.uniform_(weight, 0.5, 1.5)


def settle_batch_norms(module: nn.Module, example: tuple[Tensor, ...]) -> None:
    """Gives batch normalizations the statistics of an example, so that deep networks neither fade nor explode."""

    def settle(layer: Any, values: tuple[Tensor, ...]) -> None:
        (x,) = values
        axes = [axis for axis in range(x.ndim) if axis != 1]
        mean = x.mean(axes)
        layer.running_mean.copy_(mean)
        if x.numel() > x.shape[1]:  # not much less than the mean, which would make rounding errors large
            layer.running_var.copy_(x.var(axes).maximum(1e-2 * mean**2 + 1e-6))

    norms = [layer for layer in module.modules() if isinstance(getattr(layer, "running_mean", None), Tensor)]
    if not norms:
        return
    hooks = [layer.register_forward_pre_hook(settle) for layer in norms]
    with torch.inference_mode():
        module(*example)
    for hook in hooks:
        hook.remove()


# --- inputs ---


def pictures(height: int, width: int | None = None, name: str = "x", channels: int = 3) -> Callable[[], Tensors]:
    """One picture of normal values."""
    return lambda: {name: torch.randn(1, channels, height, width or height)}


def tokens(
    length: int, vocabulary: int = 1000, mask: str | None = "attention_mask", name: str = "input_ids"
) -> Callable[[], Tensors]:
    """A sequence of token ids, and a mask of ones."""

    def make() -> Tensors:
        ids = {name: torch.randint(3, vocabulary, (1, length))}
        return {**ids, mask: torch.ones(1, length, dtype=torch.int64)} if mask else ids

    return make
