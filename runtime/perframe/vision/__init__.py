"""From what a network saw to what a program does with it: boxes, points, masks, and things that are followed."""

from perframe.vision.anchors import ssd_anchors, ultraface_priors
from perframe.vision.decoding import (
    decode_centernet,
    decode_detr,
    decode_ssd,
    decode_ultraface,
    decode_yolo,
    decode_yolo_heads,
)
from perframe.vision.detections import Detections, to_picture
from perframe.vision.labels import labels_of, top_labels
from perframe.vision.masks import upsample_mask
from perframe.vision.regions import points_of_regions, regions_of_boxes, regions_of_points
from perframe.vision.suppression import BestBoxes, best_boxes

__all__ = [
    "BestBoxes",
    "Detections",
    "best_boxes",
    "decode_centernet",
    "decode_detr",
    "decode_ssd",
    "decode_ultraface",
    "decode_yolo",
    "decode_yolo_heads",
    "labels_of",
    "points_of_regions",
    "regions_of_boxes",
    "regions_of_points",
    "ssd_anchors",
    "to_picture",
    "top_labels",
    "ultraface_priors",
    "upsample_mask",
]
