"""Sounds that NumPy makes: somebody speaks no language that there is, and around it is noise, hum and music.

A voice is a buzz whose harmonics the mouth's resonances (formants) shape, in syllables, with consonants between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Random = np.random.Generator

RATE = 16000  # samples a second
FRAME = 80  # samples for which a formant stands still
VOWELS = (  # the first three formants, in Hz: G. Peterson and H. Barney, Control Methods in a Study of the Vowels, 1952
    (730, 1090, 2440), (660, 1720, 2410), (530, 1840, 2480), (390, 1990, 2550), (270, 2290, 3010), (570, 840, 2410),
    (440, 1020, 2240), (300, 870, 2240), (640, 1190, 2390), (490, 1350, 1690),
)  # fmt: skip


def made(seconds: float) -> int:
    """Samples of this number of seconds."""
    return round(seconds * RATE)


def ramp(count: int, rise: float, fall: float) -> Array:
    """0 to 1 within `rise` seconds, and back within `fall`."""
    at = np.arange(count)
    return np.clip(np.minimum((at + 1) / max(1, made(rise)), (count - at) / max(1, made(fall))), 0, 1)


def buzz(pitch: Array, formants: Array, breadth: float) -> Array:
    """A voiced sound: `pitch` in Hz a frame, `formants` (frames, 3) in Hz, `breadth` scales their bandwidths."""
    count = len(pitch) * FRAME
    at = np.arange(count) / FRAME
    frames = np.arange(len(pitch))
    phase = 2 * np.pi * np.cumsum(np.interp(at, frames, pitch)) / RATE
    sound = np.zeros(count)
    for harmonic in range(1, int(7600 / pitch.min()) + 1):
        frequency = harmonic * pitch[:, None]
        width = breadth * (60 + 0.06 * formants)
        peaks = (1 / (1 + ((frequency - formants) / width) ** 2) * (1.0, 0.7, 0.35)).sum(1) + 0.012
        loud = peaks / harmonic**0.75 * (frequency[:, 0] < 7600)
        sound += np.interp(at, frames, loud) * np.sin(harmonic * phase)
    return sound


def hiss(random: Random, count: int, low: float, high: float) -> Array:
    """Noise between two frequencies, in Hz."""
    spectrum = np.fft.rfft(random.normal(size=count))
    frequency = np.fft.rfftfreq(count, 1 / RATE)
    spectrum *= 1 / (1 + np.exp(-(frequency - low) / 120)) / (1 + np.exp((frequency - high) / 200))
    noise: Array = np.fft.irfft(spectrum, count)
    return noise / max(1e-9, float(np.abs(noise).max()))


def phrase(random: Random, pitch: float, mouth: float, syllables: int) -> Array:
    """Somebody says something: `pitch` in Hz, `mouth` scales the formants (a child's are higher)."""
    parts = []
    melody = pitch * np.exp(
        random.normal(0, 0.05) - 0.12 * np.linspace(0, 1, syllables) + random.normal(0, 0.09, syllables)
    )
    last = np.array(VOWELS[random.integers(len(VOWELS))], float)
    for tone in melody:
        kind = random.integers(5)
        if kind == 0:  # s, sh, f
            low = random.uniform(1800, 5000)
            count = made(random.uniform(0.05, 0.13))
            parts.append(0.22 * hiss(random, count, low, low + 3000) * ramp(count, 0.02, 0.02))
        elif kind == 1:  # p, t, k
            parts.append(np.zeros(made(random.uniform(0.02, 0.06))))
            count = made(0.018)
            parts.append(0.4 * hiss(random, count, 600, 5000) * np.linspace(1, 0, count) ** 2)
        vowel = np.array(VOWELS[random.integers(len(VOWELS))], float)
        frames = max(6, made(random.uniform(0.09, 0.26)) // FRAME)
        share = np.clip(np.linspace(0, 2.2, frames), 0, 1)[:, None]
        shaking = 1 + 0.012 * np.sin(np.arange(frames) * 0.55) + random.normal(0, 0.004, frames)
        sound = buzz(
            tone * shaking * np.linspace(1.04, 0.97, frames),
            mouth * (last + (vowel - last) * share),
            random.uniform(0.8, 1.6),
        )
        parts.append(sound * ramp(len(sound), 0.03, 0.05) * random.uniform(0.6, 1.0))
        last = vowel
    whole = np.concatenate(parts)
    return whole / max(1e-9, float(np.abs(whole).max()))


def speech(random: Random, seconds: float) -> tuple[Array, Array]:
    """(sound, 1 where somebody speaks): phrases of one person, with pauses."""
    sound, spoken = np.zeros(made(seconds)), np.zeros(made(seconds))
    pitch, mouth = float(np.exp(random.uniform(np.log(85), np.log(280)))), random.uniform(0.88, 1.22)
    at = made(random.uniform(0, 1.2))
    while at < len(sound):
        said = phrase(random, pitch, mouth, int(random.integers(2, 9)))[: len(sound) - at]
        sound[at : at + len(said)], spoken[at : at + len(said)] = said, 1
        at += len(said) + made(random.uniform(0.3, 1.8))
    return sound, spoken


def noise(random: Random, seconds: float) -> Array:
    """White, pink or brown noise, or a fan whose loudness swings."""
    count = made(seconds)
    frequency = np.maximum(np.fft.rfftfreq(count, 1 / RATE), 20)
    spectrum = np.fft.rfft(random.normal(size=count)) / frequency ** random.choice((0.0, 0.5, 1.0))
    sound = np.fft.irfft(spectrum, count)
    swing = 1 + random.uniform(0, 0.5) * np.sin(2 * np.pi * random.uniform(0.3, 8) * np.arange(count) / RATE)
    return _even(sound * swing)


def hum(random: Random, seconds: float) -> Array:
    """The mains, and a motor: harmonics that never move."""
    base, time = random.choice((50.0, 60.0, random.uniform(30, 300))), np.arange(made(seconds)) / RATE
    loud = random.exponential(1.0, 14) / np.arange(1, 15) ** random.uniform(0.3, 1.5)
    waves = [level * np.sin(2 * np.pi * base * (index + 1) * time) for index, level in enumerate(loud)]
    return _even(np.sum(waves, 0))


def music(random: Random, seconds: float) -> Array:
    """Notes of an instrument, several at once: harmonics that die away, at pitches that stand still."""
    sound = np.zeros(made(seconds))
    beat, root, bright = random.uniform(0.15, 0.5), random.uniform(110, 440), random.uniform(0.6, 2.0)
    scale = np.array((0, 2, 4, 7, 9, 12, 14, 16))
    struck = random.uniform(1.5, 8) if random.random() < 0.6 else 0.0
    for start in np.arange(0, seconds, beat):
        for _ in range(int(random.integers(1, 4))):
            count = min(made(beat * random.uniform(1, 3)), len(sound) - made(start))
            time = np.arange(count) / RATE
            tone = root * 2 ** (random.choice(scale) / 12)
            note = sum(np.sin(2 * np.pi * tone * k * time) / k**bright for k in range(1, 1 + int(min(16, 7000 / tone))))
            sound[made(start) : made(start) + count] += note * np.exp(-struck * time) * ramp(count, 0.01, 0.05)
    return _even(sound)


def birds(random: Random, seconds: float) -> Array:
    """Chirps: short sweeps, high up."""
    sound = np.zeros(made(seconds))
    for start in random.uniform(0, seconds - 0.2, int(4 * seconds)):
        count = made(random.uniform(0.04, 0.18))
        sweep = np.linspace(random.uniform(1800, 6000), random.uniform(1800, 6000), count)
        chirp = np.sin(2 * np.pi * np.cumsum(sweep) / RATE) * ramp(count, 0.02, 0.03)
        sound[made(start) : made(start) + count] += chirp[: len(sound) - made(start)]
    return _even(sound)


def clicks(random: Random, seconds: float) -> Array:
    """Keys, steps, doors: short and dull, or short and bright."""
    sound = np.zeros(made(seconds))
    for start in random.uniform(0, seconds - 0.1, int(random.uniform(1, 8) * seconds)):
        count, low = made(random.uniform(0.005, 0.05)), random.uniform(50, 3000)
        struck = hiss(random, max(count, 64), low, low + random.uniform(300, 4000))
        sound[made(start) : made(start) + len(struck)] += (struck * np.exp(-6 * np.linspace(0, 1, len(struck))))[
            : len(sound) - made(start)
        ]
    return _even(sound)


OTHERS = (noise, hum, music, birds, clicks)


def mixed(random: Random, seconds: float, others: Sequence[Any] = OTHERS) -> tuple[Array, Array]:
    """(sound, 1 where somebody speaks), float32: a voice in most, among one or two other sounds, at any loudness."""
    sound, spoken = speech(random, seconds) if random.random() < 0.75 else (np.zeros(made(seconds)),) * 2
    around = np.zeros(made(seconds))
    for _ in range(int(random.integers(1, 3))):
        around += others[int(random.integers(len(others)))](random, seconds) * random.uniform(0.2, 1)
    around *= 10 ** (-random.uniform(2, 30) / 20) if spoken.any() else 1.0
    whole = sound * 0.35 + around * 0.35 + random.normal(0, 1e-4, len(sound))
    return (whole * 10 ** (-random.uniform(0, 26) / 20)).astype(np.float32), spoken.astype(np.float32)


def evening(seed: int = 6) -> tuple[Array, Array]:
    """What the demo plays without a file, 24 seconds: birds, two people who talk, music, and all at once."""
    random = np.random.default_rng(seed)
    sound, spoken = 0.004 * noise(random, 24), np.zeros(made(24))

    def add(other: Array, at: float, level: float, is_voice: bool = False) -> None:
        begin = made(at)
        other = other[: len(sound) - begin]
        sound[begin : begin + len(other)] += level * other
        if is_voice:
            spoken[begin : begin + len(other)] = 1

    add(birds(random, 4), 0.0, 0.05)
    for at, pitch, mouth, syllables in (
        (0.6, 118, 1.0, 5), (3.3, 205, 1.14, 5), (5.2, 115, 1.0, 5), (13.4, 210, 1.14, 6), (15.5, 121, 1.0, 8),
        (19.2, 205, 1.14, 5), (21.2, 112, 1.0, 6),
    ):  # fmt: skip
        add(phrase(random, pitch, mouth, syllables), at, 0.3, True)
    add(music(random, 1.5), 1.9, 0.14)
    add(music(random, 5.5), 7.4, 0.16)
    add(music(random, 4.5), 14.5, 0.035)
    add(clicks(random, 2), 17.6, 0.12)
    return sound.astype(np.float32), spoken.astype(np.float32)


def _even(sound: Array) -> Array:
    """Three standard deviations become 1."""
    level: Array = sound / max(1e-9, 3 * float(sound.std()))
    return level
