"""Poses of people for pictures on which networks are trained."""

from __future__ import annotations

import numpy as np
from demos.common.people import Pose


def any_pose(random: np.random.Generator, x: float, y: float, height: float, *, waving: float, angle: float) -> Pose:
    """Somebody there, in pixels. The share `waving` of people raise a hand, at most at this angle."""
    return Pose(
        x=x,
        y=y,
        height=height,
        roll=random.normal(0, 0.16),
        turn=float(np.clip(random.normal(0, 0.3), -0.6, 0.6)),
        nod=random.normal(0, 0.12),
        smile=random.uniform(-0.5, 1),
        mouth=random.uniform(0, 0.9),
        eyes=1.0 if random.random() < 0.9 else 0.0,
        wave=random.uniform(-angle, angle) if random.random() < waving else None,
    )
