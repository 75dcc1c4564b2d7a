"""OpenGL and Vulkan drivers that this machine does not have: unpacked in the user's cache, chosen by variables.

Mesa's llvmpipe, softpipe and zink compute. The drivers of AMD's and NVIDIA's GPUs run over a kernel device that does
nothing: they compile every shader for their GPU and accept every command, and all values are garbage.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from perframe.errors import BackendError

PACKAGES = (
    "libdrm2",
    "libdrm-amdgpu1",
    "libdrm-intel1",
    "libdrm-nouveau2",
    "libdrm-radeon1",
    "libegl-mesa0",
    "libgbm1",
    "libgl1-mesa-dri",
    "libglapi-mesa",
    "libglx-mesa0",
    "libvulkan1",
    "mesa-drm-shim",
    "mesa-libgallium",
    "mesa-vulkan-drivers",
)
LIBRARIES = Path("root/usr/lib/x86_64-linux-gnu")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
VENDORS = {  # the manifests by which loaders of EGL and Vulkan find a driver: file, library
    "egl.json": "libEGL_mesa.so.0",
    "lvp.json": "libvulkan_lvp.so",
    "radeon.json": "libvulkan_radeon.so",
}


@dataclass(frozen=True)
class Driver:
    """How a driver is chosen: environment variables, a Vulkan manifest, and a library to load before all others."""

    variables: dict[str, str] = field(default_factory=dict)
    vulkan: str | None = None
    preload: str | None = None
    computes: bool = False


def _software(gallium: str, vulkan: str | None = None, **variables: str) -> Driver:
    return Driver({"LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": gallium, **variables}, vulkan, computes=True)


def _amd(gpu: str) -> Driver:
    return Driver({"AMDGPU_GPU_ID": gpu}, "radeon.json", "libamdgpu_noop_drm_shim.so")


DRIVERS = {
    "navi21": _amd("navi21"),  # RX 6800
    "navi31": _amd("navi31"),  # RX 7900
    "gfx1150": _amd("gfx1150"),  # Radeon 890M, in a laptop
    "renoir": _amd("renoir"),  # Vega 8, in a laptop
    "polaris10": _amd("polaris10"),  # RX 480
    "nouveau": Driver(preload="libnouveau_noop_drm_shim.so"),
    "zink": _software("zink", "lvp.json", MESA_LOADER_DRIVER_OVERRIDE="zink"),  # OpenGL over Vulkan, here lavapipe
    "llvmpipe25": _software("llvmpipe", "lvp.json"),
    "softpipe": _software("softpipe"),  # OpenGL 3.3, very slow
}


def drivers_folder() -> Path:
    """The folder of the unpacked drivers: PERFRAME_DRIVERS, or one in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    return Path(os.environ.get("PERFRAME_DRIVERS", str(Path(cache) / "perframe-drivers")))


def driver_environment(name: str) -> dict[str, str]:
    """The environment variables of a process that runs on a driver; drivers are unpacked if need be.

    Raises BackendError for an unknown name, or if the drivers cannot be unpacked.
    """
    if name not in DRIVERS:
        raise BackendError(f"there is no driver {name!r}; there are {', '.join(DRIVERS)}")
    driver, folder = DRIVERS[name], unpack()
    libraries = folder / LIBRARIES
    before = os.environ.get("LD_LIBRARY_PATH")
    return {
        "LD_LIBRARY_PATH": f"{libraries}:{before}" if before else str(libraries),
        "LIBGL_DRIVERS_PATH": str(libraries / "dri"),
        "GBM_BACKENDS_PATH": str(libraries / "gbm"),
        "__EGL_VENDOR_LIBRARY_FILENAMES": str(folder / "egl.json"),
        "MESA_SHADER_CACHE_DISABLE": "true",
        **driver.variables,
        **({"VK_ICD_FILENAMES": str(folder / driver.vulkan)} if driver.vulkan else {}),
        **({"LD_PRELOAD": str(libraries / driver.preload)} if driver.preload else {}),
    }


# --- unpacking ---


def unpack() -> Path:
    """Return the folder of the unpacked drivers. The first call downloads Debian's packages.

    They are unpacked under another name, so that an interrupted call leaves nothing. Raises BackendError.
    """
    folder = drivers_folder()
    if (folder / "ready").exists():
        return folder
    if folder.exists():
        raise BackendError(f"{folder} is not a whole folder of drivers; delete it, and run this again")
    missing = [program for program in ("apt-get", "apt-cache", "dpkg") if shutil.which(program) is None]
    if missing:
        raise BackendError(f"the drivers are Debian's packages, and this system has no {', no '.join(missing)}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for package in _download(beside / "packages"):
            _output("dpkg", "-x", str(package), str(beside / "root"))
        shutil.rmtree(beside / "packages")
        _write_manifests(beside, folder / LIBRARIES)
        (beside / "ready").touch()
        os.replace(beside, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def _download(place: Path) -> list[Path]:
    """Download the packages, the newest that backports have, with lists of this call's own."""
    for part in ("lists/partial", "cache/archives/partial"):
        (place / part).mkdir(parents=True)
    release, mirror = _debian_release(), _debian_mirror()
    lines = [f"deb [signed-by={KEYRING}] {mirror} {suite} main\n" for suite in (release, f"{release}-backports")]
    (place / "sources.list").write_text("".join(lines))
    options = {
        "Dir::Etc::sourcelist": place / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": place / "lists",
        "Dir::Cache": place / "cache",
        "APT::Sandbox::User": "root",
    }
    told = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    _output("apt-get", *told, "update", "-qq")
    for package in PACKAGES:
        versions = [row.split("|")[1].strip() for row in _output("apt-cache", *told, "madison", package).splitlines()]
        newest = next((version for version in versions if "~bpo" in version), None)
        _output("apt-get", *told, "download", "-qq", f"{package}={newest}" if newest else package, folder=place)
    return sorted(place.glob("*.deb"))


def _debian_release() -> str:
    text = Path("/etc/os-release").read_text(encoding="utf-8") if Path("/etc/os-release").exists() else ""
    found = re.search(r"^VERSION_CODENAME=(\w+)", text, re.M)
    if found is None or not re.search(r"^ID=debian$", text, re.M):
        raise BackendError("the drivers are packages of Debian, and this system is another")
    return found[1]


def _debian_mirror() -> str:
    """The mirror from which this machine has its packages."""
    places = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    texts = [place.read_text(encoding="utf-8") for place in places if place.is_file()]
    found = next(
        (found for text in texts if (found := re.search(r"^(?:URIs:|deb\b.*?) *(https?://\S+)", text, re.M))), None
    )
    return found[1] if found else "http://deb.debian.org/debian"


def _write_manifests(folder: Path, libraries: Path) -> None:
    for file, library in VENDORS.items():
        described = {"library_path": str(libraries / library), "api_version": "1.4.305"}
        (folder / file).write_text(json.dumps({"file_format_version": "1.0.0", "ICD": described}))


def _output(*command: str, folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise BackendError(f"{' '.join(command)} ended with exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout
