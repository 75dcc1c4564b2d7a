"""The network of the demo faces finds faces of all tones alike."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.command_line.commands.demo import load_demo
from perframe.resources import resource

TIMES = np.arange(0, 12, 0.4)  # seconds of the demo's scene


@pytest.fixture(scope="module")
def scores() -> np.ndarray:
    """The score of each friend at each of TIMES: the highest of the anchors in the middle of the face."""
    load_demo("faces")
    party_module, finders = import_module("perframe_demos.faces.party"), import_module("perframe_demos.faces.finders")
    party, anchors = party_module.Party((960, 540)), 128 * finders.BlazeFace(128).anchors[:, :2]
    found = []
    with pf.Worker("faces") as worker:
        for time in TIMES:
            square = Image.new("RGB", (960, 960))
            square.paste(Image.fromarray(party(float(time))), (0, 210))
            pixels = np.asarray(square.resize((128, 128), Image.Resampling.BILINEAR), np.float32) / 127.5 - 1
            worker.schedule(pixels[None])
            logits = worker.peek_output("classificators").numpy()[0, :, 0]
            boxes = np.add([face.box for face in party.faces], (0, 210, 0, 210)) * 128 / 960
            middles, widths = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2] - boxes[:, 0]
            away = np.abs(anchors - middles[:, None]).max(-1) / widths[:, None]
            near = away <= np.maximum(0.25, away.min(1, keepdims=True))
            found.append([1 / (1 + np.exp(-logits[row].max())) for row in near])
    return np.array(found)


@pytest.mark.slow
def test_the_darkest_face_has_no_low_score(scores: np.ndarray) -> None:
    friends = import_module("perframe_demos.faces.party").FRIENDS
    light = np.array([sum(person.skin) for person, _ in friends])
    mean, darkest = scores.mean(0), light.argmin()
    assert np.median(scores, 0).min() > 0.95, "every friend is found in most frames"
    assert mean[darkest] > 0.9 and mean[darkest] > mean.min(), "the darkest face does not have the lowest score"


@pytest.fixture
def fairness(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(resource("assets", "faces", "fairness.py").parents[2]))
    return import_module("assets.faces.fairness")


@pytest.mark.slow
def test_scores_do_not_depend_on_the_tone(fairness: Any) -> None:
    with Image.open(resource("assets", "painter", "scene.jpg")) as scene:
        network = fairness.network_of(resource("assets", "faces", "faces.onnx"))
        tones = fairness.by_tone(network, seed=2000, pictures=60, scenery=scene.convert("RGB"))
    rates, means = [tone.rate for tone in tones], [tone.score for tone in tones]
    assert tones[0].faces > 100
    assert min(rates) > 0.92 and max(rates) - min(rates) < 0.04, fairness.table(tones)
    assert max(means) - min(means) < 0.04, fairness.table(tones)
