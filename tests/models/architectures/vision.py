"""Vision models of Hugging Face's transformers, small: four layers or the smallest stock sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from models.architectures.architecture import Architecture, Exporter, Tensors, pictures
from models.architectures.language import ENCODER, from_config
from models.architectures.torchvision_operators import library

TRANSFORMER = {key: value for key, value in ENCODER.items() if key != "vocab_size"}
RESNET = {"embedding_size": 32, "hidden_sizes": [32, 64, 128, 256], "depths": [1, 1, 1, 1], "layer_type": "basic"}
DETECTION = {
    "d_model": 128,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 256,
    "decoder_ffn_dim": 256,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "num_queries": 50,
}
TEXT_TOWER = {**ENCODER, "max_position_embeddings": 32, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
VISION_TOWER = {**TRANSFORMER, "image_size": 128, "patch_size": 16}


def picture(name: str, kind: str, size: int = 128, exporter: Exporter = "tracing", **values: Any) -> Architecture:
    """A model of one picture. `kind` is "Class" or "Class/Config"."""
    return custom(name, kind, pictures(size, name="pixel_values"), exporter, **values)


def custom(
    name: str, kind: str, inputs: Callable[[], Tensors], exporter: Exporter = "tracing", **values: Any
) -> Architecture:
    """A model by the names of its class and of its config."""
    model, _, config = kind.partition("/")
    return Architecture(
        name, from_config(model, config or model.removesuffix("Model") + "Config", **values), inputs, exporter
    )


def transformer(name: str, kind: str, size: int = 128, exporter: Exporter = "tracing", **values: Any) -> Architecture:
    """A vision transformer of patches of 16 pixels."""
    return picture(name, kind, size, exporter, **{**TRANSFORMER, "image_size": size, "patch_size": 16, **values})


def resnet_backbone(**values: Any) -> Any:
    """The config of a small backbone."""
    return library("transformers").ResNetConfig(**{**RESNET, "out_features": ["stage2", "stage3", "stage4"], **values})


def with_backbone(model: str, config: str, backbone: Callable[[], Any], **values: Any) -> Callable[[], nn.Module]:
    """A model whose config holds the config of a backbone."""
    return lambda: from_config(model, config, backbone_config=backbone(), **values)()


def dinov2_backbone() -> Any:
    """The config of a small vision transformer that puts out four of its layers."""
    sizes = {**TRANSFORMER, "image_size": 126, "patch_size": 14, "mlp_ratio": 4}
    stages = {"out_indices": [1, 2, 3, 4], "apply_layernorm": True, "reshape_hidden_states": False}
    return library("transformers").Dinov2Config(**sizes, **stages)


def captioner() -> nn.Module:
    """A vision transformer that reads a picture, and a decoder that writes its text."""
    transformers = library("transformers")
    see = transformers.ViTConfig(**VISION_TOWER)
    write = transformers.TrOCRConfig(
        vocab_size=1000, d_model=256, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=512, use_cache=False
    )
    module: nn.Module = transformers.VisionEncoderDecoderModel(
        transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(see, write)
    )
    return module


def picture_and_text(size: int = 128, length: int = 16) -> Tensors:
    """A picture, and tokens that end with the greatest id, where CLIP looks for the end."""
    ids = torch.randint(3, 999, (1, length))
    ids[0, -1] = 2
    mask = torch.ones(1, length, dtype=torch.int64)
    return {"input_ids": ids, "pixel_values": torch.randn(1, 3, size, size), "attention_mask": mask}


def picture_and_start() -> Tensors:
    """A picture, and the first tokens of its text."""
    return {"pixel_values": torch.randn(1, 3, 128, 128), "decoder_input_ids": torch.randint(3, 999, (1, 8))}


def picture_and_points() -> Tensors:
    """A picture, and two points in it."""
    return {"pixel_values": torch.randn(1, 3, 128, 128), "input_points": torch.rand(1, 1, 2, 2) * 128}


ARCHITECTURES = [
    transformer("vit", "ViTForImageClassification/ViTConfig"),
    transformer("deit", "DeiTModel"),
    transformer("beit", "BeitModel", use_relative_position_bias=True),
    transformer("dinov2", "Dinov2Model", 126, patch_size=14, mlp_ratio=4),
    transformer("dinov3", "DINOv3ViTModel", num_register_tokens=4),
    picture(
        "swin",
        "SwinModel",
        image_size=128,
        patch_size=4,
        window_size=4,
        embed_dim=48,
        depths=[2, 2, 2],
        num_heads=[2, 4, 8],
    ),
    picture(
        "swinv2",
        "Swinv2Model",
        image_size=128,
        patch_size=4,
        window_size=4,
        embed_dim=48,
        depths=[2, 2, 2],
        num_heads=[2, 4, 8],
    ),
    picture(
        "swin2sr",
        "Swin2SRForImageSuperResolution/Swin2SRConfig",
        64,
        image_size=64,
        embed_dim=48,
        depths=[2, 2],
        num_heads=[3, 3],
        window_size=8,
    ),
    picture("convnext", "ConvNextModel", hidden_sizes=[48, 96, 192, 384], depths=[2, 2, 4, 2]),
    picture("convnextv2", "ConvNextV2Model", hidden_sizes=[48, 96, 192, 384], depths=[2, 2, 4, 2]),
    picture("segformer", "SegformerForSemanticSegmentation/SegformerConfig"),
    picture("mobilevit", "MobileViTModel", hidden_sizes=[48, 64, 80], image_size=128),
    picture("mobilevitv2", "MobileViTV2Model", exporter="dynamo", image_size=128, width_multiplier=0.5),
    picture("mobilenet_v1", "MobileNetV1Model", depth_multiplier=0.5),
    picture("resnet", "ResNetModel", **RESNET),
    picture(
        "regnet",
        "RegNetModel",
        embedding_size=32,
        hidden_sizes=[32, 64, 160, 384],
        depths=[1, 2, 4, 2],
        groups_width=16,
    ),
    picture(
        "efficientnet",
        "EfficientNetModel",
        width_coefficient=1.0,
        depth_coefficient=1.0,
        image_size=128,
        hidden_dim=1280,
    ),
    picture("poolformer", "PoolFormerModel", depths=[2, 2, 2, 2], hidden_sizes=[32, 64, 128, 256]),
    picture("levit", "LevitModel", 224),
    picture("cvt", "CvtModel", embed_dim=[32, 64, 128], depth=[1, 2, 3], num_heads=[1, 2, 4]),
    picture("pvt", "PvtModel", image_size=128, hidden_sizes=[32, 64, 128, 160], num_attention_heads=[1, 2, 4, 5]),
    picture("glpn", "GLPNForDepthEstimation/GLPNConfig", decoder_hidden_size=32, hidden_sizes=[32, 64, 160, 256]),
    transformer("yolos", "YolosForObjectDetection/YolosConfig", image_size=[128, 128], num_detection_tokens=20),
    replace(
        transformer(
            "dpt",
            "DPTForDepthEstimation/DPTConfig",
            backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[32, 64, 128, 128],
            fusion_hidden_size=64,
        ),
        seed=7,
    ),
    Architecture(
        "depth_anything",
        with_backbone(
            "DepthAnythingForDepthEstimation",
            "DepthAnythingConfig",
            dinov2_backbone,
            reassemble_hidden_size=256,
            neck_hidden_sizes=[32, 64, 96, 128],
            fusion_hidden_size=32,
            patch_size=14,
        ),
        pictures(126, name="pixel_values"),
        seed=6,
    ),
    Architecture(
        "detr",
        with_backbone(
            "DetrForObjectDetection",
            "DetrConfig",
            lambda: resnet_backbone(out_features=["stage4"]),
            use_timm_backbone=False,
            **DETECTION,
        ),
        pictures(128, name="pixel_values"),
    ),
    Architecture(
        "conditional_detr",
        with_backbone(
            "ConditionalDetrForObjectDetection",
            "ConditionalDetrConfig",
            lambda: resnet_backbone(out_features=["stage4"]),
            use_timm_backbone=False,
            **DETECTION,
        ),
        pictures(128, name="pixel_values"),
    ),
    Architecture(
        "deformable_detr",
        with_backbone(
            "DeformableDetrForObjectDetection",
            "DeformableDetrConfig",
            resnet_backbone,
            use_timm_backbone=False,
            **DETECTION,
        ),
        pictures(128, name="pixel_values"),
        "dynamo",
    ),
    Architecture(
        "rt_detr",
        from_config("RTDetrForObjectDetection", "RTDetrConfig", num_queries=50, decoder_layers=2),
        pictures(128, name="pixel_values"),
    ),
    Architecture(
        "mask2former",
        from_config(
            "Mask2FormerForUniversalSegmentation",
            "Mask2FormerConfig",
            num_queries=20,
            decoder_layers=3,
            feature_size=64,
            mask_feature_size=64,
            hidden_dim=64,
            num_attention_heads=4,
        ),
        pictures(128, name="pixel_values"),
        "dynamo",
    ),
    Architecture(
        "upernet",
        with_backbone(
            "UperNetForSemanticSegmentation",
            "UperNetConfig",
            lambda: resnet_backbone(out_features=["stage1", "stage2", "stage3", "stage4"]),
            hidden_size=64,
            auxiliary_in_channels=128,
            auxiliary_channels=32,
        ),
        pictures(128, name="pixel_values"),
        "dynamo",
    ),
    custom(
        "clip", "CLIPModel", picture_and_text, text_config=TEXT_TOWER, vision_config=VISION_TOWER, projection_dim=128
    ),
    custom("siglip", "SiglipModel", picture_and_text, text_config=TEXT_TOWER, vision_config=VISION_TOWER),
    custom(
        "owlvit",
        "OwlViTForObjectDetection/OwlViTConfig",
        picture_and_text,
        text_config=TEXT_TOWER,
        vision_config=VISION_TOWER,
        projection_dim=256,
    ),
    custom(
        "blip",
        "BlipForImageTextRetrieval/BlipConfig",
        picture_and_text,
        text_config={**TEXT_TOWER, "encoder_hidden_size": 256},
        vision_config=VISION_TOWER,
    ),
    Architecture("trocr", captioner, picture_and_start),
]
