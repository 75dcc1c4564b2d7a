"""From what a network saw to what a program does with it: boxes, points, masks, and things that are followed."""

from perframe.vision.drawing import Overlay
from perframe.vision.filters import OneEuroFilter, exponential_smoothing, one_euro
from perframe.vision.tracking import Tracker, Tracks
from perframe.vision.tracking_regions import follow_regions

__all__ = ["OneEuroFilter", "Overlay", "Tracker", "Tracks", "exponential_smoothing", "follow_regions", "one_euro"]
