"""A case is a mutated seed. Its number and that of the campaign determine it."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import fuzz.rewiring
import fuzz.stored  # noqa: F401, both declare mutations
from fuzz.mutations import Subject, mutate, pick
from fuzz.seeds import Seed
from perframe.files.encryption import is_encrypted
from perframe.files.reading import is_own
from perframe.importers.formats import is_litert, is_sentis

KEY = bytes(range(32))  # of all encrypted files
OWN = 0.3  # the share of cases that begin with a graph of the project's own
MANY = 1000  # trips of a loop


@dataclass(frozen=True)
class Case:
    """A model to load and run. `done` lists the mutations of the seed."""

    name: str
    done: tuple[str, ...]
    data: bytes
    inputs: dict[str, Any]
    files: dict[str, bytes]
    optimize: bool
    key: bytes | None = None  # of an encrypted file

    @contextmanager
    def source(self) -> Iterator[Any]:
        """The source to load: bytes, or a path if there are files beside the model."""
        if not self.files:
            yield self.data
            return
        with tempfile.TemporaryDirectory() as folder:
            for name, data in self.files.items():
                (Path(folder) / name).write_bytes(data)
            path = Path(folder) / "case.onnx"
            path.write_bytes(self.data)
            yield path

    def save(self, folder: Path) -> Path:
        """Write the model and its inputs; returns the model's path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.{'perframe' if is_own(self.data) or self.key else 'onnx'}"
        path.write_bytes(self.data)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        np.savez(path.with_suffix(".npz"), **_flat(self.inputs))
        return path


def saved(path: Path) -> Case:
    """A case that was saved."""
    inputs: dict[str, Any] = {}
    with np.load(path.with_suffix(".npz")) as arrays:
        for key in arrays.files:
            name, _, index = key.partition("\n")
            array = arrays[key].astype(object) if arrays[key].dtype.kind == "U" else arrays[key]
            if index:
                inputs.setdefault(name, []).append(array)
            else:
                inputs[name] = array
    told = path.with_suffix(".txt")  # by a campaign
    done = told.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()[1:] if told.exists() else []
    data = path.read_bytes()
    return Case(path.stem, tuple(done), data, inputs, {}, optimize=True, key=KEY if is_encrypted(data) else None)


def _flat(inputs: dict[str, Any]) -> dict[str, Any]:
    """Arrays alone; those of a sequence are numbered."""
    found = {}
    for name, value in inputs.items():
        for key, item in (
            [(f"{name}\n{i}", x) for i, x in enumerate(value)] if isinstance(value, list) else [(name, value)]
        ):
            if item is not None:
                array = np.asarray(item)
                found[key] = array.astype(str) if array.dtype.kind == "O" else array
    return found


def make(seeds: Sequence[Seed], campaign: int, number: int) -> Case:
    """The case of this number."""
    for attempt in itertools.count():
        rng = np.random.default_rng([campaign, number, attempt])
        own = rng.random() < OWN
        seed = pick(rng, [s for s in seeds if s.own] if own else seeds)
        if is_litert(seed.data) or is_sentis(seed.data):
            return _foreign(f"{campaign}-{number}-{seed.name}", seed, rng)
        subject = Subject(onnx.ModelProto.FromString(seed.data), dict(seed.inputs), operators())
        done = mutate(subject, rng)
        if not _is_endless(subject):
            break
    data = subject.model.SerializeToString() if subject.data is None else subject.data
    name = f"{campaign}-{number}-{seed.name}"
    return Case(name, tuple(done), data, subject.inputs, subject.files, optimize=bool(rng.random() < 0.8))


def _foreign(name: str, seed: Seed, rng: np.random.Generator) -> Case:
    from fuzz import litert, sentis

    mutated = litert.mutated if is_litert(seed.data) else sentis.mutated
    data, done = mutated(seed.data, rng)
    return Case(name, tuple(done), data, dict(seed.inputs), {}, optimize=bool(rng.random() < 0.8))


def _is_endless(subject: Subject) -> bool:
    """Whether a loop may have no end, or none that anybody waits for: a model may say so, and mean it."""
    loops = [node for node in subject.nodes() if node.op_type == "Loop"]
    if not loops:
        return False
    numbers = [np.asarray(x) for x in subject.inputs.values() if isinstance(x, np.ndarray)]
    with suppress(Exception):  # tensors may be damaged
        numbers += [numpy_helper.to_array(tensor) for tensor in subject.tensors()]
    whole = [array for array in numbers if array.dtype.kind in "iu" and array.size]
    return any(not node.input or not node.input[0] for node in loops) or any(array.max() > MANY for array in whole)


@cache
def operators() -> Sequence[str]:
    """The operators of ai.onnx."""
    return sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})
