"""Sound of files, microphones and speakers: every sample in its order, at its time, and no frame that waits."""

from __future__ import annotations

import gc
import sys
import time
import wave
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import perframe as pf
from media.devices import Devices
from media.films import film, media_threads
from perframe.media import SpeakerSink, open_sink, open_sound, open_source, read_sound
from perframe.media.samples import SampleRing

RATE = 16_000
random = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Any:
    yield
    end = time.monotonic() + 5
    while media_threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert media_threads() == []


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Devices:
    made = Devices()
    monkeypatch.setitem(sys.modules, "sounddevice", made)
    return made


def wav(path: Path, samples: Any, rate: int = RATE) -> Path:
    """A file of 16 bits with samples (count, channels)."""
    with wave.open(str(path), "wb") as file:
        file.setparams((samples.shape[1], 2, rate, 0, "NONE", ""))
        file.writeframes(np.rint(samples * 32767).astype("<i2").tobytes())
    return path


def tone(seconds: Any, hertz: float = 440.0) -> Any:
    return np.sin(2 * np.pi * hertz * np.asarray(seconds)).astype(np.float32) * 0.5


def wait_for_end(source: pf.media.SoundSource) -> None:
    """Wait until all of a short file is decoded."""
    end = time.monotonic() + 20
    while not source._feed.ended and time.monotonic() < end:
        time.sleep(0.002)


# --- the ring ---


@pytest.mark.parametrize("channels", [1, 2])
def test_a_ring_keeps_order_over_its_end(channels: int) -> None:
    ring, put, taken = SampleRing(37, channels), 0, 0
    while taken < 5000:
        count = int(random.integers(0, 30))
        values = np.repeat(np.arange(put, put + count, dtype=np.float32)[:, None], channels, 1)
        put += ring.put(values)
        out = np.empty((int(random.integers(0, ring.waiting + 1)), channels), np.float32)
        ring.take(out)
        np.testing.assert_array_equal(out, np.repeat(np.arange(taken, taken + len(out))[:, None], channels, 1))
        taken += len(out)
        assert ring.waiting == put - taken <= 37 and ring.room == 37 - ring.waiting


@pytest.mark.parametrize("sizes", [[5, 5], [30, 10], [37], [40], [100, 3], [36, 37, 38]])
def test_the_newest_samples_stay(sizes: list[int]) -> None:
    ring, at, lost = SampleRing(37, 1), 0, 0
    for size in sizes:
        lost += ring.put_newest(np.arange(at, at + size, dtype=np.float32)[:, None])
        at += size
    out = np.empty((ring.waiting, 1), np.float32)
    assert ring.end == at and lost == ring.begin == max(0, at - 37)
    ring.take(out)
    np.testing.assert_array_equal(out[:, 0], np.arange(max(0, at - 37), at))


# --- files ---


@pytest.mark.parametrize(("channels", "wanted"), [(1, 1), (2, 2), (2, 1), (1, 2)])
def test_a_file_gives_every_sample(channels: int, wanted: int, tmp_path: Path) -> None:
    given = random.uniform(-1, 1, (40_001, channels))
    sound = read_sound(wav(tmp_path / "a.wav", given), channels=wanted)
    expected = given if channels == wanted else given.mean(1, keepdims=True) if wanted == 1 else given.repeat(2, 1)
    assert sound.samples.dtype == np.float32 and sound.rate == RATE and sound.samples.shape == (40_001, wanted)
    np.testing.assert_allclose(sound.samples, expected, atol=2e-4)
    np.testing.assert_allclose(sound.mono, expected.mean(1), atol=2e-4)
    with open_sound(tmp_path / "a.wav", channels=wanted) as source:
        pieces = list(source.pieces(512))
        assert source.ended and [piece.index for piece in pieces] == list(range(0, 40_001, 512))
    np.testing.assert_array_equal(np.concatenate([one.samples for one in pieces])[:40_001], sound.samples)
    assert not np.concatenate([one.samples for one in pieces])[40_001:].any(), "silence fills the last piece up"


