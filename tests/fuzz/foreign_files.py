"""Mutated files of other frameworks, which are told apart and listed in this process, and never run.

`python -m tests.fuzz.foreign_files --count 5000 --seed 1` prints what became of so many files of each format.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conversion.handmade import BESIDE, FILES, MODULE, WEIGHTS, legacy, zipped
from perframe.conversion.checkpoints import listing, pickled_tensors, safetensors_content, torch_pickle
from perframe.conversion.converting import _pickle_entry
from perframe.conversion.detection import detect
from perframe.errors import ConversionError, MissingFileError

SEEDS = FILES | {"old checkpoint": ("old.pt", legacy(WEIGHTS)), "old module": ("old.pt", legacy(MODULE))}
MEMORY = 3 << 30  # bytes of addresses that the process may have
SLOW = 2.0  # seconds that a file may take
HUGE = [b"\xff" * 4, b"\xff" * 8, b"\x00" * 4, b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\x00" * 7 + b"\x10"]


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Change some bytes."""
    for _ in range(1 + int(rng.integers(4))):
        at, to = sorted(int(place) for place in rng.integers(0, len(data) + 1, 2))
        how = int(rng.integers(7))
        if how == 0:
            data = data[:at]
        elif how == 1:
            data = data[:at] + data[to:]
        elif how == 2:
            data = data[:to] + data[at : at + 300] + data[to:]
        elif how == 3:
            data = data[:at] + HUGE[int(rng.integers(len(HUGE)))] + data[at:]
        elif how == 4:
            huge = HUGE[int(rng.integers(len(HUGE)))]
            data = data[:at] + huge + data[at + len(huge) :]
        elif at < len(data):
            data = data[:at] + bytes([int(rng.integers(256))]) + data[at + 1 :]
    return data


def mutated_file(data: bytes, rng: np.random.Generator) -> bytes:
    """Change the bytes of a file, or of an entry of an archive, whose checksums then fit."""
    if not data.startswith(b"PK") or rng.random() < 0.3:
        return mutated(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    chosen = [*entries][int(rng.integers(len(entries)))]
    entries[chosen] = mutated(entries[chosen], rng)
    if rng.random() < 0.2:
        entries[mutated(chosen.encode(), rng).decode("latin-1").replace("\0", "") or "x"] = entries.pop(chosen)
    return zipped(entries, zipfile.ZIP_DEFLATED if rng.random() < 0.3 else zipfile.ZIP_STORED)


def outcome(path: Path) -> str:
    """What becomes of a file: the kind that it is taken for, or "refused"; any other exception is raised."""
    try:
        found = detect(path)
        if found.kind.name == "safetensors":
            listing(safetensors_content(path))
        elif found.kind.name == "checkpoint":
            listing(pickled_tensors(torch_pickle(path, _pickle_entry(path)).value, path))
    except (ConversionError, MissingFileError) as error:
        assert len(str(error)) < 5000
        return "refused"
    return found.kind.name


def campaign(count: int, seed: int) -> dict[str, Counter[str]]:
    """Mutate each file so often, and count what becomes of it. Raises what a file raises, but for our refusals."""
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, (called, data) in SEEDS.items():
            for other, content in BESIDE.items():
                (folder / other).write_bytes(content)
            counts[kind] = Counter()
            for number in range(count):
                rng = np.random.default_rng([seed, len(counts), number])
                path = folder / called
                path.write_bytes(mutated_file(data, rng))
                began = time.monotonic()
                try:
                    counts[kind][outcome(path)] += 1
                except BaseException as error:
                    error.add_note(f"file {number} of {kind}, seed {seed}")
                    raise
                assert time.monotonic() - began < SLOW, f"file {number} of {kind}, seed {seed} takes too long"
                path.unlink()
    return counts


def main() -> None:
    """Run a campaign within bounds of memory, and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="files of each format")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for kind, found in campaign(given.count, given.seed).items():
        taken = ", ".join(f"{name} {number}" for name, number in found.most_common())
        print(f"{found.total():6}  {kind:16}  {taken}")


if __name__ == "__main__":
    main()
