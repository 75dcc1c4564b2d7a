"""Train the network that answers as the keeper of a lighthouse, letter by letter. Writes ONNX and the alphabet.

    python train.py --out talk.onnx [--minutes 9] [--seed 0]

It is a small transformer with caches: a run reads letters, and the keys and values of the letters before. Needs
PyTorch, onnx, onnxscript; runs on one core of a CPU.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from assets.common import training
from assets.talk import grammar

LAYERS, WIDTH, HEADS, WIDE = 3, 128, 4, 512
HEAD = WIDTH // HEADS
LETTERS = len(grammar.ALPHABET)
LENGTH = 192  # letters of a sample
BATCH, KEPT, MEASURED = 12, 4000, 200


class Block(nn.Module):
    """Attention, and then a perceptron, each on normed values and added to them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mixed, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, WIDE), nn.Linear(WIDE, WIDTH)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor], mask: Tensor, past: Past) -> tuple[Tensor, Past]:
        """(batch, new, WIDTH), and `past` keys and values (batch, HEADS, old, HEAD) → the same, with longer ones."""
        query, key, value = self.mixed(self.first(x)).chunk(3, -1)
        query, key = turned(split(query), turn), turned(split(key), turn)
        keys, values = torch.cat([past[0], key], 2), torch.cat([past[1], split(value)], 2)
        scores = query @ keys.transpose(2, 3) * HEAD**-0.5
        seen = torch.softmax(torch.where(mask, scores, -1e9), -1) @ values
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.wide(self.second(x)))), (keys, values)


Past = tuple[Tensor, Tensor]


def split(x: Tensor) -> Tensor:
    """(batch, length, WIDTH) → (batch, HEADS, length, HEAD)."""
    return x.unflatten(2, (HEADS, HEAD)).transpose(1, 2)


def turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate pairs of numbers by angles that grow with the position (J. Su et al., RoFormer, 2021)."""
    low, high = x.chunk(2, -1)
    return x * turn[0] + torch.cat([-high, low], -1) * turn[1]


class Keeper(nn.Module):
    """Letters go in, scores of each next letter come out."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(LETTERS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.last, self.scores = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, LETTERS)
        self.register_buffer("speeds", 1000.0 ** (-torch.arange(HEAD // 2) * 2 / HEAD), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.04)

    def forward(self, input_ids: Tensor, position_ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        """`past` is a key and a value of each layer. Returns logits, and the keys and values with new rows."""
        angles = (position_ids.unsqueeze(-1) * self.speeds).repeat(1, 1, 2).unsqueeze(1)
        turn = angles.cos(), angles.sin()
        total = past[0].shape[2] + input_ids.shape[1]
        mask = (torch.arange(total) <= position_ids.unsqueeze(-1)).unsqueeze(1)
        x, present = self.letters(input_ids), list[Tensor]()
        for index, block in enumerate(self.blocks):
            x, kept = block(x, turn, mask, (past[2 * index], past[2 * index + 1]))
            present += kept
        return self.scores(self.last(x)), *present


def nothing(batch: int, rows: int = 0) -> list[Tensor]:
    """Keys and values of a text that begins."""
    return [torch.zeros(batch, HEADS, rows, HEAD) for _ in range(2 * LAYERS)]


NUMBERS = {letter: number for number, letter in enumerate(grammar.ALPHABET)}


def sample(random: np.random.Generator) -> Tensor:
    """(2, LENGTH + 1): numbers of letters, of talks in one weather, and what to learn: the answers, else -100."""
    weather = random.choice(list(grammar.WEATHERS))
    numbers, wanted = list[int](), list[int]()
    while len(numbers) <= LENGTH:
        for text, is_learned in zip(grammar.talk(random, weather), (False, True), strict=True):
            added = [NUMBERS[letter] for letter in text]
            numbers += added
            wanted += added if is_learned else [-100] * len(added)
    return torch.tensor([numbers[: LENGTH + 1], wanted[: LENGTH + 1]])


def loss_of(network: Keeper, batch: list[Tensor], _spent: float) -> Tensor:
    """How surprised the network is by the letters of answers, in nats."""
    texts, wanted = torch.stack(batch).unbind(1)
    logits, *_ = network(texts[:, :-1], torch.arange(LENGTH)[None], *nothing(len(batch)))
    return F.cross_entropy(logits.flatten(0, 1), wanted[:, 1:].flatten())


def measure(network: Keeper, random: np.random.Generator) -> str:
    """The surprise of new talks, and some answers to read."""
    with torch.no_grad():
        loss = np.mean([loss_of(network, [sample(random)], 1.0).item() for _ in range(MEASURED)])
    asked = ((weather, question) for weather in grammar.WEATHERS for question in ("how is the sea?", "tell me a story"))
    return "\n".join([f"new talks: {loss:.3f} nats a letter", *(answer(network, *one, random) for one in asked)])


def answer(network: Keeper, weather: str, question: str, random: np.random.Generator) -> str:
    """What the network says, drawn at a temperature of 0.7."""
    text, caches, begin = f"{grammar.WEATHERS[weather]}you: {question}\nkeeper:", nothing(1), 0
    with torch.no_grad():
        while begin < 400 and (not begin or text[-1] != grammar.END):
            ids = torch.tensor([[NUMBERS[letter] for letter in text[begin:]]])
            logits, *caches = network(ids, torch.arange(begin, len(text))[None], *caches)
            begin = len(text)
            shares = torch.softmax(logits[0, -1].double() / 0.7, -1).numpy()
            text += grammar.ALPHABET[random.choice(LETTERS, p=shares / shares.sum())]
    return text


def write(path: Path, network: Keeper) -> None:
    """Write the network with open lengths, and its alphabet beside it."""
    names = [f"{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value")]
    inputs = ["input_ids", "position_ids", *(f"past_key_values.{name}" for name in names)]
    new, old = torch.export.Dim("sequence"), torch.export.Dim("past")
    examples = torch.zeros(1, 3, dtype=torch.int64), torch.arange(5, 8)[None], *nothing(1, 5)
    shapes = {"input_ids": {1: new}, "position_ids": {1: new}, "past": tuple({2: old} for _ in names)}
    outputs = ["logits", *(f"present.{name}" for name in names)]
    training.write(path, network, examples, inputs, outputs, dynamic_shapes=shapes)
    facts = {"alphabet": grammar.ALPHABET, "end": grammar.END, "weathers": grammar.WEATHERS}
    text = json.dumps(facts, ensure_ascii=False) + "\n"
    path.with_name("characters.json").write_text(text, encoding="utf-8")


def main() -> None:
    arguments = training.asked(__doc__, "talk.onnx", minutes=9)
    random = training.begin(arguments.seed)
    network = Keeper()
    amounts = {"batch": BATCH, "first": 4 * BATCH, "drawn": BATCH, "kept": KEPT}
    draw, loss = partial(sample, random), partial(loss_of, network)
    training.train(network, draw, loss, random, arguments.minutes, **amounts, rate=2e-3, decay=1e-2, longest=1.0)
    network.eval()
    write(arguments.out, network)
    print(measure(network, np.random.default_rng(arguments.seed + 1)))


if __name__ == "__main__":
    main()
