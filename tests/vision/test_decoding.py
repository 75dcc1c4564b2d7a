"""Decoders: raw outputs of networks to boxes, against loops over the boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.testing import Draw
from perframe.vision import (
    decode_centernet,
    decode_detr,
    decode_ssd,
    decode_ultraface,
    decode_yolo,
    decode_yolo_heads,
    ssd_anchors,
    ultraface_priors,
)
from vision.running import close, run, sigmoid

draw = Draw(71)


def corners(x: float, y: float, width: float, height: float) -> list[float]:
    return [x - width / 2, y - height / 2, x + width / 2, y + height / 2]


@pytest.mark.parametrize(
    ("size", "strides", "ratio", "count"),
    [
        (128, (8, 16, 16, 16), 1.0, 896),
        (192, (4,), 0.0, 2304),
        (192, (8, 16, 16, 16), 1.0, 2016),
        (224, (8, 16, 32, 32, 32), 1.0, 2254),
    ],
)
def test_mediapipe_has_as_many_anchors(size: int, strides: tuple[int, ...], ratio: float, count: int) -> None:
    anchors = ssd_anchors(size, strides, interpolated_scale_aspect_ratio=ratio)
    assert anchors.shape == (count, 4) and anchors.dtype == np.float32
    assert (anchors[:, 2:] == 1).all()
    np.testing.assert_allclose(anchors[0, :2], strides[0] / size / 2)
    np.testing.assert_allclose(anchors[-1, :2], 1 - strides[-1] / size / 2)


def test_anchors_with_sizes_of_their_own() -> None:
    """The first rows of TensorFlow's SSD MobileNet: 300 pixels, 6 layers, scales of 0.2 to 0.95."""
    anchors = ssd_anchors(
        300,
        (16, 32, 64, 128, 256, 512),
        aspect_ratios=(1.0, 2.0, 0.5, 3.0, 0.3333),
        min_scale=0.2,
        max_scale=0.95,
        fixed_anchor_size=False,
        reduce_boxes_in_lowest_layer=True,
    )
    assert len(anchors) == 3 * 19**2 + 6 * (10**2 + 5**2 + 3**2 + 2**2 + 1)
    np.testing.assert_allclose(anchors[:3, 2], [0.1, 0.2 * 2**0.5, 0.2 * 0.5**0.5], rtol=1e-6)
    np.testing.assert_allclose(anchors[3 * 19**2 + 5, 2:], (0.35 * 0.5) ** 0.5, rtol=1e-6)
    np.testing.assert_allclose(anchors[-1, 2:], 0.95**0.5, rtol=1e-6)


def test_anchors_of_oblong_inputs() -> None:
    assert len(ultraface_priors((320, 240))) == 4420 and len(ultraface_priors((640, 480))) == 17640
    anchors = ssd_anchors((100, 60), (16,), interpolated_scale_aspect_ratio=0)
    assert len(anchors) == 7 * 4
    np.testing.assert_allclose(anchors[-1], (6.5 / 7, 3.5 / 4, 1, 1))


@pytest.mark.parametrize("y_first", [False, True])
@pytest.mark.parametrize("exponential", [False, True])
def test_ssd(y_first: bool, exponential: bool, backend: str, backend_context: Any) -> None:
    batch, many, points, labels, size = 2, 7, 3, 4, (64, 48)
    boxes, logits = draw(batch, many, 4 + 2 * points, low=-9, high=9), draw(batch, many, labels, low=-6, high=6)
    anchors, scales = draw(many, 4, low=0.1, high=1), (10.0, 11.0, 5.0, 6.0)

    def decode(b: Any, s: Any) -> Any:
        return decode_ssd(b, s, anchors, size, scales=scales, exponential=exponential, y_first=y_first, clip=4)

    found = run(decode, {"b": boxes, "s": logits}, backend, backend_context)
    raw = boxes.reshape(batch, many, -1, 2)[..., ::-1] if y_first else boxes.reshape(batch, many, -1, 2)
    wanted, marks = np.zeros((batch, many, 4)), np.zeros((batch, many, points, 2))
    for b in range(batch):
        for n, (x, y, width, height) in enumerate(anchors.astype(float)):
            (dx, dy), (w, h) = raw[b, n, 0] / (10, 11), raw[b, n, 1] / (5, 6)
            w, h = (np.exp(w), np.exp(h)) if exponential else (w, h)
            box = corners(dx * width + x, dy * height + y, w * width, h * height)
            wanted[b, n] = np.array(box) * np.tile(size, 2)
            for k in range(points):
                px, py = raw[b, n, 2 + k] / (10, 11)
                marks[b, n, k] = (px * width + x) * size[0], (py * height + y) * size[1]
    scores = sigmoid(np.clip(logits, -4, 4))
    close(found[0], wanted)
    close(found[1], scores.max(-1))
    np.testing.assert_array_equal(found[2], np.clip(logits, -4, 4).argmax(-1))
    close(found[3], marks)


