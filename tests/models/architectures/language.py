"""Language models of Hugging Face's transformers, small: four layers of 256 values, 1000 tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from models.architectures.architecture import Architecture, Exporter, Tensors, tokens
from models.architectures.torchvision_operators import library

LENGTH = 64
ENCODER = {
    "vocab_size": 1000,
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}
DECODER = {**ENCODER, "num_key_value_heads": 2, "use_cache": False, "pad_token_id": 0}
BOTH = {
    "vocab_size": 1000,
    "d_model": 256,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
    "use_cache": False,
}


def from_config(model: str, config: str, **values: Any) -> Callable[[], nn.Module]:
    """A model of transformers by the names of its class and of its config."""

    def make() -> nn.Module:
        transformers = library("transformers")
        module: nn.Module = getattr(transformers, model)(getattr(transformers, config)(**values))
        return module

    return make


def sequence(name: str, kind: str, inputs: Callable[[], Tensors], exporter: Exporter, **values: Any) -> Architecture:
    """A model of tokens with an open batch and length. `kind` is its class without "Model", or the whole of it."""
    model, _, config = kind.partition("/")
    make = from_config(model, config or model.removesuffix("Model") + "Config", **values)
    lengths = {key: "target_sequence" if key.startswith("decoder") else "sequence" for key in inputs()}
    return Architecture(name, make, inputs, exporter, {key: {0: "batch", 1: lengths[key]} for key in lengths})


def encoder(name: str, kind: str, exporter: Exporter = "tracing", **values: Any) -> Architecture:
    """A model that reads a whole text."""
    return sequence(name, kind, tokens(LENGTH), exporter, **{**ENCODER, **values})


def decoder(name: str, kind: str, exporter: Exporter = "tracing", **values: Any) -> Architecture:
    """A model that predicts the next token."""
    return sequence(name, kind, tokens(LENGTH), exporter, **{**DECODER, **values})


def translator(name: str, kind: str, exporter: Exporter = "tracing", **values: Any) -> Architecture:
    """A model that reads one text and writes another."""

    def make() -> Tensors:
        source, target = tokens(LENGTH)(), tokens(LENGTH // 2, mask=None, name="decoder_input_ids")()
        return {**source, **target}

    return sequence(name, kind, make, exporter, **{**BOTH, **values})


class T5Encoder(nn.Module):
    """The encoder of T5 alone, as text-to-picture models use it."""

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self.encoder = from_config("T5EncoderModel", "T5Config", **values)()

    def forward(self, input_ids: Tensor) -> Tensor:
        """The hidden states."""
        hidden: Tensor = self.encoder(input_ids=input_ids, return_dict=False)[0]
        return hidden


T5 = {"vocab_size": 1000, "d_model": 256, "d_kv": 64, "d_ff": 1024, "num_layers": 2, "num_heads": 4, "use_cache": False}
MAMBA = {"vocab_size": 1000, "hidden_size": 256, "state_size": 16, "num_hidden_layers": 2, "use_cache": False}
OF_GPT2 = {"vocab_size": 1000, "n_embd": 256, "n_layer": 4, "n_head": 4, "n_positions": 128, "use_cache": False}

ARCHITECTURES = [
    encoder("bert", "BertModel"),
    encoder("roberta", "RobertaModel"),
    sequence(
        "distilbert", "DistilBertModel", tokens(LENGTH), "tracing", vocab_size=1000, dim=256, n_layers=4, n_heads=4
    ),
    encoder("albert", "AlbertModel", embedding_size=64),
    encoder("electra", "ElectraModel", embedding_size=64),
    encoder("mobilebert", "MobileBertModel", embedding_size=64, intra_bottleneck_size=64, intermediate_size=256),
    encoder("deberta_v2", "DebertaV2Model", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=32),
    encoder("mpnet", "MPNetModel"),
    encoder("squeezebert", "SqueezeBertModel", embedding_size=256),
    encoder("convbert", "ConvBertModel", embedding_size=64),
    encoder("modernbert", "ModernBertModel", pad_token_id=0),
    sequence(
        "fnet", "FNetModel", tokens(LENGTH, mask=None), "dynamo", **{**ENCODER, "use_tpu_fourier_optimizations": False}
    ),
    encoder("xlnet", "XLNetModel", d_model=256, n_layer=3, n_head=4, d_inner=1024),
    sequence("gpt2", "GPT2LMHeadModel/GPT2Config", tokens(LENGTH), "tracing", **OF_GPT2),
    decoder(
        "gpt_neo", "GPTNeoModel", num_layers=4, num_heads=4, attention_types=[[["global", "local"], 2]], window_size=16
    ),
    decoder("llama", "LlamaForCausalLM/LlamaConfig"),
    decoder("qwen2", "Qwen2Model"),
    decoder("qwen3", "Qwen3Model", head_dim=64),
    decoder("gemma", "GemmaModel", head_dim=64),
    decoder("phi", "PhiModel"),
    decoder("mistral", "MistralModel", sliding_window=32),
    decoder("opt", "OPTModel", ffn_dim=1024, word_embed_proj_dim=256),
    decoder("bloom", "BloomModel", n_layer=4, n_head=4),
    Architecture("mamba", from_config("MambaModel", "MambaConfig", **MAMBA), tokens(32, mask=None)),
    Architecture("t5_encoder", lambda: T5Encoder(**T5), tokens(LENGTH, mask=None)),
    translator("t5", "T5ForConditionalGeneration/T5Config", **T5),
    translator("bart", "BartModel"),
    translator("marian", "MarianMTModel/MarianConfig", pad_token_id=0, decoder_start_token_id=0, eos_token_id=1),
    translator("pegasus", "PegasusModel"),
]
