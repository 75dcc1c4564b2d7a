"""Texts in fewer bytes: deflated (zlib), and written in base64, which JSON need not escape."""

from __future__ import annotations

import base64
import binascii
import zlib

from perframe.errors import ModelError

MAX_RATIO = 100  # graphs become 8 to 15 times smaller; a small file must not ask for much memory


def packed(text: str) -> str | None:
    """Return a text in fewer bytes, or None if it would become more than `MAX_RATIO` times smaller."""
    data = text.encode()
    small = zlib.compress(data, 9)
    return None if len(data) > MAX_RATIO * len(small) else base64.b64encode(small).decode()


def unpacked(said: str, what: str) -> bytes:
    """Return the text that was packed. Raises ModelError if there is none, or if it is larger than any packed text."""
    try:
        small = base64.b64decode(said, validate=True)
        stream = zlib.decompressobj()
        data = stream.decompress(small, MAX_RATIO * len(small) or 1)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise ModelError(f"{what} cannot be unpacked: {error}") from None
    if stream.unconsumed_tail or stream.unused_data or not stream.eof:
        raise ModelError(f"{what} cannot be unpacked: it does not end with its {len(small)} bytes, or is too large")
    return data
