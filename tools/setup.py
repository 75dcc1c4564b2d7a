"""Sets up a checkout: virtual environment, packages, and the system's libraries that are missing.

`python tools/setup.py EXTRA...` works with nothing but a Python; on Windows, say `py` for `python`. The Makefile calls
the tool when pyproject.toml is newer than the environment. If a library cannot be installed, the tool prints the
command that installs it, and goes on.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")

GL_PACKAGES = ("libegl1", "libgl1", "libgl1-mesa-dri")
BROWSER_PACKAGES = ("chromium",)
SHADER_PACKAGES = ("glslang-tools",)
DISPLAY_PACKAGES = ("xvfb", "libxcursor1", "libxi6", "libxinerama1", "libxrandr2")
QT_PACKAGES = {"libxcb-cursor.so.0": "libxcb-cursor0", "libxcb-icccm.so.4": "libxcb-icccm4"}
QT_PACKAGES |= {"libxcb-keysyms.so.1": "libxcb-keysyms1", "libxkbcommon-x11.so.0": "libxkbcommon-x11-0"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The context for which perframe asks first. A driver that cannot provide it cannot run perframe.
OPEN_GL = "import moderngl; moderngl.create_context(standalone=True, backend='egl', require=330)"


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def succeeds(command: Sequence[str | Path]) -> bool:
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def apt_install(packages: Sequence[str], why: str) -> bool:
    """Installs Debian packages as root, or by sudo without a password. Else prints how to, and returns False."""
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    by_hand = f"sudo apt-get update && sudo {' '.join(command)}"
    if not shutil.which("apt-get"):
        say(f"{why}; install your system's equivalent of: {' '.join(packages)}")
        return False
    prefix: list[str] = []
    if os.geteuid() != 0:
        if not shutil.which("sudo") or not succeeds(["sudo", "-n", "true"]):
            say(f"{why}; to install it, run:\n\n    {by_hand}\n")
            return False
        prefix = ["sudo", "-n"]
    say(f"{why}; installing {' '.join(packages)}")
    quiet_apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive"]
    subprocess.run([*quiet_apt, "apt-get", "update", "-qq"])
    if subprocess.run([*quiet_apt, *command, "-qq"]).returncode == 0:
        return True
    say(f"apt-get failed; when it can reach its packages, run:\n\n    {by_hand}\n")
    return False


def can_load(library: str) -> bool:
    """Whether the system has a library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def make_environment() -> None:
    """Creates .venv unless a working one exists."""
    if PYTHON.exists() and succeeds([PYTHON, "-m", "pip", "--version"]):
        return
    say(f"creating {VENV.name} with Python {sys.version.split()[0]}")
    create = [sys.executable, "-m", "venv", "--clear", VENV]
    if succeeds([sys.executable, "-c", "import venv, ensurepip"]):
        subprocess.run(create, check=True)
        return
    if not sys.platform.startswith("linux"):
        sys.exit("setup: this Python cannot make virtual environments; install one from python.org")
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if not apt_install([package], "this Python cannot make virtual environments"):
        sys.exit(1)
    subprocess.run(create, check=True)


def install(extras: Sequence[str]) -> None:
    """Installs the checkout, editable, with its extras."""
    say(f"installing perframe with {', '.join(extras)} (a minute or two the first time)")
    target = f"{ROOT}[{','.join(extras)}]"
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check"]
    if subprocess.run([*pip, "install", "--quiet", "--editable", target]).returncode != 0:
        sys.exit("setup: pip could not install the packages; its message is above")


def provide_libraries(with_display: bool, with_qt: bool) -> None:
    """Installs OpenGL where no context can be made. For tests it installs Xvfb, a browser and a checker of shaders."""
    if not sys.platform.startswith("linux"):
        return
    if not succeeds([PYTHON, "-c", OPEN_GL]):
        apt_install(GL_PACKAGES, "no OpenGL context can be made here, so only the CPU backend works")
        if not succeeds([PYTHON, "-c", OPEN_GL]):
            say(f"going on with the CPU; `{BIN / 'perframe'} doctor` tells what is missing")
    if with_display and not shutil.which("Xvfb"):
        apt_install(DISPLAY_PACKAGES, "window tests need a display, or Xvfb")
    if with_display and not any(map(shutil.which, BROWSERS)):
        apt_install(BROWSER_PACKAGES, "tests of pages need Chromium")
    if with_display and not shutil.which("glslangValidator"):
        apt_install(SHADER_PACKAGES, "tests hold shaders to the rules of GLSL 3.30")
    if with_qt and any(not can_load(library) for library in QT_PACKAGES):
        apt_install(list(QT_PACKAGES.values()), "Qt's windows need libraries of the system")


def main(extras: Sequence[str]) -> None:
    make_environment()
    install(extras)
    every = "all" in extras
    provide_libraries(with_display=every or "dev" in extras, with_qt=every or "guests" in extras)


if __name__ == "__main__":
    main(sys.argv[1:] or ["demos"])
