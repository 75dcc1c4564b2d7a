"""Mutated files of perframe's own: what they say, with checksums that fit, and their bytes, ranges and chunks."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import perframe as pf
from files.rewriting import Parts, saved
from fuzz import cases
from fuzz.cases import KEY, Case
from fuzz.mutations import FLOATS, TEXTS, Random, pick, whole
from fuzz.seeds import Seed
from perframe.files import encryption
from perframe.files.encryption import MAGIC
from perframe.ir.declaration import registry

FORMATS = ("perframe", "encrypted")
ODD = (None, True, 0, -1, 1.5, "", [], {}, [[]], {"tensor": "w"}, {"float": "nan"}, {"list": [1]})
CHUNK = 512  # bytes; a small file has many
SLOW = (b"Loop", b"Random", b"Multinomial", b"Bernoulli", b"Dropout")  # a model may say that it has no end


def case_of(seeds: Sequence[Seed], campaign: int, word: str) -> Case:
    """The case that a word names: a number, a format and a number, or a path."""
    format, _, number = word.partition(":")
    if format in FORMATS:
        return make(seeds, format, campaign, int(number))
    return cases.make(seeds, campaign, int(word)) if word.isdecimal() else cases.saved(Path(word))


def make(seeds: Sequence[Seed], format: str, campaign: int, number: int) -> Case:
    """The case of this number: a saved model, changed in one to three ways."""
    for attempt in itertools.count():
        rng = np.random.default_rng([FORMATS.index(format), campaign, number, attempt])
        seed = pick(rng, seeds)
        if any(word in seed.data for word in SLOW):
            continue
        try:
            model = pf.load(seed.data, optimize=bool(rng.random() < 0.7))
        except pf.PerframeError:
            continue
        data, done = saved(model), list[str]()
        if format == "perframe" or rng.random() < 0.2:
            data = _changed(data, rng, done)
        if format == "encrypted":
            encryption.CHUNK = CHUNK
            data = saved_again(data)
            for _ in range(1 + int(rng.random() < 0.3)) if rng.random() < 0.9 else ():
                data = _encrypted(data, rng, done)
        name = f"{campaign}-{format}-{number}-{seed.name}"
        key = KEY if format == "encrypted" else None
        return Case(name, tuple(done), data, dict(seed.inputs), {}, bool(rng.random() < 0.5), key)
    raise AssertionError("no seed can be saved")


def saved_again(data: bytes) -> bytes:
    """Encrypt a file. The salt is random, so the same number gives another file, with the same mutations."""
    return b"".join(encryption.encrypted([data], KEY))


def _changed(data: bytes, rng: Random, done: list[str]) -> bytes:
    """Change what a file says, or its bytes."""
    if rng.random() < 0.08:
        return _bytes(data, rng, done)
    parts = Parts.of(data)
    for _ in range(1 + int(rng.random() < 0.4) + int(rng.random() < 0.2)):
        change = pick(rng, (_said, _said, _said, _said, _said, _operator, _values, _values, _entry))
        done.append(f"{change.__name__[1:]}: {change(parts, rng)}")
    return parts.sealed()


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a tree of JSON."""
    for key, value in list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)):
        yield tree, key
        if isinstance(value, (dict, list)):
            yield from _places(value)


def _said(parts: Parts, rng: Random) -> str:
    """Something in the graph is something else, mostly of its type; is gone, or is there twice."""
    model = parts.graph.get("model")
    places = list(_places(model if isinstance(model, dict) and rng.random() < 0.9 else parts.graph))
    if not places:
        return ""
    tree, key = pick(rng, places)
    old = tree[key]
    alike = [other[where] for other, where in places if type(other[where]) is type(old) and other[where] != old]
    how = rng.random()
    if how < 0.05:
        del tree[key]
    elif how < 0.1 and isinstance(tree, list):
        tree.insert(key, copy.deepcopy(old))
    elif how < 0.2:
        tree[key] = copy.deepcopy(pick(rng, ODD))
    elif isinstance(old, (int, float)) and not isinstance(old, bool):
        tree[key] = whole(rng, int(old)) if rng.random() < 0.8 else float(pick(rng, FLOATS[:7]))
    elif isinstance(old, str) and rng.random() < 0.2:
        tree[key] = pick(rng, (*TEXTS, "float32", "int64", "object", "int4"))
    elif alike:
        tree[key] = copy.deepcopy(pick(rng, alike))
    else:
        tree[key] = not old
    return f"{key} = {old!r:.60}"


