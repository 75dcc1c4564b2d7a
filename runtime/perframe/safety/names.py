"""Texts of files, such as names of layers, where they are shown or become names within an archive.

`shown` is the one function for terminals, logs, errors and titles of pages.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping

# Control characters, which a terminal obeys; marks that turn the direction of text; line ends that are none in a log;
# and halves of characters, which no file and no terminal takes.
_WILD = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_WILD_BUT_LINES = re.compile(_WILD.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def shown(text: object, lines: bool = False) -> str:
    """A text without characters that a terminal obeys: ESC becomes ␛. With `lines` it keeps its ends of lines."""
    return (_WILD_BUT_LINES if lines else _WILD).sub(_sign, str(text))


def _sign(found: re.Match[str]) -> str:
    """A character that is as wide as one letter, in the place of one that must not be shown."""
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def member_names(names: Iterable[str]) -> Mapping[str, str]:
    """A name within an archive for each name. It is the same if that is safe: "a/b:0" is, and "../a" becomes "_/a"."""
    made: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        safe = "/".join(_part(part) for part in name.split("/"))
        unique, count = safe, 1
        while unique in taken:
            count += 1
            unique = f"{safe}_{count}"
        taken.add(unique)
        made[name] = unique
    return made


def _part(part: str) -> str:
    is_drive = len(part) == 2 and part[1] == ":"
    return "_" if part in ("", ".", "..") or is_drive else _WILD.sub("_", part.replace("\\", "_"))


def _clean(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    clean = shown(message, lines=True)
    if clean != message:
        record.msg, record.args = clean, ()
    return True


# log messages are as `shown` returns them, whatever handler writes them
logging.getLogger("perframe").addFilter(_clean)
