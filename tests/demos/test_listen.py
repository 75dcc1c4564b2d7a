"""Listen: voices are told from all else on each backend, chunk by chunk, and the memory stays on the device."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from media.devices import Devices
from perframe.command_line.commands.demo import load_demo
from perframe.errors import ModelError
from perframe.host import App, KeyEvent, ManualClock
from perframe.resources import resource

OWN = resource("assets", "listen", "voice.onnx")


def part(name: str, package: str = "listen") -> Any:
    load_demo("listen")
    return import_module(f"perframe_demos.{package}.{name}")


def heard(file: Path, seconds: float, backend: str = "cpu", ctx: Any = None) -> tuple[np.ndarray, np.ndarray, Any]:
    """(the probability of each chunk of the evening, where somebody speaks, the ear)."""
    sound, spoken = part("voices").evening()
    ear = part("hearing").Ear(file, pf.BackendType(backend), ctx)
    found = []
    for begin in range(0, int(seconds * 16000) - 511, 512):
        ear.hear(sound[begin : begin + 512])
        found.append(float(ear.voice.download_to_array()[0, 0]))
    return np.array(found), spoken[: len(found) * 512].reshape(-1, 512).mean(1) > 0.5, ear


@pytest.mark.slow
def test_our_own_network_hears_who_speaks(backend: str, backend_context: Any) -> None:
    found, there, ear = heard(OWN, 6.0, backend, backend_context)
    assert ((found > 0.5) == there).mean() > 0.94 and 0.3 < there.mean() < 0.8
    history = ear.history
    assert history.backend_type == backend  # it has never left
    rows = history.download_to_array()[0, 0]
    np.testing.assert_allclose(rows[-1], np.repeat(found[-128:], 4), atol=1e-3)
    sound = part("voices").evening()[0][: len(found) * 512].reshape(-1, 128)[-512:]
    np.testing.assert_allclose(rows[-2], np.minimum(np.abs(sound).max(1) * 2.2, 1), atol=1e-3)
    assert np.abs(np.diff(rows[:-2], axis=1)).max() > 0.2
    ear.release()


@pytest.mark.slow
def test_the_memory_is_that_of_the_file() -> None:
    found, _, ear = heard(OWN, 1.0)
    ear.release()
    sound, state, wanted = part("voices").evening()[0], np.zeros((1, 1, 304), np.float32), []
    with pf.Worker(OWN) as worker:
        for index in range(len(found)):
            worker.schedule(sound[None, index * 512 : (index + 1) * 512], state)
            state = worker.peek_output("next").download_to_array()
            wanted.append(float(worker.peek_output("voice").download_to_array()[0, 0]))
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_a_tone_is_a_line_in_the_spectrum() -> None:
    graph = pf.FunctionalGraph()
    sound = graph.add_input("float32", (1, 1024), "sound")
    model = graph.compile(spectra=part("hearing").spectra(sound))
    for hertz in (300, 1500, 5000):
        tone = 0.5 * np.sin(2 * np.pi * hertz * np.arange(1024) / 16000)
        spectrum = pf.run(model, {"sound": tone[None].astype(np.float32)})["spectra"][0, 0].mean(1)
        assert abs(np.geomspace(6800, 90, 56)[spectrum.argmax()] / hertz - 1) < 0.08


def test_other_files_are_refused(tmp_path: Path, capsys: Any) -> None:
    digits = resource("assets", "digits", "digits.onnx")
    with pytest.raises(ModelError, match=r"digits\.onnx hears no voices .* input ink float32 .* a Silero VAD"):
        part("hearing").hearing(digits)
    argv = ["--headless", "--backend", "cpu", "--save", str(tmp_path / "out.png"), "--source"]
    assert load_demo("listen")([*argv, str(tmp_path / "nowhere.wav")]) == 1
    assert "does not exist" in capsys.readouterr().err
    for wrong in (["--at=-1"], ["--at=nan"], ["--at=soon"], ["--at=1", "--source=microphone"]):
        with pytest.raises(SystemExit) as ended:
            load_demo("listen")(wrong)
        assert ended.value.code == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["silero_vad.onnx", "silero_vad_op18_ifless.onnx"])
def test_files_of_others_hear_who_speaks(name: str, shared: Path) -> None:
    found, there, ear = heard(shared / "models" / name, 6.0)
    ear.release()
    assert found[there].mean() > 0.8 and found[~there].mean() < 0.25


@pytest.mark.quick(cases=0)
def test_it_lights_up_while_somebody_speaks_and_pauses(gl_context: Any) -> None:
    stage = part("stage", "common").Stage
    options = Namespace(model=None, source=None, at=0.0, mute=False)
    with App((320, 180), headless=True, clock=ManualClock(1 / 15), stop_on_error=True) as app:
        script = app.add(part("view").ListenView(stage(pf.BackendType.CPU, app.ctx, True, options)))

        def warmth() -> float:
            """How much redder than blue the newest bars are."""
            data = np.frombuffer(app.framebuffer.read(components=3, alignment=1), np.uint8).reshape(180, 320, 3)
            bars = data[30:45, 280:].astype(int)
            return float((bars[..., 0] - bars[..., 2]).max())

        app.run(frames=19)  # after 1.2 s somebody speaks
        assert script.voice > 0.8 and warmth() > 60
        app.run(frames=28)  # after 3.1 s there has been music for a second
        assert script.voice < 0.2 and warmth() < 20
        app.post(KeyEvent("space", True))
        app.run(frames=3)
        before = script.sound.heard
        app.run(frames=5)
        assert script.sound.heard == before


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("source", ["microphone", None])
def test_it_hears_a_microphone_and_plays_a_file(source: str | None, gl_context: Any, monkeypatch: Any) -> None:
    evening = part("voices").evening()[0]
    devices = Devices(lambda seconds: evening[np.rint(seconds * 16000).astype(int)])
    monkeypatch.setitem(sys.modules, "sounddevice", devices)
    stage = part("stage", "common").Stage
    options = Namespace(model=None, source=source and Path(source), at=0.0, mute=False)
    with App((320, 180), headless=True, clock=ManualClock(1 / 15), stop_on_error=True) as app:
        script = app.add(part("view").ListenView(stage(pf.BackendType.CPU, app.ctx, False, options)))
        voice = 0.0
        for _ in range(30):
            app.run(frames=1)
            until = time.monotonic() + 10
            while script.shown.pending and time.monotonic() < until:  # a frame hears nothing while one is on its way
                time.sleep(0.001)
            devices.advance(1 / 15)
            voice = max(voice, script.voice)
        (stream,) = devices.streams
        assert abs(script.sound.heard - 2 * 16000 / 512) < 5 and voice > 0.5 and stream.is_open
    assert not stream.is_open
    if source is None:
        played = np.concatenate(stream.played)[:, 0]
        begin = int(np.argmax(played != 0)) - int(np.argmax(evening != 0))
        length = len(played) - begin
        assert begin < 4000
        np.testing.assert_array_equal(played[begin:], evening[:length])


def test_without_a_speaker_it_says_so(monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    assert part("sounds").speaker_if_any() is None
    assert "nothing is played: the speaker needs sounddevice: pip install 'perframe[sound]'" in caplog.text


@pytest.mark.quick(cases=0)
def test_it_writes_a_picture(backend: str, gl_context: Any, tmp_path: Path) -> None:
    out = tmp_path / "listen.png"
    argv = ["--headless", "--backend", backend, "--frames", "20", "--at", "0.5", "--save", str(out)]
    assert load_demo("listen")(argv) == 0
    drawn = np.asarray(Image.open(out).convert("RGB")).astype(int)
    assert ((drawn[..., 0] > 200) & (drawn[..., 2] < 160))[450:640, 1000:].mean() > 0.02
