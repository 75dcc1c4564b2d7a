"""`perframe cache`: the number, size and age of the files in the cache folder, and deleting them."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from perframe.command_line.options import AsJson
from perframe.command_line.terminal import Console, console, say_json, table
from perframe.resources import cache_folder
from perframe.safety.wording import bytes_text

KINDS = {  # by name: the folder, the suffix of its files, and their purpose
    "kernels": ("kernels", ".o", "compiled CPU kernels"),
    "programs": ("kernels", ".program", "linked GPU programs"),
    "models": ("models", ".kept", "imported and optimized models"),
    "environments": ("conversion", "", "Python environments of perframe convert"),
    "tuned": ("tuned", ".json", "variants that perframe tune chose"),
}
DAY = 86_400.0


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete the cached files.")] = False,
    kinds: Annotated[
        str, typer.Option("--kinds", metavar="KIND,...", help=f"Comma-separated kinds: {', '.join(KINDS)}.")
    ] = ",".join(KINDS),
    as_json: AsJson = False,
) -> None:
    """Show the cached files of perframe, or delete them: compiled kernels, GPU programs, models, environments,
    tuned variants.

    Everything in the cache is made again when it is needed. PERFRAME_CACHE names another cache folder.
    """
    wanted = kinds.split(",")
    for kind in wanted:
        if kind not in KINDS:
            raise typer.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)}", param_hint="--kinds")
    found = delete(wanted) if clear else [one for one in examine() if one.kind in wanted]
    if as_json:
        listed = [asdict(one) | {"folder": str(one.folder)} for one in found]  # ages are seconds since 1970
        say_json({"folder": str(cache_folder()), "cleared": clear, "kinds": listed})
    else:
        show(found, console(), clear)


@dataclass(frozen=True)
class Cached:
    """One kind of cached files: their number, bytes, and the times of last use of the oldest and the newest."""

    kind: str
    purpose: str
    folder: Path
    items: int
    bytes: int
    oldest: float | None
    newest: float | None


def examine() -> list[Cached]:
    """The content of the cache folder, by kind."""
    found = []
    for kind, (folder, _, purpose) in KINDS.items():
        items = [*_items(kind)]
        ages = [age for item in items if (age := _modified(item)) is not None]
        sizes = sum(map(_bytes, items))
        place = cache_folder() / folder
        found.append(Cached(kind, purpose, place, len(items), sizes, min(ages, default=None), max(ages, default=None)))
    return found


def delete(kinds: Sequence[str]) -> list[Cached]:
    """Delete the cached files of these kinds, and return what they were. Nothing outside the cache folder is touched:
    a link in it is removed and not followed.
    """
    before = [one for one in examine() if one.kind in kinds]
    for kind in kinds:
        for item in _items(kind):
            if _is_folder(item):
                shutil.rmtree(item, ignore_errors=True)  # it does not follow links
            else:
                with suppress(OSError):
                    item.unlink()
    return before


def _items(kind: str) -> Iterator[Path]:
    """The files of a kind; for environments, the folders. None if the folder itself is a link to elsewhere."""
    folder, suffix, _ = KINDS[kind]
    place = cache_folder() / folder
    if place.is_symlink():
        return
    with suppress(OSError):
        for path in sorted(place.iterdir()):
            if path.name.endswith(suffix) and _is_folder(path) == (kind == "environments"):
                yield path


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _bytes(path: Path) -> int:
    """The bytes of a file, or of all files in a folder; links count for themselves."""
    if not _is_folder(path):
        return _stat_size(path)
    return sum(_stat_size(Path(folder) / name) for folder, _, names in os.walk(path) for name in names)


def _stat_size(path: Path) -> int:
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _modified(path: Path) -> float | None:
    try:
        return path.lstat().st_mtime
    except OSError:
        return None


def show(found: Sequence[Cached], console: Console, cleared: bool) -> None:
    """Print the report for a person."""
    from rich.text import Text

    console.print(Text(str(cache_folder()), "bold"), soft_wrap=True)
    kinds = table("kind", right=("items", "size"))
    kinds.add_column("last used", no_wrap=True)
    kinds.add_column("")
    for one in found:
        kinds.add_row(one.kind, f"{one.items:,}", bytes_text(one.bytes), _ages(one), one.purpose)
    console.print(kinds)
    total = bytes_text(sum(one.bytes for one in found))
    console.print(f"deleted {total}" if cleared else f"{total}; perframe cache --clear deletes it")


def _ages(one: Cached) -> str:
    """The ages of the files in days."""
    if one.oldest is None or one.newest is None:
        return "–"
    newest, oldest = (max(0, round((time.time() - moment) / DAY)) for moment in (one.newest, one.oldest))
    if not oldest:
        return "today"
    return f"{newest} days ago" if newest == oldest else f"{newest} to {oldest} days ago"