@pytest.mark.parametrize("rate", [8000, 11_025, 44_100, 48_000])
def test_other_rates(rate: int, tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", tone(np.arange(3 * RATE) / RATE)[:, None])
    sound = read_sound(path, rate)
    assert sound.rate == rate and abs(len(sound.samples) - 3 * rate) <= 2
    middle = slice(rate // 10, 2 * rate)
    np.testing.assert_allclose(sound.mono[middle], tone(np.arange(len(sound.samples)) / rate)[middle], atol=0.01)
    assert abs(read_sound(path, rate, seconds=0.5).seconds - 0.5) < 0.001


def test_a_frame_gets_what_has_sounded(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", random.uniform(-1, 1, (RATE, 1)))
    with open_sound(path) as source:
        wait_for_end(source)
        for step in range(1, 61):
            heard = 0
            while (piece := source.read(512, until=step / 60)) is not None:
                assert piece.time == piece.index / RATE and piece.time + piece.seconds <= step / 60 + 1e-6
                heard += 1
            assert heard <= 1 and source.waiting - (RATE - step * RATE / 60) < 512
        assert not source.ended
        assert source.read(512, until=1.1) is not None and source.read(512, until=9.0) is None and source.ended


def test_it_loops(tmp_path: Path) -> None:
    given = random.uniform(-1, 1, (3001, 1))
    with open_sound(wav(tmp_path / "a.wav", given), loop=True) as source:
        pieces = source.pieces(1000)
        found = np.concatenate([next(pieces).samples for _ in range(50)])
    np.testing.assert_allclose(found, np.tile(given, (17, 1))[:50_000], atol=2e-4)


def test_the_sound_of_a_film_has_the_times_of_its_pictures(tmp_path: Path) -> None:
    """Its sound begins 0.5 s after the first picture, and has a pause of 1 s."""
    path = tmp_path / "a.mkv"
    with av.open(str(path), "w") as container:
        video, audio = container.add_stream("mpeg4", rate=10), container.add_stream("pcm_s16le", rate=RATE)
        video.width = video.height = 32
        audio.layout = "mono"
        for at in range(30):
            frame = av.VideoFrame.from_ndarray(np.full((32, 32, 3), 8 * at, np.uint8), format="rgb24")
            frame.pts, frame.time_base = at, Fraction(1, 10)
            container.mux(video.encode(frame))
        for begin in (0.5, 2.0):
            for at in range(0, RATE // 2, 400):
                block = np.full((1, 400), 16384, np.int16)
                piece = av.AudioFrame.from_ndarray(block, format="s16", layout="mono")
                piece.sample_rate, piece.pts = RATE, int(begin * RATE) + at
                piece.time_base = Fraction(1, RATE)
                container.mux(audio.encode(piece))
        container.mux(video.encode())
    sound = read_sound(path).mono
    assert abs(len(sound) / RATE - 2.5) < 0.01
    for begin, end, value in ((0.0, 0.49, 0.0), (0.51, 0.99, 0.5), (1.01, 1.99, 0.0), (2.01, 2.49, 0.5)):
        np.testing.assert_allclose(sound[int(begin * RATE) : int(end * RATE)], value, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path / "none.wav", "does not exist"),
        (lambda path: film(path / "a.mp4", 3), "has no sound in it"),
        (lambda path: (path / "a.wav").write_text("text") and path / "a.wav", "no sound that can be read"),
        (lambda path: wav(path / "a.wav", np.zeros((0, 1))), "no samples|no sound"),
    ],
)
def test_what_has_no_sound(make: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(pf.InputError, match=message):
        open_sound(make(tmp_path))


def test_a_file_that_is_cut(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", np.zeros((RATE, 1)))
    path.write_bytes(path.read_bytes()[:9000])
    with open_sound(path) as source, pytest.raises(pf.InputError, match=r"truncated: \d+ bytes"):
        list(source.pieces(100))


@pytest.mark.parametrize(
    ("given", "message"),
    [({"rate": 3.5}, "rate is samples"), ({"rate": 5}, "rate is samples"), ({"channels": 3}, "channels is 1")],
)
def test_wrong_settings(given: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(pf.InputError, match=message):
        open_sound(wav(tmp_path / "a.wav", np.zeros((99, 1))), **given)


@pytest.mark.parametrize("count", [0, -1, 10**6, 2.5, True])
def test_wrong_counts(count: Any, tmp_path: Path) -> None:
    with (
        open_sound(wav(tmp_path / "a.wav", np.zeros((99, 1)))) as source,
        pytest.raises(pf.InputError, match="a number of samples"),
    ):
        source.read(count)


def test_after_its_release(tmp_path: Path) -> None:
    source = open_sound(wav(tmp_path / "a.wav", np.zeros((99, 1))))
    source.release()
    source.release()
    with pytest.raises(pf.ClosedError):
        source.read(5)
    kept = open_sound(tmp_path / "a.wav", loop=True)
    assert media_threads()
    del kept
    gc.collect()  # and the fixture sees its thread end


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


@pytest.mark.parametrize("block", [0, 10**6, 2.5])
def test_wrong_blocks(devices: Devices, block: Any) -> None:
    with pytest.raises(pf.InputError, match="block is a number of samples"):
        open_sink("speaker", block=block)


def test_a_sink_that_is_dropped_closes_its_device(devices: Devices) -> None:
    sink = open_sink("speaker")
    assert devices.streams[0].is_open
    del sink
    gc.collect()
    assert not devices.streams[0].is_open


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
