"""Sounds of files, as a network wants them: one channel, 16,000 samples a second, -1..1."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np

from perframe.errors import InputError, MissingExtraError

from .voices import RATE, Array

LONGEST = 600  # seconds of a file that are read


def read_sound(path: Path) -> Array:
    """The first LONGEST seconds of a file's sound, float32. The standard library reads .wav, and PyAV the rest.

    Raises InputError if there is no sound in it, and MissingExtraError without PyAV.
    """
    if not path.is_file():
        raise InputError(
            f"{str(path)!r} does not exist; a source is a file with sound: .wav, or any audio or video file"
        )
    try:
        sound = _read_wav(path)
    except (wave.Error, EOFError):  # not a .wav, or one of floats
        sound = _read_any(path)
    if not len(sound):
        raise InputError(f"{str(path)!r} has no sound in it")
    return sound


def _read_wav(path: Path) -> Array:
    with wave.open(str(path), "rb") as file:
        rate, channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
        data = file.readframes(min(file.getnframes(), LONGEST * rate))
    data = data[: len(data) // (width * channels) * width * channels]  # a file may be cut
    if width == 1:  # the only one without a sign
        values = np.frombuffer(data, np.uint8) / 128 - 1
    else:  # bytes lie at the upper end of four
        padded = np.zeros((len(data) // width, 4), np.uint8)
        padded[:, 4 - width :] = np.frombuffer(data, np.uint8).reshape(-1, width)
        values = padded.view("<i4")[:, 0] / 2**31
    return resampled(values.reshape(-1, channels).mean(1), rate)


def resampled(sound: Array, rate: int) -> Array:
    """Sound of another rate at RATE. Frequencies that it cannot have are left out."""
    count = round(len(sound) * RATE / rate)
    if rate != RATE and count:
        spectrum = np.fft.rfft(sound)[: count // 2 + 1]
        sound = np.fft.irfft(spectrum, count) * (count / len(sound))
    result: Array = sound.astype(np.float32)
    return result


def _read_any(path: Path) -> Array:
    try:
        import av
    except ImportError as error:
        raise MissingExtraError("PyAV", "video", f"the sound of {str(path)!r}") from error
    parts: list[Any] = []
    count = 0
    try:
        with av.open(str(path)) as container:
            if not container.streams.audio:
                raise InputError(f"{str(path)!r} has no sound in it")
            resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
            for frame in container.decode(container.streams.audio[0]):
                parts += [made.to_ndarray()[0] for made in resampler.resample(frame)]
                count += len(parts[-1]) if parts else 0
                if count >= LONGEST * RATE:
                    break
    except InputError:
        raise
    except (OSError, ValueError, IndexError) as error:  # PyAV's errors are among them
        raise InputError(f"{str(path)!r} has no sound that can be read: {error}") from error
    return np.concatenate(parts)[: LONGEST * RATE].astype(np.float32) if parts else np.zeros(0, np.float32)
