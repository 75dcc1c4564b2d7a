"""The teacher: a slow classical oil-painting filter that the network in `train.py` learns to imitate.

The look has three parts.

1. The anisotropic Kuwahara filter. Kuwahara (1976) replaces a pixel by the mean of whichever neighbouring window
   varies least, which flattens texture and keeps edges. Kyprianidis, Kang and Doellner (2009, "Image and Video
   Abstraction by Anisotropic Kuwahara Filtering") stretch the window along the local direction, so the flat patches
   follow the shapes like strokes of a brush. The eight smooth sectors use the polynomial weights of Kyprianidis, Semmo,
   Kang and Doellner (2010).
2. A grade: a little more saturation and contrast, as pigment has.
3. A relief: the painted brightness is taken as the thickness of the paint, and light from the top left models it.

Parts 1 and 2 commute with flips, quarter turns and exchanged colour channels, because directions and variances are
summed over the channels alike. Training uses that to draw many pairs from one filtered picture. Part 3 has a fixed
light and is therefore applied after such changes.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from scipy.ndimage import correlate1d, gaussian_filter

RADIUS = 6.0
"""Radius in pixels of the filter's disc where the picture has no direction."""
STRETCH = 1.0
"""The disc becomes an ellipse of axes (1 + anisotropy / STRETCH) and its inverse."""
HARDNESS, SHARPNESS = 8.0, 8.0
"""How small a variance counts as flat, and how strongly the flattest sector wins."""
TENSOR_SIGMA = 2.0
SATURATION, CONTRAST, RELIEF = 1.15, 0.2, 0.7


def structure(image: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cosine and sine of the direction along edges, and the anisotropy 0..1, of an (H, W, 3) picture."""
    # Derivatives with the smoothing of Jaehne et al., which turn the same in every direction, unlike Sobel's.
    smooth, difference = np.array([0.183, 0.634, 0.183]), np.array([-0.5, 0.0, 0.5])
    dx = correlate1d(correlate1d(image, difference, axis=1, mode="nearest"), smooth, axis=0, mode="nearest")
    dy = correlate1d(correlate1d(image, difference, axis=0, mode="nearest"), smooth, axis=1, mode="nearest")
    products = np.stack([(dx * dx).sum(2), (dx * dy).sum(2), (dy * dy).sum(2)], axis=2)
    e, f, g = np.moveaxis(gaussian_filter(products, (TENSOR_SIGMA, TENSOR_SIGMA, 0), mode="nearest"), 2, 0)
    root = np.sqrt((e - g) ** 2 + 4.0 * f * f)
    angle = 0.5 * np.arctan2(2.0 * f, e - g) + math.pi / 2
    # The small constant calls sensor noise in a plain sky directionless; otherwise it would grow strokes of its own.
    anisotropy = root / (e + g + 1e-4)
    return np.cos(angle), np.sin(angle), anisotropy


@numba.njit(parallel=True, fastmath=True)
def _kuwahara(
    image: np.ndarray,
    cosine: np.ndarray,
    sine: np.ndarray,
    anisotropy: np.ndarray,
    radius: float,
    stretch: float,
    hardness: float,
    sharpness: float,
) -> np.ndarray:
    height, width = image.shape[0], image.shape[1]
    out = np.empty_like(image)
    zeta = 2.0 / radius
    eta = (zeta + math.cos(math.pi / 8)) / math.sin(math.pi / 8) ** 2
    half = math.sqrt(0.5)
    for y in numba.prange(height):
        moments = np.empty((8, 7), np.float32)
        weight = np.empty(8, np.float32)
        for x in range(width):
            c, s = cosine[y, x], sine[y, x]
            long = radius * (stretch + anisotropy[y, x]) / stretch
            short = radius * stretch / (stretch + anisotropy[y, x])
            reach_x = int(math.sqrt((long * c) ** 2 + (short * s) ** 2))
            reach_y = int(math.sqrt((long * s) ** 2 + (short * c) ** 2))
            moments[:] = 0.0
            for j in range(-reach_y, reach_y + 1):
                yy = min(max(y + j, 0), height - 1)
                for i in range(-reach_x, reach_x + 1):
                    u, v = (c * i + s * j) / long, (c * j - s * i) / short
                    square = u * u + v * v
                    if square > 1.0:
                        continue
                    xx = min(max(x + i, 0), width - 1)
                    for turn in range(2):
                        p, q = (u, v) if turn == 0 else (half * (u - v), half * (u + v))
                        a, b = zeta - eta * p * p, zeta - eta * q * q
                        weight[turn] = max(0.0, q + a) ** 2
                        weight[turn + 2] = max(0.0, b - p) ** 2
                        weight[turn + 4] = max(0.0, a - q) ** 2
                        weight[turn + 6] = max(0.0, p + b) ** 2
                    total = 0.0
                    for k in range(8):
                        total += weight[k]
                    scale = math.exp(-3.125 * square) / total
                    r, g, bl = image[yy, xx, 0], image[yy, xx, 1], image[yy, xx, 2]
                    for k in range(8):
                        w = weight[k] * scale
                        if w > 0.0:
                            moments[k, 0] += w
                            moments[k, 1] += w * r
                            moments[k, 2] += w * g
                            moments[k, 3] += w * bl
                            moments[k, 4] += w * (r * r + g * g + bl * bl)
            total, red, green, blue = 0.0, 0.0, 0.0, 0.0
            for k in range(8):
                n = moments[k, 0]
                r, g, bl = moments[k, 1] / n, moments[k, 2] / n, moments[k, 3] / n
                variance = abs(moments[k, 4] / n - (r * r + g * g + bl * bl))
                w = 1.0 / (1.0 + (hardness * 1000.0 * variance) ** (0.5 * sharpness))
                total += w
                red += w * r
                green += w * g
                blue += w * bl
            out[y, x, 0], out[y, x, 1], out[y, x, 2] = red / total, green / total, blue / total
    return out


def kuwahara(image: np.ndarray) -> np.ndarray:
    """The anisotropic Kuwahara filter of an (H, W, 3) float32 picture in 0..1."""
    cosine, sine, anisotropy = (part.astype(np.float32) for part in structure(image))
    image = np.ascontiguousarray(image, np.float32)
    return _kuwahara(image, cosine, sine, anisotropy, RADIUS, STRETCH, HARDNESS, SHARPNESS)


def grade(image: np.ndarray) -> np.ndarray:
    """More saturation, and a gentle S-curve that leaves black, middle grey and white where they are."""
    grey = image.mean(axis=-1, keepdims=True)
    vivid = np.clip(grey + SATURATION * (image - grey), 0.0, 1.0)
    curve = vivid * vivid * (3.0 - 2.0 * vivid)
    return vivid + CONTRAST * (curve - vivid)


def relief(image: np.ndarray) -> np.ndarray:
    """Light the painted brightness from the top left as if it were the thickness of the paint."""
    thickness = gaussian_filter(image.mean(axis=-1), 0.7, mode="nearest")
    slope = thickness - np.pad(thickness, ((2, 0), (2, 0)), mode="edge")[:-2, :-2]
    # tanh keeps strong edges from turning into bright or dark outlines.
    return np.clip(image + RELIEF * 0.12 * np.tanh(slope / 0.12)[..., None], 0.0, 1.0)


def paint(image: np.ndarray) -> np.ndarray:
    """The whole teacher on an (H, W, 3) float32 picture in 0..1."""
    return relief(grade(kuwahara(image))).astype(np.float32)
