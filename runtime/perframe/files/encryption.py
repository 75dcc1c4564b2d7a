"""Encrypted files: AES-256-GCM in chunks, with a key or a passphrase.

A file is a magic text, the length of the header in 4 bytes, the header as JSON, and chunks. Each chunk is authenticated
with its number, the header, and whether it is the last one (the STREAM construction of Hoang, Reyhanitabar, Rogaway and
Vizár, 2015, https://eprint.iacr.org/2015/189). So no chunk can be changed, moved, dropped or added. Each file has a key
of its own, derived with a random salt: by scrypt (RFC 7914) from a passphrase, or by HKDF (RFC 5869) from a key. So
the numbers of the chunks can be the nonces.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from perframe.errors import InputError, MissingExtraError, ModelError
from perframe.files.container import parsed_json
from perframe.files.tensors import Buffer

Key = str | bytes  # a passphrase, or a key of 32 bytes

MAGIC = b"perframe encrypted\n"
CHUNK = 1 << 20  # bytes
_TAG, _KEY, _SALT = 16, 32, 32  # bytes
_MAX_HEADER = 4096  # bytes
_MAX_CHUNK = 64 << 20  # bytes
_CIPHER = "AES-256-GCM"
_N, _R, _P = 1 << 17, 8, 1  # scrypt's parameters, after OWASP's advice: 128 MiB of memory
_MAX_MEMORY = 1 << 30  # bytes that a file may make scrypt use
_MAX_P = 4
_LENGTH = 4  # bytes of the header's length


class _Header(NamedTuple):
    """The facts with which a key of the file is derived, and the size of its chunks."""

    chunk: int
    salt: bytes
    scrypt: tuple[int, int, int] | None  # n, r and p, of a file with a passphrase


def is_encrypted(begin: bytes) -> bool:
    """Whether a file with these first bytes is encrypted."""
    return begin.startswith(MAGIC)


def encrypted(buffers: Iterable[Buffer], key: Key) -> Iterator[bytes]:
    """Yield the bytes of an encrypted file, from those of a file. Raises InputError for a key that cannot be one."""
    check_key(key)
    header = _Header(CHUNK, os.urandom(_SALT), (_N, _R, _P) if isinstance(key, str) else None)
    said: dict[str, Any] = {"cipher": _CIPHER, "chunk": header.chunk, "salt": header.salt.hex()}
    if header.scrypt:
        said["scrypt"] = dict(zip("nrp", header.scrypt, strict=True))
    text = json.dumps(said).encode()
    begin = MAGIC + len(text).to_bytes(_LENGTH, "little") + text
    yield begin
    cipher = _cipher(key, header)
    before: bytes | None = None
    number = 0
    for chunk in _chunks(buffers, header.chunk):
        if before is not None:
            yield cipher.encrypt(_nonce(number, last=False), before, begin)
            number += 1
        before = chunk
    yield cipher.encrypt(_nonce(number, last=True), before or b"", begin)


def decrypted(data: memoryview, key: Key | None, file: str) -> memoryview:
    """Return the bytes of the file within an encrypted file, in memory and nowhere else.

    Raises ModelError if the key is missing or wrong, or if anything was changed, cut, moved or added.
    """
    if key is None:
        raise ModelError(
            f"{file} is encrypted: load it with key=, a passphrase or a key of {_KEY} bytes; on the command line with "
            "--key-file or --passphrase-env"
        )
    check_key(key)
    try:
        header, begin, body = _parsed(data)
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from None
    if isinstance(key, str) != (header.scrypt is not None):
        wanted = "a key of 32 bytes, not with a passphrase" if isinstance(key, str) else "a passphrase"
        raise ModelError(f"{file} was encrypted with {wanted}")
    from cryptography.exceptions import InvalidTag

    cipher = _cipher(key, header)
    step = header.chunk + _TAG
    count = max(1, -(-len(body) // step))
    plain = bytearray(max(0, len(body) - count * _TAG))
    for number in range(count):
        chunk = body[number * step : (number + 1) * step]
        try:
            made = cipher.decrypt(_nonce(number, last=number == count - 1), chunk, begin)
        except (InvalidTag, ValueError):  # ValueError: shorter than its tag
            reason = "the key is wrong, or the file was changed" if number == 0 else "the file was changed or cut"
            raise ModelError(f"{file} cannot be decrypted: {reason} (chunk {number} of {count})") from None
        plain[number * header.chunk : number * header.chunk + len(made)] = made
    return memoryview(plain).toreadonly()


def check_key(key: Key) -> None:
    """Raise InputError unless a key is a passphrase or has 32 bytes."""
    if isinstance(key, str) and key:
        return
    if not isinstance(key, bytes) or len(key) != _KEY:
        what = f"{len(key)} bytes" if isinstance(key, bytes) else "empty" if key == "" else type(key).__name__
        raise InputError(f"a key is a passphrase (str) or {_KEY} bytes, and this one is {what}")


def _parsed(data: memoryview) -> tuple[_Header, bytes, memoryview]:
    """Return the header, the bytes that every chunk authenticates, and the chunks. Raises ModelError."""
    at = len(MAGIC) + _LENGTH
    length = int.from_bytes(data[len(MAGIC) : at], "little")
    if length > min(_MAX_HEADER, len(data) - at):
        raise ModelError(f"the header of the encryption should take {length} bytes: the file is truncated or damaged")
    said = parsed_json(bytes(data[at : at + length]), "the header of the encryption")
    begin, body = bytes(data[: at + length]), data[at + length :]
    scrypt = _scrypt(said.pop("scrypt", None))
    match said:
        case {"cipher": "AES-256-GCM", "chunk": int(chunk), "salt": str(salt), **others} if not others:
            if 0 < chunk <= _MAX_CHUNK and len(salt) == 2 * _SALT and set(salt) <= set("0123456789abcdef"):
                return _Header(chunk, bytes.fromhex(salt), scrypt), begin, body
    raise ModelError(f"the header of the encryption is not one of this version: {said!r:.200}")


def _scrypt(said: Any) -> tuple[int, int, int] | None:
    """Return scrypt's parameters. Raises ModelError if they would take too much memory or time."""
    match said:
        case None:
            return None
        case {"n": int(n), "r": int(r), "p": int(p)}:
            if n > 1 and n & (n - 1) == 0 and r >= 1 and 128 * n * r <= _MAX_MEMORY and 1 <= p <= _MAX_P:
                return n, r, p
    raise ModelError(f"it asks scrypt for {said!r:.200}; at most {_MAX_MEMORY >> 20} MiB and p={_MAX_P} are allowed")


def _cipher(key: Key, header: _Header) -> Any:
    """Return the cipher with the file's own key. Raises MissingExtraError."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
    except ImportError:
        raise MissingExtraError("cryptography", "encryption", "an encrypted model") from None
    if isinstance(key, str):
        assert header.scrypt is not None
        n, r, p = header.scrypt
        return AESGCM(Scrypt(header.salt, _KEY, n, r, p).derive(key.encode("utf-8", "surrogatepass")))
    return AESGCM(HKDF(SHA256(), _KEY, header.salt, b"perframe file").derive(key))


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _chunks(buffers: Iterable[Buffer], size: int) -> Iterator[bytes]:
    """Yield the bytes of all buffers in chunks of this size; the last one may be shorter."""
    kept = bytearray()
    for buffer in buffers:
        view = memoryview(buffer).cast("B")
        at = 0
        while at < len(view):
            more = min(size - len(kept), len(view) - at)
            kept += view[at : at + more]
            at += more
            if len(kept) == size:
                yield bytes(kept)
                kept.clear()
    if kept:
        yield bytes(kept)
