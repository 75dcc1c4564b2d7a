"""Encrypted models: no key but the right one, no byte but the written one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import perframe as pf
from files.rewriting import saved
from files.test_model_files import facts, small
from perframe.files import encryption, writing
from perframe.files.encryption import MAGIC, decrypted, encrypted

KEY = bytes(range(32))
PHRASE = "the quick brown fox"


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small chunks, so that a small file has many, and a pass phrase that is quickly derived."""
    monkeypatch.setattr(encryption, "CHUNK", 256)
    monkeypatch.setattr(encryption, "_N", 1 << 10)


def parts_of(data: bytes) -> tuple[bytes, list[bytes]]:
    """The beginning of a file, and its chunks."""
    at = len(MAGIC) + 4 + int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "little")
    return data[:at], [data[i : i + 272] for i in range(at, len(data), 272)]


@pytest.mark.parametrize("key", [KEY, PHRASE, "pässwörd\ud800"], ids=["key", "phrase", "letters"])
def test_a_model_comes_back_with_its_key(key: str | bytes, tmp_path: Path) -> None:
    model = small()
    path = tmp_path / "m.perframe"
    pf.save(model, path, key)
    assert facts(pf.load(path, key=key)) == facts(model)
    assert facts(pf.load(path.read_bytes(), key=key)) == facts(model)
    with path.open("rb") as file:
        assert facts(pf.load(file, key=key)) == facts(model)


def test_the_values_run(backend: str, backend_context: object) -> None:
    model = small()
    inputs = {"x": np.ones((1, 3, 5, 5), np.float32), "v": np.ones((2, 8), np.float32)}
    one, other = (
        pf.run(it, inputs, backend, ctx=backend_context) for it in (model, pf.load(saved(model, KEY), key=KEY))
    )
    np.testing.assert_array_equal(one["y"], other["y"])


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 512, 1000])
def test_chunks_of_every_size(size: int) -> None:
    plain = bytes(i % 251 for i in range(size))
    data = b"".join(encrypted([plain[:300], b"", plain[300:]], KEY))
    assert bytes(decrypted(memoryview(data), KEY, "f")) == plain


def test_nothing_of_the_model_is_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a second file written on the way, not even for a moment."""
    model = small()
    opened: list[str] = []
    real = open

    def spy(file: object, *arguments: object, **options: object) -> object:
        opened.append(str(file))
        return real(file, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr("builtins.open", spy)
    monkeypatch.setattr(writing, "_NAMELESS", 0)  # where Linux can, the file has no name until it is whole
    pf.save(model, tmp_path / "m.perframe", KEY)
    pf.load(tmp_path / "m.perframe", key=KEY)
    monkeypatch.undo()
    assert len([name for name in opened if str(tmp_path) in name]) == 1
    data = (tmp_path / "m.perframe").read_bytes()
    assert b"Conv" not in data and model.constants["w"].tobytes()[:16] not in data
    assert saved(model, KEY) != saved(model, KEY)  # each file has a salt of its own


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (None, "is encrypted: load it with key="),
        (bytes(32), "the key is wrong"),
        ("another", "was encrypted with a key of 32 bytes"),
    ],
)
def test_a_wrong_key_is_refused(key: str | bytes | None, message: str, tmp_path: Path) -> None:
    pf.save(small(), tmp_path / "m.perframe", KEY)
    with pytest.raises(pf.ModelError, match=rf"m\.perframe.*{message}"):
        pf.load(tmp_path / "m.perframe", key=key)


def test_a_wrong_phrase_is_refused() -> None:
    data = saved(small(), PHRASE)
    with pytest.raises(pf.ModelError, match="the key is wrong"):
        pf.load(data, key=PHRASE + " ")
    with pytest.raises(pf.ModelError, match="was encrypted with a passphrase"):
        pf.load(data, key=KEY)


@pytest.mark.parametrize("key", [b"short", "", 7, bytearray(32)])
def test_what_is_no_key_is_refused(key: object) -> None:
    with pytest.raises(pf.InputError, match="a key is a passphrase"):
        saved(small(), key)  # type: ignore[arg-type]


def test_every_changed_byte_is_found() -> None:
    data = saved(small(), KEY)
    for at in range(0, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises((pf.ModelError, pf.InputError)):
            pf.load(bytes(changed), key=KEY)


def test_moved_dropped_added_and_cut_chunks_are_found() -> None:
    begin, chunks = parts_of(saved(small(), KEY))
    assert len(chunks) > 4
    others = {
        "moved": [chunks[1], chunks[0], *chunks[2:]],
        "dropped": [*chunks[:2], *chunks[3:]],
        "first dropped": chunks[1:],
        "last dropped": chunks[:-1],
        "twice": [*chunks[:2], chunks[1], *chunks[2:]],
        "added": [*chunks, chunks[-1]],
        "cut": [*chunks[:-1], chunks[-1][:-1]],
        "none": [],
    }
    for name, order in others.items():
        with pytest.raises(pf.ModelError, match="cannot be decrypted"):
            pf.load(begin + b"".join(order), key=KEY)
            pytest.fail(name)
    other_begin, _ = parts_of(saved(small(), KEY))
    with pytest.raises(pf.ModelError, match="cannot be decrypted"):
        pf.load(other_begin + b"".join(chunks), key=KEY)
    assert pf.load(begin + b"".join(chunks), key=KEY).layers


@pytest.mark.parametrize(
    ("n", "r", "p"), [(1 << 40, 8, 1), (1 << 20, 1 << 20, 1), (1000, 8, 1), (1024, 0, 1), (1024, 8, 1000), (-1, 8, 1)]
)
def test_a_file_cannot_ask_for_all_memory(n: int, r: int, p: int) -> None:
    said = {"cipher": "AES-256-GCM", "chunk": 256, "salt": "00" * 32, "scrypt": {"n": n, "r": r, "p": p}}
    text = json.dumps(said).encode()
    with pytest.raises(pf.ModelError, match="it asks scrypt for"):
        pf.load(MAGIC + len(text).to_bytes(4, "little") + text + bytes(100), key=PHRASE)


def test_a_key_for_a_plain_file_is_refused(tmp_path: Path) -> None:
    pf.save(small(), tmp_path / "m.perframe")
    with pytest.raises(pf.InputError, match=r"m\.perframe is not encrypted"):
        pf.load(tmp_path / "m.perframe", key=KEY)


def test_other_encrypted_data_is_no_model() -> None:
    with pytest.raises(pf.ModelError, match="its content is not a perframe model"):
        pf.load(b"".join(encrypted([b"a secret letter"], KEY)), key=KEY)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith("cryptography")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(pf.MissingExtraError, match=r"pip install 'perframe\[encryption\]'"):
        pf.save(small(), tmp_path / "m.perframe", KEY)
    assert not list(tmp_path.iterdir())
