"""Train the network that hears whether somebody speaks, on sounds that the demo makes. Writes ONNX.

    python train.py --out voice.onnx [--minutes 5] [--seed 0]

A chunk of 512 samples goes in, with a state; the probability of a voice comes out, with the next state. A fixed bank of
filters makes a spectrum, and a gated recurrent layer (K. Cho et al., Learning Phrase Representations using RNN
Encoder-Decoder, 2014) remembers. The state holds the last 256 samples, for the filters, and the layer's memory.
Needs torch, onnx, onnxscript; runs on one core of a CPU.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from assets.common import training
from demos.listen.voices import RATE, evening, mixed

CHUNK, HEARD, STRIDE = 512, 256, 128  # samples: of a step, that the state keeps, between two spectra
BANDS, WIDE, MEMORY = 40, 64, 48
LENGTH = HEARD + STRIDE  # samples of a filter
SECONDS = 3.072  # of a clip: 96 chunks
BATCH, MEASURED = 24, 200
DRAWN, KEPT = 4, 1500  # new clips a step, and the newest ones, of which a batch is chosen


def filters() -> Tensor:
    """(2 * BANDS, 1, LENGTH): cosines and then sines under a window, at pitches that people hear as even steps."""
    low, high = (2595 * np.log10(1 + hertz / 700) for hertz in (90, 7400))
    hertz = 700 * (10 ** (np.linspace(low, high, BANDS) / 2595) - 1)
    angle = 2 * np.pi * hertz[:, None] * np.arange(LENGTH) / RATE
    window = np.hanning(LENGTH) / (LENGTH / 4)
    return torch.from_numpy(np.concatenate([np.cos(angle) * window, np.sin(angle) * window])[:, None]).float()


class Listen(nn.Module):
    """Spectra, a rectified product, a recurrent layer, a probability."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("filters", filters())
        self.wide = nn.Linear(BANDS * CHUNK // STRIDE, WIDE)
        self.memory = nn.GRU(WIDE, MEMORY, batch_first=True)
        self.voice = nn.Linear(MEMORY, 1)

    def seen(self, sound: Tensor) -> Tensor:
        """(batch, HEARD + chunks * CHUNK) → (batch, chunks, WIDE)."""
        waves = F.conv1d(sound.unsqueeze(1), self.filters, stride=STRIDE)
        power = waves[:, :BANDS] ** 2 + waves[:, BANDS:] ** 2
        least = torch.clamp(power, min=1e-8)  # the exporter drops a sum with so small a number: silence became NaN
        spectra = torch.log(least).transpose(1, 2) * 0.2 + 2
        return F.relu(self.wide(spectra.reshape(sound.shape[0], -1, BANDS * CHUNK // STRIDE)))

    def logits(self, sound: Tensor) -> Tensor:
        """(batch, chunks * CHUNK) from the beginning → (batch, chunks), what the probabilities are the sigmoid of."""
        return self.voice(self.memory(self.seen(F.pad(sound, (HEARD, 0))))[0])[..., 0]

    def forward(self, audio: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """(1, CHUNK) in -1..1 and (1, 1, HEARD + MEMORY) → (1, 1), and the next state. A state begins with zeros."""
        sound = torch.cat([state[0, :, :HEARD], audio], 1)
        before = state[0, :, HEARD:]
        cell = self.memory
        given = F.linear(self.seen(sound)[:, 0], cell.weight_ih_l0, cell.bias_ih_l0)
        kept = F.linear(before, cell.weight_hh_l0, cell.bias_hh_l0)
        reset, update = (torch.sigmoid(given[:, at : at + MEMORY] + kept[:, at : at + MEMORY]) for at in (0, MEMORY))
        new = torch.tanh(given[:, 2 * MEMORY :] + reset * kept[:, 2 * MEMORY :])
        after = (1 - update) * new + update * before
        return torch.sigmoid(self.voice(after)), torch.cat([sound[:, -HEARD:], after], 1).unsqueeze(0)


def sample(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A clip, and for each of its chunks how much of it somebody speaks."""
    sound, spoken = mixed(random, SECONDS)
    return sound, spoken.reshape(-1, CHUNK).mean(1)


def loss_of(network: Listen, batch: list[tuple[np.ndarray, np.ndarray]], _spent: float) -> Tensor:
    """How wrong the network is about these clips."""
    sound, wanted = (torch.from_numpy(np.stack(part)) for part in zip(*batch, strict=True))
    return F.binary_cross_entropy_with_logits(network.logits(sound), wanted)


def heard(network: Listen, sound: np.ndarray) -> np.ndarray:
    """The probability of each chunk, chunk by chunk as the demo asks for them."""
    state, found = torch.zeros(1, 1, HEARD + MEMORY), []
    with torch.no_grad():
        for chunk in torch.from_numpy(sound[: len(sound) // CHUNK * CHUNK]).reshape(-1, 1, CHUNK):
            probability, state = network(chunk, state)
            found.append(float(probability))
    return np.array(found)


def measure(network: Listen, random: np.random.Generator) -> str:
    """Compare what is heard in new clips with what is there, without the chunks in which somebody begins or ends."""
    found, wanted = [], []
    for _ in range(MEASURED):
        sound, spoken = sample(random)
        found.append(heard(network, sound))
        wanted.append(spoken)
    hears, speaks = np.concatenate(found) > 0.5, np.concatenate(wanted)
    sound, spoken = evening()
    own = heard(network, sound) > 0.5
    there = spoken[: len(own) * CHUNK].reshape(-1, CHUNK).mean(1) > 0.5
    return (
        f"{MEASURED} new clips: {hears[speaks == 1].mean():.1%} of the chunks with a voice are heard as such, and "
        f"{hears[speaks == 0].mean():.1%} of those without; the demo's own sound: {(own == there).mean():.1%} are right"
    )


def main() -> None:
    arguments = training.asked(__doc__, "voice.onnx", minutes=5)
    random = training.begin(arguments.seed)
    network = Listen()
    amounts = {"batch": BATCH, "first": 2 * BATCH, "drawn": DRAWN, "kept": KEPT}
    draw, loss = partial(sample, random), partial(loss_of, network)
    training.train(network, draw, loss, random, arguments.minutes, **amounts, rate=3e-3, decay=1e-3, longest=1.0)
    network.eval()
    examples = torch.zeros(1, CHUNK), torch.zeros(1, 1, HEARD + MEMORY)
    training.write(arguments.out, network, examples, ["audio", "state"], ["voice", "next"])
    print(measure(network, np.random.default_rng(arguments.seed + 1)))


if __name__ == "__main__":
    main()
