"""What creatures sense, and how they move.

`F` is `torch` in training, and `pf.functional` in the demo. Both have these functions by the same names, so creatures
are trained in the world in which they live. A state is (worlds, 4, creatures): x, y, and the velocity both ways. The
demo's world is 2 high; time is in seconds.
"""

from __future__ import annotations

from typing import Any

SENSES = 12
NEAR, CLOSE, FEAR, WALL = 0.11, 0.03, 0.28, 0.10
"""How far they see each other, feel each other, see the hawk, and feel a wall."""
TURN, THRUST = 5.0, 1.2
"""How fast they can turn, in radians a second, and gather speed."""
SLOWEST, FASTEST = 0.12, 0.80


def senses(F: Any, state: Any, hawk: Any, half: tuple[float, float]) -> Any:
    """What each creature senses, (worlds, creatures, 12): others, the hawk and the walls, as seen from its own head.

    `hawk` is (worlds, 3, 1): where it is, and how frightening, 0..1. `half` is half of the world's width and height.
    """
    x, y, speed_x, speed_y = (state[:, row] for row in range(4))
    across, down = x.unsqueeze(1) - x.unsqueeze(2), y.unsqueeze(1) - y.unsqueeze(2)
    distance = across * across + down * down
    values = F.stack([x, y, speed_x, speed_y, x * 0 + 1], 2)
    near = F.matmul(F.exp(distance * (-0.5 / NEAR**2)), values)
    close = F.matmul(F.exp(distance * (-0.5 / CLOSE**2)), values)
    others = near[..., 4] - 1  # without oneself
    some = others + 0.3
    speed = F.sqrt(speed_x * speed_x + speed_y * speed_y + 1e-6)
    ahead_x, ahead_y = speed_x / speed, speed_y / speed

    def seen(toward_x: Any, toward_y: Any) -> list[Any]:
        """A direction as ahead and to the side."""
        return [toward_x * ahead_x + toward_y * ahead_y, toward_y * ahead_x - toward_x * ahead_y]

    hawk_x, hawk_y = hawk[:, 0] - x, hawk[:, 1] - y
    away = F.sqrt(hawk_x * hawk_x + hawk_y * hawk_y + 1e-6)
    fear = F.exp(away * away * (-0.5 / FEAR**2)) * hawk[:, 2] / away
    return F.stack(
        [
            *seen((near[..., 0] - x * near[..., 4]) / some / NEAR, (near[..., 1] - y * near[..., 4]) / some / NEAR),
            *seen(
                (near[..., 2] - speed_x * near[..., 4]) / some * 3, (near[..., 3] - speed_y * near[..., 4]) / some * 3
            ),
            *seen((x * close[..., 4] - close[..., 0]) / CLOSE, (y * close[..., 4] - close[..., 1]) / CLOSE),
            *seen(hawk_x * fear * 2, hawk_y * fear * 2),
            *seen(wall(F, x, half[0]), wall(F, y, half[1])),
            F.log(others.clamp(0) + 0.3),
            speed * 3 - 1,
        ],
        2,
    )


def wall(F: Any, at: Any, half: float) -> Any:
    """How strongly the walls at -half and half push, and to which side."""
    return F.exp((-half - at) / WALL).clamp(0, 3) - F.exp((at - half) / WALL).clamp(0, 3)


def moved(F: Any, state: Any, action: Any, half: tuple[float, float], seconds: float) -> Any:
    """The state after these seconds. `action` is (worlds, creatures, 2), -1..1: how they turn, and speed up."""
    x, y, speed_x, speed_y = (state[:, row] for row in range(4))
    turn = action[..., 0] * (TURN * seconds)
    speed = F.sqrt(speed_x * speed_x + speed_y * speed_y + 1e-6)
    faster = (speed + action[..., 1] * (THRUST * seconds)).clamp(SLOWEST, FASTEST) / speed
    cos, sin = F.cos(turn) * faster, F.sin(turn) * faster
    speed_x, speed_y = speed_x * cos - speed_y * sin, speed_x * sin + speed_y * cos
    x = (x + speed_x * seconds).clamp(-half[0], half[0])
    y = (y + speed_y * seconds).clamp(-half[1], half[1])
    return F.stack([x, y, speed_x, speed_y], 1)
