"""A network that hears voices, and its memory, which stays on the device: state, spectra, and what it heard when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import perframe as pf
from perframe.errors import ModelError
from perframe.functional.tensor import FunctionalTensor

from ..common.models import listed, sides
from .sounds import CHUNK
from .voices import RATE, Array

F = pf.functional

BANDS = 56  # of the spectrum
COLUMNS = 512  # of the history
STEP = 4  # columns of a chunk
CONTEXT = 64  # samples from before its chunk that a Silero file wants


def hearing(file: Path) -> tuple[pf.Model, list[str]]:
    """A step as a model, and the names of its memory.

    `audio` (1, CHUNK) and the memory → `voice` (1, 1), the probability of a voice, and the next memory, each part under
    "next " and its name. The memory is the file's state, `heard` (1, CHUNK), the chunk before, and `history`
    (1, 1, BANDS + 2, COLUMNS): spectra, high frequencies first, then loudness, then `voice`, all 0..1, the newest last.
    Raises ModelError if the file has neither the form of a Silero VAD nor ours.
    """
    model = pf.load(file)
    state, wants_rate = _state_of(model, file)
    memory = {
        "state": np.zeros(state, np.float32),
        "heard": np.zeros((1, CHUNK), np.float32),
        "history": np.zeros((1, 1, BANDS + 2, COLUMNS), np.float32),
    }
    graph = pf.FunctionalGraph("hearing")
    audio = graph.add_input("float32", (1, CHUNK), "audio")
    before = {name: graph.add_input("float32", array.shape, name) for name, array in memory.items()}
    sound = F.cat([before["heard"], audio], 1)
    given = {value.name: before["state"] for value in model.inputs if len(sides(value)) == 3}
    given |= {value.name: F.tensor(np.array(RATE, np.int64)) for value in model.inputs if value.dtype == "int64"}
    own = sound[:, CHUNK - CONTEXT :] if wants_rate else audio
    found = F.forward(model, *(given.get(value.name, own) for value in model.inputs))
    voice, after = sorted(found, key=lambda value: len(value.shape))
    voice = voice.reshape(1, 1)
    loud = F.amax(F.abs(audio).reshape(1, 1, 1, STEP, CHUNK // STEP), 4)
    column = F.cat([spectra(sound), F.clamp(loud * 2.2, 0, 1), voice.reshape(1, 1, 1, 1).expand(1, 1, 1, STEP)], 2)
    history = F.cat([before["history"][:, :, :, STEP:], column], 3)
    nexts = {"next state": after.reshape(*state), "next heard": audio * 1.0, "next history": history}
    graph.add_output(voice, "voice")
    graph.add_outputs(**nexts)
    return graph.compile(), list(memory)


def spectra(sound: FunctionalTensor) -> FunctionalTensor:
    """(1, 2 * CHUNK) → (1, 1, BANDS, STEP): how loud each band is, 0..1, the highest first."""
    at, hertz = np.arange(CHUNK), np.geomspace(6800, 90, BANDS)
    angle = 2 * np.pi * hertz[:, None] * at / RATE
    window = np.hanning(CHUNK) / (CHUNK / 4)
    waves = np.stack([np.cos(angle) * window, np.sin(angle) * window]).reshape(2 * BANDS, 1, CHUNK).astype(np.float32)
    found = F.conv1d(sound[:, CHUNK // STEP :].reshape(1, 1, -1), F.tensor(waves), stride=CHUNK // STEP)
    power = found[:, :BANDS] * found[:, :BANDS] + found[:, BANDS:] * found[:, BANDS:]
    tilt = F.tensor(((hertz / 90) ** 0.7).astype(np.float32).reshape(1, BANDS, 1))
    return F.clamp(F.log(power * tilt + 3e-7) * 0.08 + 1.15, 0, 1).reshape(1, 1, BANDS, STEP)


def _state_of(model: pf.Model, file: Path) -> tuple[tuple[int, ...], bool]:
    """(the shape of the state, whether the file wants the rate)."""
    by_rank = {len(sides(value)): value for value in model.inputs}
    outputs = sorted(len(sides(value)) for value in model.outputs)
    is_known = len(by_rank) == len(model.inputs) and set(by_rank) in ({2, 3}, {0, 2, 3}) and outputs == [2, 3]
    if is_known and all(value.dtype == ("int64" if rank == 0 else "float32") for rank, value in by_rank.items()):
        first, _, last = sides(by_rank[3])
        if min(first, last) > 0 and sides(by_rank[2])[1] in (-1, CHUNK, CHUNK + CONTEXT):
            return (first, 1, last), 0 in by_rank
    raise ModelError(
        f"{file} hears no voices that this demo knows: {listed(model)}; it wants a Silero VAD of version 5, which "
        "takes the audio (batch, samples), a state (2, batch, 128) and the rate (int64), and gives the probability "
        "(batch, 1) and the next state"
    )


class Ear:
    """Hears chunk after chunk, and remembers them on the device."""

    def __init__(self, file: Path, backend: pf.BackendType, ctx: Any) -> None:
        model, memory = hearing(file)
        self._worker = pf.Worker(model, backend, ctx, carry={f"next {name}": name for name in memory})
        self._audio = [self._worker.empty_input("audio") for _ in range(2)]

    def hear(self, chunk: Array) -> None:
        """Hear a chunk of samples: (CHUNK), -1..1. Only they go to the device."""
        self._audio.reverse()  # a run under way may still read the other
        self._audio[0].upload(chunk.reshape(1, CHUNK))
        self._worker.schedule(self._audio[0])

    @property
    def voice(self) -> pf.Tensor:
        """The probability of a voice in the last chunk, (1, 1), which may be pending."""
        return self._worker.peek_output("voice")

    @property
    def history(self) -> pf.Tensor:
        """See `hearing`; it may be pending."""
        return self._worker.state("history")

    def release(self) -> None:
        """Free all that it holds."""
        self._worker.release()
        for tensor in self._audio:
            tensor.release()
