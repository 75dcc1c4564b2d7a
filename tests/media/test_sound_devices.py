"""Microphones and speakers: every sample in its order, and no frame that waits."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from media.devices import Devices, tone
from perframe.media import SpeakerSink, open_sink, open_source

RATE = 16_000
random = np.random.default_rng(7)


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Devices:
    made = Devices()
    monkeypatch.setitem(sys.modules, "sounddevice", made)
    return made


# --- microphones ---


@pytest.mark.parametrize(("rate", "channels"), [(16_000, 1), (None, 2), (44_100, 1), (8000, 2)])
def test_a_microphone_brings_all_that_it_hears(devices: Devices, rate: int | None, channels: int) -> None:
    devices.signal = tone
    with open_source("microphone", rate=rate, channels=channels, block=256) as source:
        assert source.is_live and source.rate == (rate or 48_000) and source.read(100) is None
        found = []
        for _ in range(120):
            devices.advance(1 / 60)
            while (piece := source.read(256)) is not None:
                found.append(piece)
        assert not source.lost and devices.streams[0].is_open
    assert not devices.streams[0].is_open
    sound = np.concatenate([piece.samples for piece in found])
    assert sound.shape[1] == channels and abs(len(sound) - 2 * source.rate) < 600
    assert [piece.index for piece in found] == list(range(0, len(sound), 256))
    is_own = source.rate in (16_000, 48_000)  # another rate is filtered
    error = np.abs(sound[200:, 0] - tone(np.arange(len(sound)) / source.rate)[200:]).max()
    assert error < (1e-6 if is_own else 0.02)


def test_what_is_not_taken_from_a_microphone_is_lost(devices: Devices) -> None:
    with open_source("microphone", rate=RATE) as source:
        devices.advance(5)
        piece = source.read(512)
        assert piece is not None and source.lost == piece.index == devices.streams[0].position - 2 * RATE
        assert piece.time == piece.index / RATE


@pytest.mark.parametrize(
    ("name", "message"),
    [("microphone:9", "devices: Inner Microphone, Speakers, USB"), ("microphone:Z", "matching 'Z'")],
)
def test_there_is_no_such_device(devices: Devices, name: str, message: str) -> None:
    with pytest.raises(pf.InputError, match=message):
        open_source(name)


def test_devices_by_name_and_number(devices: Devices) -> None:
    for name in ("microphone:USB", "microphone:1"):
        source: Any = open_source(name)
        assert source.rate == 44_100 and source.name == f"the {name.replace(':', ' ')}"
        source.release()
    devices.is_broken = True
    with pytest.raises(pf.InputError, match="microphone cannot be opened: Device unavailable"):
        open_source("microphone")


def test_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    for opened in (lambda: open_source("microphone"), lambda: open_sink("speaker")):
        with pytest.raises(pf.MissingExtraError, match=r"perframe\[sound\]"):
            opened()


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sounddevice.py").write_text("raise OSError('PortAudio library not found')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    with pytest.raises(pf.InputError, match="libportaudio2"):
        open_source("microphone")


# --- speakers ---


def played(devices: Devices) -> Any:
    return np.concatenate(devices.streams[-1].played)


@pytest.mark.parametrize(("name", "rate", "channels"), [("speaker", RATE, 1), ("speaker:2", 48_000, 2)])
def test_a_speaker_plays_every_sample(devices: Devices, name: str, rate: int, channels: int) -> None:
    given = random.uniform(-1, 1, (rate, channels)).astype(np.float32)
    sink: Any = open_sink(name, rate=rate, channels=channels, block=256)
    at = 0
    for _ in range(90):
        count = min(sink.room, rate // 60 + 200, len(given) - at)
        sink.write(given[at : at + count])
        at += count
        devices.advance(1 / 60)
    assert at == len(given) and sink.dropouts == 1, "at its end"
    sink.finish()
    sound = played(devices)
    begin = int(np.argmax(sound[:, 0] != 0))
    np.testing.assert_array_equal(sound[begin : begin + len(given)], given)
    assert not sound[begin + len(given) :].any() and begin <= 2 * 256 + rate // 60


@pytest.mark.slow  # three seconds by the clock
def test_sound_of_another_rate_is_converted(devices: Devices) -> None:
    with open_sink("speaker", rate=44_100) as sink:
        assert devices.streams[0].rate == 44_100
        for at in range(0, RATE, 1600):
            sound = pf.media.Sound(tone((at + np.arange(1600)) / RATE)[:, None], RATE)
            sink.write(sound)
            devices.advance(0.1)
        devices.by_clock = True
        devices.streams[0].advance(3)
    sound = played(devices)[:, 0]
    begin = int(np.argmax(np.abs(sound) > 0.01))
    assert np.abs(sound[begin : begin + 40_000]).max() > 0.49
    spectrum = np.abs(np.fft.rfft(sound[begin + 2000 : begin + 2000 + 22_050]))
    assert int(spectrum.argmax()) * 2 == 440


def test_silence_comes_where_sound_is_late(devices: Devices) -> None:
    with open_sink("speaker", rate=RATE, block=160) as sink:
        devices.advance(1)
        assert not played(devices).any() and sink.dropouts == 0, "nothing was written"
        sink.write(np.ones(320, np.float32))
        devices.advance(0.05)
        assert sink.dropouts == 1 and played(devices).sum() == 320 and sink.waiting == 0
        sink.write(np.ones(100, np.float32))
        devices.advance(0.05)
        assert played(devices).sum() == 320, "it begins again with two blocks"
        assert sink.waiting == 100 / RATE
        sink.write(np.ones(300, np.float32))
        devices.advance(0.05)
        assert played(devices).sum() == 720


def test_finish_waits_until_all_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = Devices(by_clock=True)
    monkeypatch.setitem(sys.modules, "sounddevice", devices)
    sink = SpeakerSink(rate=RATE, block=160)
    sink.write(np.ones(100, np.float32))  # less than two blocks: it is all there is
    sink.finish()
    sink.finish()
    assert played(devices).sum() == 100 and not devices.streams[0].is_open and sink.dropouts == 0
    assert devices.streams[0].calls == ["stop", "close"], "closing alone drops the last blocks"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros(5), "float32, -1 to 1, not float64"),
        (np.zeros((5, 2), np.float32), "has 2 channels, and the device takes 1"),
        (np.zeros((5, 2, 2), np.float32), r"not float32 \(5, 2, 2\)"),
        (np.zeros(40_000, np.float32), "has room for 32,000 samples, and got 40,000"),
    ],
)
def test_what_is_no_sound_is_refused(devices: Devices, wrong: Any, message: str) -> None:
    with open_sink("speaker", rate=RATE) as sink:
        with pytest.raises(pf.InputError, match=message):
            sink.write(wrong)
        assert sink.waiting == 0
    with pytest.raises(pf.ClosedError):
        sink.write(np.zeros(5, np.float32))


def test_a_converter_holds_nothing_back_at_the_end(devices: Devices) -> None:
    sink = open_sink("speaker", rate=44_100)
    devices.streams[0].is_open = False  # plays nothing: all samples stay in the ring
    for _ in range(10):
        sink.write(pf.media.Sound(np.ones((1600, 1), np.float32), RATE))
    sink._playback.has_ended = True
    sink.finish()
    assert abs(sink._playback.ring.waiting - 44_100) <= 1


def test_two_threads_write_whole_pieces(devices: Devices) -> None:
    with open_sink("speaker", rate=RATE, block=16) as sink:

        def write(value: float) -> None:
            for _ in range(100):
                sink.write(np.full(100, value, np.float32))

        threads = [threading.Thread(target=write, args=[value]) for value in (0.25, 0.5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        devices.advance(2)
    sound = played(devices)[:, 0]
    pieces = sound[sound != 0].reshape(-1, 100)
    assert len(pieces) == 200 and (pieces == pieces[:, :1]).all()


def test_an_unplugged_device_is_an_error(devices: Devices) -> None:
    devices.signal = tone
    with open_source("microphone", rate=RATE) as source, open_sink("speaker", rate=RATE) as sink:
        devices.advance(0.1)
        for stream in devices.streams:
            stream.unplug()
        sounds = 0
        with pytest.raises(pf.InputError, match="the microphone stopped; is it still plugged in"):
            while source.read(512) is not None:
                sounds += 1
        assert sounds == 3
        with pytest.raises(pf.InputError, match="the speaker stopped; is it still plugged in"):
            sink.write(np.zeros(5, np.float32))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: open_source("scene", channels=2), "channels and block are for sound"),  # type: ignore[call-overload]
        (lambda: open_sink("out.png", block=64), "channels and block are for sound"),  # type: ignore[call-overload]
        (lambda: open_source("microphone", enough=(6, 4)), "enough is for pictures"),  # type: ignore[arg-type]
        (lambda: open_source("microphone", loop=True), "loop for files"),
        (lambda: open_source("microphone", rate=2.5), "rate is samples a second"),  # type: ignore[arg-type]
        (lambda: open_sink("speaker", rate=0), "rate is samples a second"),
        (lambda: open_sink("speaker", channels=0), "channels is 1"),
        (lambda: open_sink("speaker", rate=10**9), "rate is samples a second"),
    ],
)
def test_settings_that_do_not_apply(devices: Devices, call: Any, message: str) -> None:
    with pytest.raises(pf.InputError, match=message):
        call()
    assert not devices.streams


@pytest.mark.parametrize("block", [0, 10**6, 2.5])
def test_wrong_blocks(devices: Devices, block: Any) -> None:
    with pytest.raises(pf.InputError, match="block is a number of samples"):
        open_sink("speaker", block=block)


def test_a_sink_that_is_dropped_closes_its_device(devices: Devices) -> None:
    sink = open_sink("speaker")
    assert devices.streams[0].is_open
    del sink
    collect_garbage()
    assert not devices.streams[0].is_open


@pytest.mark.slow
def test_ten_minutes_beside_sixty_frames_a_second(devices: Devices) -> None:
    """A microphone's sound goes to a speaker, frame by frame, some of them late, and is never two pieces late."""
    devices.signal = tone
    latest = 0.0
    with open_source("microphone", rate=RATE) as source, open_sink("speaker", rate=RATE) as sink:
        for step in range(600 * 60):
            devices.advance((1 + 0.4 * (step % 7 == 3) - 0.4 * (step % 7 == 4)) / 60)
            while (piece := source.read(512)) is not None:
                latest = max(latest, devices.streams[0].position / RATE - piece.time)
                sink.write(piece)
        assert sink.dropouts == 0 and source.lost == 0 and latest <= 2 * 512 / RATE
        sink.abandon()
    sound = played(devices)[:, 0]
    begin = int(np.argmax(sound != 0))
    assert begin / RATE < 0.2 and (600 * RATE) - len(sound) <= 512
    np.testing.assert_allclose(sound[begin:], tone((1 + np.arange(len(sound) - begin)) / RATE), atol=1e-6)
