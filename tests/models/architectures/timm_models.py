"""Models of timm: pictures to classes."""

from __future__ import annotations

from typing import Any

from models.architectures.architecture import Architecture, Exporter, pictures
from models.architectures.torchvision_operators import library


def model(name: str, size: int = 128, exporter: Exporter = "tracing", **options: Any) -> Architecture:
    """A model by its name in timm. Sizes are small where the model takes any."""
    return Architecture(
        f"timm_{name}",
        lambda: library("timm").create_model(name, pretrained=False, exportable=True, **options),
        pictures(size),
        exporter,
    )


ARCHITECTURES = [
    model("efficientnet_b0"),
    model("tf_efficientnetv2_b0"),
    model("mobilenetv3_large_100"),
    model("mobilenetv4_conv_small"),
    model("mobilenetv4_hybrid_medium", 192),
    model("ghostnetv2_100"),
    model("hrnet_w18_small"),
    model("repvgg_a0"),
    model("mobileone_s0"),
    model("poolformer_s12"),
    model("maxvit_rmlp_pico_rw_256", 256),
    model("coatnet_pico_rw_224", 224),
    model("xcit_nano_12_p16_224", 224),
    model("mixer_s32_224", 224),
    model("gmlp_ti16_224", 224),
    model("convmixer_1024_20_ks9_p14", 112),
    model("nfnet_l0"),
    model("rexnet_100"),
    model("fastvit_t8"),
    model("tiny_vit_5m_224", 224),
    model("edgenext_xx_small"),
    model("inception_next_atto"),
    model("lambda_resnet26t", 256),
    model("halonet26t", 256, "dynamo"),
    model("botnet26t_256", 256),
    model("efficientvit_b0"),
    model("efficientvit_m0", 224),
    model("swinv2_cr_tiny_ns_224", 224),
    model("pvt_v2_b0"),
    model("twins_svt_small", 224),
    model("levit_128s", 224),
    model("davit_tiny", 224),
    model("focalnet_tiny_srf", 224),
    model("res2net50_26w_4s"),
    model("skresnet18"),
    model("starnet_s1"),
    model("repvit_m0_9"),
    model("shvit_s1"),
    model("mambaout_femto"),
    model("volo_d1_224", 224, "dynamo"),
    model("sequencer2d_s", 112, img_size=112),
    model("vit_tiny_patch16_224", 224),
    model("eva02_tiny_patch14_224", 224),
]
