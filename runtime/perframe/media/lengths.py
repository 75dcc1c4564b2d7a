"""Whether a film's file is as long as its header says: a copy that was interrupted is not."""

from __future__ import annotations

from io import SEEK_END
from pathlib import Path
from typing import BinaryIO

_SEGMENT = bytes.fromhex("18538067")  # of Matroska and WebM
_MOST_BOXES = 100_000


def missing_bytes(path: Path) -> int:
    """The bytes that a Matroska, MP4, QuickTime, AVI or WAV file lacks at its end; 0 where that cannot be known."""
    with open(path, "rb") as file:
        length = file.seek(0, SEEK_END)
        file.seek(0)
        head = file.read(12)
        if head[:4] == b"\x1a\x45\xdf\xa3":
            end = _matroska_end(file)
        elif head[:4] == b"RIFF" and head[8:] in (b"AVI ", b"WAVE"):
            end = _riff_end(file)
        elif head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
            end = _boxes_end(file, length)
        else:
            return 0
    return max(0, end - length)


def _riff_end(file: BinaryIO) -> int:
    """The end of the last RIFF chunk. Long films have several; a program that was killed leaves a size of 0."""
    at = 0
    for _ in range(_MOST_BOXES):
        file.seek(at)
        head = file.read(8)
        size = int.from_bytes(head[4:], "little")
        if head[:4] != b"RIFF" or size in (0, 0xFFFFFFFF):
            break
        at += 8 + size + size % 2
    return at


def _matroska_end(file: BinaryIO) -> int:
    """The end of the segment; 0 for one that was streamed, whose length nobody knew."""
    file.seek(4)
    size, _ = _variable_number(file)
    file.seek(size, 1)
    if file.read(4) != _SEGMENT:
        return 0
    size, is_known = _variable_number(file)
    return file.tell() + size if is_known else 0


def _variable_number(file: BinaryIO) -> tuple[int, bool]:
    """A number of EBML, and whether it is one: all ones mean that nobody knows it."""
    first = file.read(1)
    if not first or not first[0]:
        return 0, False
    extra = 8 - first[0].bit_length()
    rest = file.read(extra)
    bits = 7 * (extra + 1)
    number = int.from_bytes(first + rest, "big") & ((1 << bits) - 1)
    return number, len(rest) == extra and number != (1 << bits) - 1


def _boxes_end(file: BinaryIO, length: int) -> int:
    """The end of the last box of an MP4 file."""
    at = 0
    for _ in range(_MOST_BOXES):
        if at + 8 > length:
            break
        file.seek(at)
        head = file.read(16)
        size = int.from_bytes(head[:4], "big")
        if size == 1:
            size = int.from_bytes(head[8:16], "big")
        if size < 8 or not head[4:8].isalnum():  # to the end of the file, or no box: other bytes may follow the film
            break
        at += size
    return at