def test_a_single_class_has_no_classes_and_scores_may_lack_its_dim(backend: str, backend_context: Any) -> None:
    boxes, logits, anchors = draw(5, 4), draw(5, low=-3, high=3), draw(5, 4, low=0, high=1)
    found = run(lambda b, s: decode_ssd(b, s, anchors, 32), {"b": boxes, "s": logits}, backend, backend_context)
    close(found[1], sigmoid(logits))
    assert found[2] is None and found[3] is None
    (x, y, width, height), at = boxes[2].astype(float), anchors[2].astype(float) * 32
    close(found[0][2], corners(x * at[2] / 32 + at[0], y * at[3] / 32 + at[1], width * at[2] / 32, height * at[3] / 32))


@pytest.mark.parametrize("head", ["v5", "v8"])
@pytest.mark.parametrize(("labels", "points"), [(6, 0), (1, 0), (1, 2), (3, 1)])
def test_yolo(head: Any, labels: int, points: int, backend: str, backend_context: Any) -> None:
    first = 5 if head == "v5" else 4
    rows = draw(2, 9, first + labels + 3 * points, low=0, high=1)
    rows[..., :4] *= 300
    given = np.ascontiguousarray(rows.swapaxes(1, 2)) if head == "v8" else rows
    found = run(lambda x: decode_yolo(x, head, points=points), {"x": given}, backend, backend_context)
    scores = rows[..., first : first + labels]
    best = scores.max(-1) * (rows[..., 4] if head == "v5" else 1)
    close(found[0], [[corners(*row[:4].astype(float)) for row in batch] for batch in rows])
    close(found[1], best)
    assert found[2] is None if labels == 1 else (found[2] == scores.argmax(-1)).all()
    assert found[3] is None if not points else (found[3] == rows[..., first + labels :].reshape(2, 9, points, 3)).all()


