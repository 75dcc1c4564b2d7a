"""Zip and tar archives: what they hold, before anything unpacks them."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath

from perframe.errors import ConversionError

MAX_ENTRIES = 200_000
MAX_BYTES = 64 << 30  # of all entries together, unpacked
PACKED_BELOW = 200  # times its packed size may an archive be unpacked, beyond SMALL
SMALL = 256 << 20  # bytes


def check_names(names: Iterable[str], where: object) -> None:
    """Raise ConversionError if an archive has a name twice, or a name that leads out of the folder."""
    seen = set[str]()
    for name in names:
        outside = ".." in PurePosixPath(name.replace("\\", "/")).parts
        absolute = name.startswith(("/", "\\")) or PureWindowsPath(name).drive
        if outside or absolute or "\0" in name:
            raise ConversionError(f"{where}: its entry {name!r:.200} leads out of its folder: do not trust this file")
        if name in seen:
            raise ConversionError(f"{where}: it has two entries {name!r:.200}: do not trust this file")
        seen.add(name)


def zip_entries(path: Path) -> dict[str, int]:
    """Return the names in a zip archive and their sizes in bytes. Raises ConversionError for a harmful archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError) as error:
        raise ConversionError(f"{path}: it is a damaged zip archive: copy it again ({error})") from error
    if len(entries) > MAX_ENTRIES:
        raise ConversionError(f"{path}: it has {len(entries):,} entries, and {MAX_ENTRIES:,} are allowed")
    check_names([entry.orig_filename for entry in entries], path)
    packed, unpacked = sum(entry.compress_size for entry in entries), sum(entry.file_size for entry in entries)
    size = path.stat().st_size
    if packed > size:
        raise ConversionError(f"{path}: its entries take {packed:,} bytes, but it has {size:,}: it is truncated")
    if unpacked > MAX_BYTES or unpacked > max(SMALL, PACKED_BELOW * size):
        raise ConversionError(f"{path}: its {size:,} bytes would become {unpacked:,}: do not trust this file")
    return {entry.filename: entry.file_size for entry in entries}


def zip_content(path: Path, name: str, most: int) -> bytes:
    """Return an entry of a zip archive. Raises ConversionError if it has more than `most` bytes or is damaged."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name) as file:
            content = file.read(most + 1)
    except (
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
        ValueError,
        EOFError,
        OSError,
    ) as error:
        raise ConversionError(f"{path}: its entry {name!r} cannot be read: {error}") from error
    if len(content) > most:
        raise ConversionError(f"{path}: its entry {name!r} has more than {most:,} bytes")
    return content


def tar_names(path: Path) -> list[str]:
    """Return the names in a tar archive. Raises ConversionError for a harmful or damaged one."""
    names = list[str]()
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                names.append(member.name)
                if len(names) > MAX_ENTRIES:
                    raise ConversionError(f"{path}: it has more than {MAX_ENTRIES:,} entries")
    except (tarfile.TarError, OSError, ValueError, EOFError, OverflowError) as error:
        raise ConversionError(f"{path}: it is a damaged tar archive: copy it again ({error})") from error
    check_names(names, path)
    return names
