"""A ball that a pinch carries, and the trail that it leaves: a small model, whose memory stays on the device."""

from __future__ import annotations

import numpy as np

import perframe as pf
from perframe import functional as F

from .drawn import JOINTS
from .networks import HANDS, MIDDLE, SURE, WRIST

THUMB, INDEX = 4, 8  # the tips that pinch
CLOSED, OPEN = 0.25, 0.45  # their distance in palms: a pinch begins below the first, and ends above the second
REACH = 0.8  # in palms, from the pinch to the middle of a ball that it takes
DRAG = 2.0  # the speed falls by exp(-DRAG) in a second of free flight
TRAIL = 20  # places
Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def ball_model(size: tuple[int, int]) -> pf.Model:
    """Points (HANDS, 21, 2), scores (HANDS,) and `seconds` → `ball` (1, 2) and `trail` (1, TRAIL, 2), in pixels.

    `state` is the place, the velocity in pixels a second, and 1 for each hand that holds the ball: (4 + HANDS,).
    """
    graph = pf.FunctionalGraph("ball")
    points = graph.add_input("float32", (HANDS, JOINTS, 2), "points")
    scores, seconds = graph.add_input("float32", (HANDS,), "scores"), graph.add_input("float32", (1,), "seconds")
    state = graph.add_input("float32", (4 + HANDS,), "state")
    trail = graph.add_input("float32", (1, TRAIL, 2), "trail")
    place, velocity, held = state[:2], state[2:4], state[4:]
    palm = F.norm(points[:, MIDDLE] - points[:, WRIST], 2, -1)
    gap = F.norm(points[:, THUMB] - points[:, INDEX], 2, -1)
    pinch = (points[:, THUMB] + points[:, INDEX]) / 2
    is_near = F.logical_or(held > 0, F.norm(pinch - place, 2, -1) < REACH * palm)
    is_closed = gap < palm * F.where(held > 0, OPEN, CLOSED)
    holds = F.to(F.logical_and(F.logical_and(is_near, is_closed), scores > SURE), "float32")
    hands = F.sum(holds)
    carried = F.sum(pinch * F.unsqueeze(holds, 1), 0) / F.maximum(hands, 1.0)
    step = F.clamp(seconds, 1e-3, 0.1)
    flown = place + velocity * step
    limits = np.array(size, np.float32)
    inside = F.minimum(F.maximum(flown, 0.0), limits)
    turned = F.where(F.eq(flown, inside), velocity, -velocity) * F.exp(step * -DRAG)  # it bounces off the edges
    thrown = velocity * 0.5 + (carried - place) / step * 0.5
    is_held = hands > 0
    now, speed = F.where(is_held, carried, inside), F.where(is_held, thrown, turned)
    ball = F.unsqueeze(now, 0)
    longer = F.cat([F.unsqueeze(ball, 0), trail[:, :-1]], 1)
    return graph.compile(ball=ball, new_trail=longer, new_state=F.cat([now, speed, holds], 0))


def beginning(size: tuple[int, int]) -> dict[str, Array]:
    """The states of a ball that rests in the middle of a picture of this width and height."""
    middle = np.array(size, np.float32) / 2
    return {
        "state": np.concatenate([middle, np.zeros(2 + HANDS)]).astype(np.float32),
        "trail": np.tile(middle, (1, TRAIL, 1)).astype(np.float32),
    }