@pytest.mark.parametrize(("head", "shape"), [("v5", (1, 9, 40)), ("v8", (1, 40, 9))])
def test_a_layout_that_is_likely_another_is_told_once(
    head: Any, shape: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        decode_yolo(np.zeros(shape, np.float32), head)
    decode_yolo(np.zeros((1, shape[2], shape[1]), np.float32), head)
    assert caplog.text.count("is it another head, or transposed?") == 1 and f"a {head} head as 9 boxes" in caplog.text


def test_yolo_from_end_to_end(backend: str, backend_context: Any) -> None:
    rows = np.concatenate([draw(1, 8, 4, low=0, high=99), draw(1, 8, 1, low=0, high=1)], -1)
    labels = draw(1, 8, 1, low=0, high=79, dtype=np.int64)
    given = np.concatenate([rows, labels], -1).astype(np.float32)
    found = run(lambda x: decode_yolo(x, "end2end"), {"x": given}, backend, backend_context)
    for one, other in zip(found, (rows[..., :4], rows[..., 4], labels[..., 0]), strict=False):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("joined", [False, True])
def test_raw_heads_of_yolo(joined: bool, backend: str, backend_context: Any) -> None:
    labels, size, grids = 3, (64, 32), ((4, 8), (2, 4))
    shapes = [draw(2, 2, low=5, high=40), draw(2, 2, low=5, high=40)]
    heads = [draw(2, 2, rows, columns, 5 + labels, low=-4, high=4) for rows, columns in grids]
    given = [np.moveaxis(h, -1, 2).reshape(2, -1, *h.shape[2:4]) if joined else h for h in heads]
    found = run(
        lambda a, b: decode_yolo_heads([a, b], shapes, size),
        {"a": np.ascontiguousarray(given[0]), "b": np.ascontiguousarray(given[1])},
        backend,
        backend_context,
    )
    wanted, scores, best = [], [], []
    for batch in range(2):
        for head, anchors, (rows, columns) in zip(heads, shapes, grids, strict=True):
            for a in range(2):
                for y in range(rows):
                    for x in range(columns):
                        v = sigmoid(head[batch, a, y, x])
                        cx, cy = (v[0] * 2 - 0.5 + x) * 64 / columns, (v[1] * 2 - 0.5 + y) * 32 / rows
                        wanted.append(corners(cx, cy, *((v[2:4] * 2) ** 2 * anchors[a])))
                        scores.append(v[4] * v[5:].max())
                        best.append(v[5:].argmax())
    close(found[0], np.array(wanted).reshape(2, -1, 4))
    close(found[1], np.array(scores).reshape(2, -1))
    np.testing.assert_array_equal(found[2], np.array(best).reshape(2, -1))


@pytest.mark.parametrize("background", [True, False])
def test_detr(background: bool, backend: str, backend_context: Any) -> None:
    logits, boxes = draw(1, 11, 5, low=-4, high=4), draw(1, 11, 4, low=0, high=1)
    found = run(
        lambda a, b: decode_detr(a, b, (80, 60), background=background),
        {"a": logits, "b": boxes},
        backend,
        backend_context,
    )
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    scores = softmax[..., :-1] if background else sigmoid(logits)
    close(found[0], [[np.array(corners(*box.astype(float))) * (80, 60, 80, 60) for box in boxes[0]]])
    close(found[1], scores.max(-1))
    np.testing.assert_array_equal(found[2], scores.argmax(-1))


@pytest.mark.parametrize("with_priors", [True, False])
def test_ultraface(with_priors: bool, backend: str, backend_context: Any) -> None:
    size = (64, 48)
    priors = ultraface_priors(size)
    many = len(priors)
    scores, boxes = draw(1, many, 2, low=0, high=1), draw(1, many, 4)
    found = run(
        lambda a, b: decode_ultraface(a, b, size, priors=priors if with_priors else None),
        {"a": scores, "b": boxes},
        backend,
        backend_context,
    )
    wanted = boxes[0] * np.tile(size, 2)
    if with_priors:
        for n, ((x, y, width, height), b) in enumerate(zip(priors.astype(float), boxes[0], strict=True)):
            sides = width * np.exp(b[2] * 0.2), height * np.exp(b[3] * 0.2)
            wanted[n] = np.array(corners(b[0] * 0.1 * width + x, b[1] * 0.1 * height + y, *sides)) * np.tile(size, 2)
    close(found[0], wanted[None])
    np.testing.assert_array_equal(found[1], scores[..., 1])


@pytest.mark.parametrize(("labels", "count", "has_offset"), [(3, 10, True), (1, 500, False)])
def test_centernet(labels: int, count: int, has_offset: bool, backend: str, backend_context: Any) -> None:
    rows, columns = 7, 9
    heat = draw(2, labels, rows, columns, low=0, high=1)
    arrays = {"heat": heat, "size": draw(2, 2, rows, columns, low=1, high=5)}
    arrays |= {"offset": draw(2, 2, rows, columns, low=0, high=1)} if has_offset else {}
    found = run(lambda **given: decode_centernet(**given, count=count), arrays, backend, backend_context)
    for batch in range(2):
        peaks = []
        for c in range(labels):
            for y in range(rows):
                for x in range(columns):
                    around = heat[batch, c, max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2]
                    dx, dy = arrays["offset"][batch, :, y, x] if has_offset else (0.0, 0.0)
                    if around.max() == heat[batch, c, y, x]:
                        width, height = arrays["size"][batch, :, y, x] * 4
                        box = corners((x + dx) * 4, (y + dy) * 4, width, height)
                        peaks.append((heat[batch, c, y, x], c, box))
        peaks.sort(key=lambda peak: -peak[0])
        some = peaks[:count]
        close(found[1][batch, : len(some)], [peak[0] for peak in some])
        close(found[0][batch, : len(some)], [peak[2] for peak in some])
        assert (found[1][batch, len(some) :] == 0).all()
        assert found[2] is None if labels == 1 else found[2][batch, : len(some)].tolist() == [p[1] for p in some]


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: decode_ssd(zeros(1, 5, 4), zeros(1, 5, 1), zeros(6, 4), 32), "anchors of shape"),
        (lambda: decode_ssd(zeros(1, 5, 5), zeros(1, 5, 1), zeros(5, 4), 32), "4 \\+ 2 k"),
        (lambda: decode_ssd(zeros(1, 5, 4), zeros(1, 5, 1), zeros(5, 4), 0), "positive"),
        (lambda: decode_ssd(zeros(1, 5, 4), zeros(1, 5, 1), zeros(5, 4), 9, scales=(1, 2)), "four"),
        (lambda: decode_yolo(zeros(1, 4, 9)), "not fit a v8 head"),
        (lambda: decode_yolo(zeros(1, 4, 9), "v6"), "v5, v8 or end2end"),  # type: ignore[arg-type]
        (lambda: decode_yolo(zeros(1, 4, 7), "end2end"), "not fit a end2end head"),
        (lambda: decode_yolo_heads([zeros(1, 3, 2, 2, 9)], [], 8), "each head has its own"),
        (lambda: decode_yolo_heads([zeros(1, 3, 2, 2, 9)], [zeros(2, 2)], 8), "a head is"),
        (lambda: decode_detr(zeros(1, 3, 2), zeros(1, 3, 5), 8), "boxes has 4"),
        (lambda: decode_ultraface(zeros(1, 3, 2), zeros(1, 3, 4), 8, priors=zeros(4, 4)), "priors of shape"),
        (lambda: decode_centernet(zeros(1, 2, 3), zeros(1, 2, 3, 3)), "heat is"),
        (lambda: ssd_anchors(128, ()), "strides"),
        (lambda: ssd_anchors((128, 0), (8,)), "positive"),
        (lambda: ssd_anchors(10**9, (1,)), "more than 10,000,000 anchors"),
    ],
)
def test_what_does_not_fit_is_an_error(call: Any, said: str) -> None:
    with pytest.raises(pf.InputError, match=said):
        call()


def test_errors_name_the_function() -> None:
    with pytest.raises(pf.InputError, match=r"^pf\.vision\.decode_yolo\(output=float32 array \(1, 4, 9\)\): "):
        decode_yolo(zeros(1, 4, 9))
