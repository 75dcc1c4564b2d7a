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
from perframe.vision.drawing import Overlay
from perframe.vision.filters import OneEuroFilter, exponential_smoothing, one_euro
from perframe.vision.labels import labels_of, top_labels
from perframe.vision.masks import upsample_mask
from perframe.vision.regions import points_of_regions, regions_of_boxes, regions_of_points
from perframe.vision.suppression import BestBoxes, best_boxes
from perframe.vision.tracking import Tracker, Tracks
from perframe.vision.tracking_regions import follow_regions

__all__ = [
    "BestBoxes",
    "Detections",
    "OneEuroFilter",
    "Overlay",
    "Tracker",
    "Tracks",
    "best_boxes",
    "decode_centernet",
    "decode_detr",
    "decode_ssd",
    "decode_ultraface",
    "decode_yolo",
    "decode_yolo_heads",
    "exponential_smoothing",
    "follow_regions",
    "labels_of",
    "one_euro",
    "points_of_regions",
    "regions_of_boxes",
    "regions_of_points",
    "ssd_anchors",
    "to_picture",
    "top_labels",
    "ultraface_priors",
    "upsample_mask",
]
