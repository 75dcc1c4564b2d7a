"""Models of sound of Hugging Face's transformers, small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from models.architectures.architecture import Architecture, Exporter, Tensors
from models.architectures.language import BOTH, from_config
from models.architectures.vision import TRANSFORMER, custom

SECOND = 16000
FEATURES = {"conv_dim": [64] * 7, "num_conv_pos_embeddings": 32, "num_conv_pos_embedding_groups": 4}


def wave(name: str = "input_values", seconds: float = 0.5) -> Callable[[], Tensors]:
    """Sound pressure."""
    return lambda: {name: torch.randn(1, int(seconds * SECOND))}


def listener(name: str, kind: str, exporter: Exporter = "tracing", **values: Any) -> Architecture:
    """A transformer behind convolutions of a wave."""
    return custom(name, kind, wave(), exporter, **{**TRANSFORMER, **FEATURES, "vocab_size": 32, **values})


def spectrum_and_text() -> Tensors:
    """A spectrum of log mel, and the first tokens of its text."""
    return {"input_features": torch.randn(1, 80, 200), "decoder_input_ids": torch.randint(3, 999, (1, 8))}


WHISPER = {**BOTH, "max_source_positions": 100, "max_target_positions": 32, "pad_token_id": 0}
TEXT_TO_SPEECH = {
    "vocab_size": 40,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "ffn_dim": 128,
    "flow_size": 64,
    "spectrogram_bins": 129,
    "upsample_initial_channel": 128,
    "noise_scale": 0.0,
    "noise_scale_duration": 0.0,
}

ARCHITECTURES = [
    custom("whisper", "WhisperModel", spectrum_and_text, "dynamo", **WHISPER),
    listener("wav2vec2", "Wav2Vec2ForCTC/Wav2Vec2Config"),
    listener("hubert", "HubertModel"),
    listener("wavlm", "WavLMModel"),
    listener("sew", "SEWModel", squeeze_factor=2, conv_dim=[64] * 13),
    listener("wav2vec2_conformer", "Wav2Vec2ConformerModel"),
    custom(
        "audio_spectrogram",
        "ASTModel",
        lambda: {"input_values": torch.randn(1, 128, 128)},
        max_length=128,
        **TRANSFORMER,
    ),
    custom(
        "encodec",
        "EncodecModel",
        lambda: {"input_values": torch.randn(1, 1, SECOND // 2)},
        num_filters=8,
        hidden_size=64,
        codebook_size=64,
        use_causal_conv=False,
    ),
    custom(
        "dac",
        "DacModel",
        lambda: {"input_values": torch.randn(1, 1, 8192)},
        encoder_hidden_size=16,
        decoder_hidden_size=128,
        n_codebooks=4,
        codebook_size=64,
    ),
    custom("vits", "VitsModel", lambda: {"input_ids": torch.randint(1, 40, (1, 24))}, **TEXT_TO_SPEECH),
    Architecture(
        "speecht5_hifigan",
        from_config("SpeechT5HifiGan", "SpeechT5HifiGanConfig", upsample_initial_channel=64),
        lambda: {"spectrogram": torch.randn(1, 40, 80)},
    ),
]
