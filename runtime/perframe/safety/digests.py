"""Digests of files and texts, for the names of what caches keep.

The standard library's `hashlib` loads OpenSSL, which takes 4 ms of a start. Python's own BLAKE2 takes none.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b


def digest_of(*parts: bytes | str) -> str:
    """A digest of the parts, one after the other, as 64 hexadecimal digits."""
    state = blake2b(digest_size=32)
    for part in parts:
        state.update(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part)
    return state.hexdigest()
