"""Sound of files: every sample in its order, at its time, and no frame that waits."""

from __future__ import annotations

import time
import wave
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from media.devices import tone
from media.films import film, media_threads
from perframe.media import open_sound, read_sound
from perframe.media.samples import SampleRing

RATE = 16_000
random = np.random.default_rng(7)


def wav(path: Path, samples: Any, rate: int = RATE) -> Path:
    """A file of 16 bits with samples (count, channels)."""
    with wave.open(str(path), "wb") as file:
        file.setparams((samples.shape[1], 2, rate, 0, "NONE", ""))
        file.writeframes(np.rint(samples * 32767).astype("<i2").tobytes())
    return path


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


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_samples_of_other_sizes(width: int, tmp_path: Path) -> None:
    values = tone(np.arange(8000) / RATE)[:, None]
    if width == 1:  # the only one without a sign
        data = (values * 127 + 128).astype(np.uint8).tobytes()
    else:
        data = np.rint(values * (2**31 - 1)).astype("<i4").view(np.uint8).reshape(-1, 4)[:, 4 - width :].tobytes()
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, width, RATE, 0, "NONE", ""))
        file.writeframes(data)
    np.testing.assert_allclose(read_sound(tmp_path / "a.wav").samples, values, atol=0.02 if width == 1 else 1e-4)


def test_a_compressed_file(tmp_path: Path) -> None:
    samples = tone(np.arange(22_050) / 44_100)
    with av.open(str(tmp_path / "a.flac"), "w") as container:
        stream: Any = container.add_stream("flac", rate=44_100, layout="mono")
        frame = av.AudioFrame.from_ndarray((samples * 32767).astype(np.int16)[None], "s16", "mono")
        frame.sample_rate = 44_100
        container.mux([*stream.encode(frame), *stream.encode(None)])
    np.testing.assert_allclose(read_sound(tmp_path / "a.flac").mono, samples, atol=1e-4)


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
    collect_garbage()  # and the fixture sees its thread end