def _operator(parts: Parts, rng: Random) -> str:
    """A layer has another operator, or says more of itself."""
    model = parts.graph.get("model")
    layers = model.get("layers") if isinstance(model, dict) else None
    layer = pick(rng, layers) if isinstance(layers, list) else None
    if not isinstance(layer, dict):
        return ""
    how = int(rng.integers(4))
    if how == 0:
        layer["op"] = pick(rng, sorted(registry()))
    elif how == 1 and rng.random() < 0.3:
        layer["channels_last"] = True
    elif how == 2:
        stage = {"op": pick(rng, ("Relu", "Clip", "Mul", "LeakyRelu", "Pow", "Where")), "attributes": {}}
        layer["epilogue"] = [stage | {"operands": pick(rng, ([None], [None, 1.0], [2.0, 3.0], [None, None], []))}]
    else:
        layer["on_host"] = True
    return f"{layer.get('name')} {how}"


def _entry(parts: Parts, rng: Random) -> str:
    """The header says something else of a tensor."""
    name = pick(rng, sorted(parts.entries))
    if name is None:
        return ""
    entry = parts.entries[name]
    how = int(rng.integers(4))
    if how == 0:
        entry["data_offsets"][int(rng.integers(2))] = whole(rng, entry["data_offsets"][0])
    elif how == 1:
        entry["shape"] = [whole(rng, 4) for _ in range(int(rng.integers(4)))]
    elif how == 2:
        entry["dtype"] = pick(rng, ("F32", "I64", "U8", "F4", "", "BOOL"))
    else:
        del parts.entries[name]
    return f"{name} {how}"


def _values(parts: Parts, rng: Random) -> str:
    """The values of tensors are others."""
    for _ in range(int(rng.integers(1, 9)) if parts.body else 0):
        parts.body[int(rng.integers(len(parts.body)))] = int(rng.integers(256))
    return str(len(parts.body))


def _bytes(data: bytes, rng: Random, done: list[str]) -> bytes:
    """Some bytes are others, are gone, or are there twice."""
    changed = bytearray(data)
    first, last = sorted(int(at) for at in rng.integers(0, len(data), 2))
    how = int(rng.integers(5))
    if how == 0:
        changed[first] ^= 1 << int(rng.integers(8))
    elif how == 1:
        del changed[first:]
    elif how == 2:
        del changed[first:last]
    elif how == 3:
        changed[first:first] = data[first:last]
    else:
        changed[:8] = whole(rng, int.from_bytes(data[:8], "little")).to_bytes(9, "little", signed=True)[:8]
    done.append(f"bytes: {how} from {first} to {last}")
    return bytes(changed)


def _encrypted(data: bytes, rng: Random, done: list[str]) -> bytes:
    """Change an encrypted file: its header, its chunks, or its bytes."""
    at = len(MAGIC) + 4 + int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "little")
    step = CHUNK + 16
    chunks = [data[i : i + step] for i in range(at, len(data), step)]
    how = int(rng.integers(4))
    if how == 0 or not chunks:
        return _bytes(data, rng, done)
    if how == 1:
        return _header(data[at:], data[len(MAGIC) + 4 : at], rng, done)
    one, other = (int(rng.integers(len(chunks))) for _ in range(2))
    changes: Sequence[Callable[[], Any]] = (
        lambda: chunks.__setitem__(slice(None), [*chunks[:one], *chunks[one + 1 :]]),
        lambda: chunks.insert(other, chunks[one]),
        lambda: chunks.__setitem__(one, chunks[other]),
        lambda: chunks.reverse(),
    )
    index = int(rng.integers(len(changes)))
    changes[index]()
    done.append(f"chunks: {index}, {one} and {other}")
    return data[:at] + b"".join(chunks)


def _header(body: bytes, text: bytes, rng: Random, done: list[str]) -> bytes:
    try:
        said = json.loads(text)
        places = list(_places(said))
        tree, key = pick(rng, places)
    except (ValueError, AttributeError, TypeError):  # another mutation was here
        return MAGIC + body
    tree[key] = pick(
        rng, (whole(rng, 512), "", None, "00" * 32, {"n": 1 << 40, "r": 8, "p": 1}, [], 1.5, "AES-128-GCM")
    )
    if rng.random() < 0.3:
        said["scrypt"] = {"n": whole(rng, 1024), "r": whole(rng, 8), "p": whole(rng, 1)}
    done.append(f"header: {key} is {tree[key]!r:.60}")
    text = json.dumps(said).encode()
    return MAGIC + len(text).to_bytes(4, "little") + text + body
