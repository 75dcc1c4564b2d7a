"""The Python that has a framework: the running one, a given one, or one in an environment that is made for it."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from perframe.conversion.options import SKLEARN, TENSORFLOW, TORCH
from perframe.conversion.processes import ChildError, run_child
from perframe.errors import ConversionError
from perframe.resources import cache_folder
from perframe.safety.private_files import make_private, problem_of

log = logging.getLogger("perframe")

Progress = Callable[[str, float], None]

PACKAGES: Mapping[str, Sequence[str]] = {  # versions that were seen to work together, on Python 3.11 to 3.13
    TORCH: ("torch==2.13.0", "onnxscript==0.7.2", "onnx==1.23.2", "numpy==2.4.6", "safetensors==0.8.0"),
    TENSORFLOW: (
        f"{'tensorflow' if sys.platform == 'darwin' else 'tensorflow-cpu'}==2.21.0",
        "tf2onnx==1.17.0",
        "onnx==1.23.2",
        "numpy==2.4.6",
        "h5py==3.14.0",
    ),
    SKLEARN: ("scikit-learn==1.9.1", "skl2onnx==1.20.0", "onnx==1.23.2", "numpy==2.4.6"),
}
SIZES = {  # on disk, as seen; pip's settings decide
    TORCH: ": about 1.6 GB, or 5 GB on Linux where pip takes PyTorch with CUDA",
    TENSORFLOW: ": about 1.6 GB",
    SKLEARN: ": about 0.4 GB",
}
MODULES: Mapping[str, Sequence[str]] = {  # without which a Python cannot convert
    TORCH: ("torch", "onnxscript", "onnx"),
    TENSORFLOW: ("tensorflow", "tf2onnx", "onnx"),
    SKLEARN: ("sklearn", "skl2onnx", "onnx"),
}
SECONDS_TO_MAKE = 3600.0  # an environment; PyTorch may be some gigabytes
QUIETLY = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off")
STALE = 86_400.0  # seconds after which an environment that was never finished is deleted
LOG_STEP = 0.97  # of the bar's rest that remains after each line of pip


def environments_folder() -> Path:
    """The folder of the environments that were made."""
    return cache_folder() / "conversion"


def python_for(
    framework: str, extra: Sequence[str] = (), python: str | Path | None = None, progress: Progress | None = None
) -> Path:
    """Return a Python that has a framework and the modules in `extra`. It may make an environment, which takes minutes.

    `python` is used unchanged. Otherwise the running Python is chosen if it has everything needed. Raises
    ConversionError.
    """
    if python is not None:
        found = shutil.which(str(python))
        if found is None:
            raise ConversionError(f"--python {python}: there is no such program")
        return Path(found).absolute()
    if all(find_spec(name) is not None for name in (*MODULES[framework], *extra)):
        return Path(sys.executable)
    return made_environment(framework, PACKAGES[framework], progress)


def made_environment(framework: str, packages: Sequence[str], progress: Progress | None = None) -> Path:
    """Return the Python of an environment with these packages. The first call makes it.

    It is made under another name, and gets its own when it is whole: an interrupted one is made again. Raises
    ConversionError.
    """
    report = progress or (lambda _what, _done: None)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    mark = hashlib.sha256("\n".join([sys.executable, version, *packages]).encode()).hexdigest()[:12]
    folder = environments_folder()
    place = folder / f"{framework}-{version}-{mark}"
    python = _python_in(place)
    if problem := problem_of(python.parent):
        raise ConversionError(
            f"{folder} is not used: {problem}, and the Python that lies there would be run. Delete it, or name a "
            "private folder with PERFRAME_CACHE"
        )
    if python.exists():
        return python
    try:
        make_private(folder)
        _remove_stale(folder)
        beside = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=folder))
    except OSError as error:
        raise ConversionError(f"{folder} cannot be written: {error}. PERFRAME_CACHE names another folder") from error
    try:
        _fill(beside, framework, packages, report)
        with suppress(OSError):  # another process may have been faster
            os.rename(beside, place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    if not python.exists():
        raise ConversionError(f"the environment {place} cannot be made: a folder of that name has no Python; delete it")
    return python


def _fill(place: Path, framework: str, packages: Sequence[str], report: Progress) -> None:
    log.warning(
        "installing %s into %s, once%s. --python names a Python that has them; `perframe cache --clear --kinds "
        "environments` deletes them",
        ", ".join(packages),
        place.parent,
        SIZES.get(framework, ""),
    )
    report(f"making an environment for {framework}, once", 0.0)
    left = 0.95

    def show(line: str) -> bool:
        nonlocal left
        words = line.split()
        if words and words[0] in ("Collecting", "Downloading", "Installing", "Using"):
            left *= LOG_STEP
            report(f"{framework}: {' '.join(words[:2])}", 1 - left)
        return False

    environment = clean_environment()
    try:
        if find_spec("pip") is not None:  # an environment without a pip of its own is made sooner
            run_child((sys.executable, "-m", "venv", "--without-pip", place), SECONDS_TO_MAKE, environment)
            pip: tuple[str | Path, ...] = (sys.executable, "-m", "pip", "--python", _python_in(place))
        else:
            run_child((sys.executable, "-m", "venv", place), SECONDS_TO_MAKE, environment)
            pip = (_python_in(place), "-m", "pip")
        run_child((*pip, "install", *QUIETLY, *packages), SECONDS_TO_MAKE, environment, on_line=show)
    except ChildError as error:
        wanted = " ".join(f"'{package}'" for package in packages)
        raise ConversionError(
            f"an environment for {framework} cannot be made: {error}\nGive a Python that has it with --python; this "
            f"installs what is needed: python -m pip install {wanted}"
        ) from error


def clean_environment() -> dict[str, str]:
    """The environment of a child that has its own packages, without those of this Python."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__")
    }


def _python_in(place: Path) -> Path:
    return place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _remove_stale(folder: Path) -> None:
    """Delete environments that were begun long ago and never finished."""
    for path in folder.glob(".*-*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE:
                shutil.rmtree(path, ignore_errors=True)
