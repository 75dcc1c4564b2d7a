"""Models of torchvision: classification, segmentation, detection, optical flow and video."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from models.architectures.architecture import Architecture, Exporter, Tensors, pictures
from models.architectures.torchvision_operators import library


def model(
    name: str,
    inputs: int | Callable[[], Tensors] = 128,
    exporter: Exporter = "tracing",
    wrap: Callable[[nn.Module], nn.Module] = lambda module: module,
    **options: Any,
) -> Architecture:
    """A model by its name in torchvision. `inputs` may be the size of a picture."""
    kind, _, called = name.rpartition(".")

    def make() -> nn.Module:
        models = library(f"torchvision.models.{kind}" if kind else "torchvision.models")
        weights = {"weights": None, **({"weights_backbone": None} if kind in ("detection", "segmentation") else {})}
        return wrap(getattr(models, called)(**weights, **options))

    feed = pictures(inputs) if isinstance(inputs, int) else inputs
    return Architecture(f"torchvision_{called}", make, feed, exporter)


class Batch(nn.Module):
    """A detector that takes one batch; torchvision's take a list of pictures."""

    def __init__(self, detector: nn.Module) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, x: Tensor) -> Any:
        """The detections in the first picture."""
        return self.detector([x[0]])[0]


class LastFlow(nn.Module):
    """An optical flow's last refinement."""

    def __init__(self, flow: nn.Module) -> None:
        super().__init__()
        self.flow = flow

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """The flow from the first picture to the second."""
        last: Tensor = self.flow(first, second, num_flow_updates=4)[-1]
        return last


def clip(frames: int, size: int) -> Callable[[], Tensors]:
    """A short video."""
    return lambda: {"x": torch.randn(1, 3, frames, size, size)}


def pair(height: int, width: int) -> Callable[[], Tensors]:
    """Two pictures."""
    return lambda: {name: torch.rand(1, 3, height, width) * 2 - 1 for name in ("first", "second")}


def detector(name: str, size: int = 320, spread: float = 1, **options: Any) -> Architecture:
    """A detector of pictures of one size. It keeps boxes whose scores are as low as those of random weights.

    `spread` multiplies the weights that give classes their scores. Where random weights give hundreds of boxes scores
    that differ in their last digits only, no two runtimes choose the same boxes; trained weights do not do that.
    """
    sizes = {} if "ssd" in name else {"min_size": size, "max_size": size}
    least = {"box_score_thresh": 0.005} if "rcnn" in name else {"score_thresh": 0.001}
    return model(
        f"detection.{name}", size, wrap=lambda whole: Batch(spreading(whole, spread)), **sizes, **least, **options
    )


def spreading(whole: nn.Module, spread: float) -> nn.Module:
    """The detector with other weights where its classes get their scores."""
    for name, module in whole.named_modules():
        if any(part in name for part in ("cls_logits", "cls_score", "classification_head.module_list")):
            for weights in module.parameters(recurse=False):
                if weights.ndim > 1:
                    weights.data *= spread
    return whole


ARCHITECTURES = [
    model("alexnet", 224),
    model("vgg11_bn", 224),
    model("squeezenet1_1"),
    model("resnet18"),
    model("resnext50_32x4d"),
    model("wide_resnet50_2", 96),
    model("densenet121"),
    model("googlenet", init_weights=False, aux_logits=False),
    model("inception_v3", 160, init_weights=False, aux_logits=False),
    model("shufflenet_v2_x1_0"),
    model("mnasnet0_5"),
    model("mobilenet_v2"),
    model("regnet_y_400mf"),
    model("efficientnet_v2_s"),
    model("convnext_tiny"),
    model("swin_t", 224),
    model("maxvit_t", 224),
    model("vit_b_32", 224),
    model("segmentation.deeplabv3_mobilenet_v3_large", 192),
    model("segmentation.lraspp_mobilenet_v3_large", pictures(192, name="input")),
    model("segmentation.fcn_resnet50", 128),
    detector("ssdlite320_mobilenet_v3_large"),
    detector("ssd300_vgg16", 300, spread=0.02),
    detector("retinanet_resnet50_fpn"),
    detector("fcos_resnet50_fpn", spread=4),
    detector("fasterrcnn_mobilenet_v3_large_320_fpn"),
    detector("keypointrcnn_resnet50_fpn"),
    detector("maskrcnn_resnet50_fpn", spread=4),
    model("optical_flow.raft_small", pair(128, 160), wrap=LastFlow),
    model("video.r3d_18", clip(8, 64)),
    model("video.mc3_18", clip(8, 64)),
    model("video.r2plus1d_18", clip(8, 64)),
    model("video.s3d", clip(16, 224)),
    model("video.swin3d_t", clip(8, 96)),
]
