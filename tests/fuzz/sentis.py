"""Files of the format .sentis: the seeds, one for each kind, and mutations of their bytes and numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fuzz.litert import changed_bytes
from fuzz.mutations import INTS, Random, pick
from fuzz.seeds import Seed


def sentis_seeds() -> Iterator[Seed]:
    """A file of each kind that has a test of its own, and a network."""
    from importers.sentis_files import network
    from importers.test_sentis_kinds import CASES

    data, x = network()
    yield Seed("sentis-network", data, {"image": x}, own=True)
    for number, case in enumerate(CASES):
        yield Seed(f"sentis-{number}-{case.kind}", case.data(), case.fed)


def mutated(data: bytes, rng: Random) -> tuple[bytes, list[str]]:
    """Change a file in one to three ways; says which. Most change a number of the description: nearly all is there."""
    done = []
    for _ in range(1 + int(rng.random() < 0.4) + int(rng.random() < 0.2)):
        data, said = _number(data, rng) if rng.random() < 0.7 else changed_bytes(data, rng)
        done.append(said)
    return data, done


def _number(data: bytes, rng: Random) -> tuple[bytes, str]:
    """Change a number, an offset, an index or a size."""
    end = min(int.from_bytes(data[:4], "little"), len(data)) // 4
    if end < 3:
        return changed_bytes(data, rng)
    words = np.frombuffer(data[: 4 * end], "<i4").copy()
    at = int(rng.integers(1, end))
    near = int(words[at]) + int(pick(rng, (-8, -4, -2, -1, 1, 2, 4, 8)))
    number = near if rng.random() < 0.6 else int(pick(rng, INTS))
    words[at] = np.int64(number & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    return words.tobytes() + data[4 * end :], f"number {at} is {words[at]}"
