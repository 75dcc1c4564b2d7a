"""Decoders with caches, small, with seeded random weights: as optimum exports them, from transformers' configs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from models.architectures.torchvision_operators import library

VOCABULARY, WIDTH, LAYERS, HEADS = 300, 64, 2, 4
_BASE = {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
_LLAMA = {**_BASE, "intermediate_size": 128, "num_key_value_heads": 2, "max_position_embeddings": 1024}
_NO_TOKENS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}


@dataclass(frozen=True)
class Decoder:
    """A decoder alone, or with an encoder whose output it reads."""

    name: str
    kind: str  # the names of the class and of the config, without the latter's "Config"
    values: dict[str, Any]
    heads: int = HEADS  # of keys and values
    encoder: Callable[[Any], Tensor] | None = None
    layers: int = LAYERS
    head_size: int = WIDTH // HEADS

    def made(self) -> Any:
        """The model of transformers."""
        transformers = library("transformers")
        torch.manual_seed(3)
        model, config = self.kind.split("/")
        options = {**self.values, **_NO_TOKENS, "attn_implementation": "eager"}
        made = getattr(transformers, model)(getattr(transformers, config + "Config")(**options)).eval()
        for parameter in made.parameters():  # random weights of transformers are so small that all logits are alike
            parameter.requires_grad_(False)
            if parameter.dim() > 1:
                parameter.mul_(6)
        return made


def _of_sound(model: Any) -> Tensor:
    sound = torch.from_numpy(np.random.default_rng(2).standard_normal((1, 8, 32)).astype(np.float32))
    hidden: Tensor = model.model.encoder(sound).last_hidden_state
    return hidden


def _of_text(model: Any) -> Tensor:
    hidden: Tensor = model.encoder(input_ids=torch.tensor([[5, 17, 80, 7, 9, 120, 3]])).last_hidden_state
    return hidden


_WHISPER = {
    **{"vocab_size": VOCABULARY, "d_model": WIDTH, "encoder_layers": 1, "decoder_layers": LAYERS},
    **{"encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "encoder_ffn_dim": 128},
    **{"decoder_ffn_dim": 128, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 600},
    **{"decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None},
}
_T5 = {
    **{"vocab_size": VOCABULARY, "d_model": WIDTH, "d_kv": WIDTH // HEADS, "d_ff": 128, "num_layers": LAYERS},
    **{"num_heads": HEADS, "decoder_start_token_id": 1},
}
DECODERS = {
    one.name: one
    for one in (
        Decoder("gpt2", "GPT2LMHeadModel/GPT2", {
            **{"vocab_size": VOCABULARY, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 600}
        }),
        Decoder("llama", "LlamaForCausalLM/Llama", _LLAMA, 2),
        Decoder("qwen", "Qwen2ForCausalLM/Qwen2", _LLAMA, 2),
        Decoder("whisper", "WhisperForConditionalGeneration/Whisper", _WHISPER, encoder=_of_sound),
        Decoder("t5", "T5ForConditionalGeneration/T5", _T5, encoder=_of_text),
    )
}  # fmt: skip


class Step(nn.Module):
    """One step of a decoder: tokens and caches go in, logits and longer caches come out."""

    def __init__(self, model: Any, of_text: bool) -> None:
        super().__init__()
        self.model, self.of_text = model, of_text

    def forward(self, input_ids: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        """`others` are mask and positions, or the encoder's output; and then the caches."""
        transformers = library("transformers")
        first, *past = (others[0], *others[2:]) if self.of_text else others
        cache = transformers.DynamicCache(list(zip(past[::2], past[1::2], strict=True)))
        if self.of_text:
            out = self.model(
                input_ids=input_ids, attention_mask=first, position_ids=others[1], past_key_values=cache, use_cache=True
            )
            held = out.past_key_values
        else:
            both = transformers.EncoderDecoderCache(cache, transformers.DynamicCache())
            out = self.model(
                decoder_input_ids=input_ids, encoder_outputs=(first,), past_key_values=both, use_cache=True
            )
            held = out.past_key_values.self_attention_cache
        return (out.logits, *(value for layer in held.layers for value in (layer.keys, layer.values)))


def export(decoder: Decoder, file: Path) -> tuple[Any, Tensor | None]:
    """Write the decoder. Return the model of transformers, and its encoder's output."""
    model = decoder.made()
    hidden = None if decoder.encoder is None else decoder.encoder(model)
    ids = torch.tensor([[5, 6, 7]])
    names = [f"{layer}.{kind}" for layer in range(decoder.layers) for kind in ("key", "value")]
    past = [torch.zeros(1, decoder.heads, 5, decoder.head_size) for _ in names]
    if hidden is None:
        others = {"attention_mask": torch.ones(1, 8, dtype=torch.int64), "position_ids": torch.arange(5, 8)[None]}
        open_dims = {"attention_mask": {1: "total"}, "position_ids": {1: "sequence"}}
    else:
        others, open_dims = {"encoder_hidden_states": hidden}, {}
    caches = {
        f"{begin}.{name}": {2: size}
        for name in names
        for begin, size in (("past_key_values", "past"), ("present", "total"))
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Step(model, hidden is None).eval(),
            (ids, *others.values(), *past),
            str(file),
            dynamo=False,
            opset_version=18,
            input_names=["input_ids", *others, *(f"past_key_values.{name}" for name in names)],
            output_names=["logits", *(f"present.{name}" for name in names)],
            dynamic_axes={"input_ids": {1: "sequence"}, "logits": {1: "sequence"}, **open_dims, **caches},
        )
    return model, hidden
