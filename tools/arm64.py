"""Runs commands on an emulated arm64 processor, in a Debian of its own with this checkout and its dependencies.

    python tools/arm64.py pytest -n 2 tests/layers
    python tools/arm64.py --cpu max python tools/sweep.py FOLDER --backend cpu

It needs Debian or Ubuntu on x86-64, and root. The first call installs qemu, mmdebstrap and bubblewrap, makes the system
with Debian's mirror and pip, and compiles moderngl there, which has no wheel for arm64: half an hour, 1.7 GB. Later
calls start at once. The checkout is read-only inside. So are the folders that `--with` names; they keep their paths.

qemu is registered with the kernel, until its next start, so that child processes are emulated too. It keeps x86's order
of loads and stores: what a weaker order breaks does not show. Times mean nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = {"qemu-aarch64-static": "qemu-user-static", "mmdebstrap": "mmdebstrap", "bwrap": "bubblewrap"}
TOOLS |= {"arch-test": "arch-test"}
# for the emulated system: Python, what compiles moderngl and glcontext, OpenMP for onnxruntime, and OpenGL
SYSTEM = ("ca-certificates", "python3-dev", "python3-venv", "g++", "libx11-dev", "libgomp1")
SYSTEM += ("libegl1", "libgl1", "libgl1-mesa-dri")
TEST_PACKAGES = ("pytest", "pytest-xdist", "hypothesis", "onnxruntime", "cryptography", "tokenizers", "google-re2")
BINARY_FORMATS = Path("/proc/sys/fs/binfmt_misc")
# the header of an ELF file, and the mask of its bytes that count: 64 bits, a program or a library, for arm64
HEADER = bytes.fromhex("7f454c460201010000000000000000000200b700")
MASK = bytes.fromhex("ffffffffffffff00fffffffffffffffffeffffff")


@dataclass(frozen=True)
class Processor:
    """What an arm64 Linux says in /proc/cpuinfo, where LLVM and onnxruntime read it."""

    part: int
    features: str


_BASE = "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp"
# by the names that qemu knows; `max` has all that qemu emulates, and calls itself a Neoverse N2
PROCESSORS = {
    "neoverse-n1": Processor(0xD0C, _BASE),
    "cortex-a72": Processor(0xD08, "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"),
    "max": Processor(0xD49, f"{_BASE} jscvt fcma sve sve2 i8mm bf16 svei8mm svebf16"),
}


def say(text: str) -> None:
    print(f"arm64: {text}", file=sys.stderr, flush=True)


def run(*command: str | Path) -> None:
    """Run a command. Ends the program if the command fails."""
    status = subprocess.run(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}).returncode
    if status:
        sys.exit(f"arm64: {' '.join(map(str, command))} ended with exit status {status}")


def install_tools() -> None:
    """Install the programs that make and enter the system."""
    missing = [package for program, package in TOOLS.items() if shutil.which(program) is None]
    if missing:
        say(f"installing {' '.join(missing)}")
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)


def register_emulator() -> None:
    """Let the kernel start qemu for arm64 programs. The flag F opens qemu now, so the emulated system needs none."""
    if not (BINARY_FORMATS / "register").exists():
        run("mount", "-t", "binfmt_misc", "none", BINARY_FORMATS)
    present = [file.read_bytes() for file in BINARY_FORMATS.iterdir() if file.name not in ("register", "status")]
    if any(HEADER.hex().encode() in text and text.startswith(b"enabled") for text in present):
        return
    header, mask = ("".join(f"\\x{byte:02x}" for byte in part) for part in (HEADER, MASK))
    rule = f":perframe-arm64:M::{header}:{mask}:{shutil.which('qemu-aarch64-static')}:OCF"
    (BINARY_FORMATS / "register").write_text(rule, encoding="ascii")


def make_system(folder: Path) -> None:
    """Unpack Debian for arm64, under another name until it is whole."""
    if (folder / "system").exists():
        return
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    say(f"making a Debian {release} for arm64 in {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    begun = folder / "system-begun"
    run("rm", "-rf", "--one-file-system", begun)
    options = ("--quiet", "--architectures=arm64", "--variant=minbase", f"--include={','.join(SYSTEM)}")
    run("mmdebstrap", *options, "--aptopt=Acquire::Check-Valid-Until false", release, begun)
    (begun / "proc/cpuinfo").unlink(missing_ok=True)
    begun.rename(folder / "system")


def install_packages(folder: Path, processor: str) -> None:
    """Install perframe's dependencies and its tests', as pip does it on arm64."""
    mark = folder / "packages"
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    wanted = "\n".join([*needed, *TEST_PACKAGES])
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return
    say("installing packages with the emulated pip, and compiling those without a wheel")
    enter(folder, processor, ["python3", "-m", "venv", "/opt/perframe"])
    enter(folder, processor, ["pip", "install", "--quiet", *needed, *TEST_PACKAGES])
    mark.write_text(wanted, encoding="utf-8")


def enter(folder: Path, processor: str, command: list[str], visible: tuple[Path, ...] = ()) -> None:
    """Run a command in the system. Ends the program with the command's status if it is not 0."""
    described = PROCESSORS[processor]
    lines = [f"BogoMIPS\t: 50.00\nFeatures\t: {described.features}\nCPU implementer\t: 0x41\nCPU architecture: 8"]
    lines += [f"CPU variant\t: 0x0\nCPU part\t: {described.part:#05x}\nCPU revision\t: 1\n"]
    facts = folder / f"cpuinfo-{processor}"
    cores = range(len(os.sched_getaffinity(0)))
    facts.write_text("\n".join("\n".join([f"processor\t: {core}", *lines]) for core in cores), encoding="ascii")
    settings = {
        "PATH": "/opt/perframe/bin:/usr/bin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "QEMU_CPU": processor,
        "PYTHONPATH": f"{ROOT / 'runtime'}:{ROOT}",
        "PYTHONPYCACHEPREFIX": "/var/cache/python",  # emulated, compiling Python's texts takes a while
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
        "HYPOTHESIS_STORAGE_DIRECTORY": "/var/cache/hypothesis",
        "PERFRAME_CACHE": f"/var/cache/perframe-{processor}",
        "PERFRAME_COMPILERS": "0",  # a kernel takes longer than compiling processes are given
        "PERFRAME_BACKENDS": "cpu",  # unless the caller has asked for others
    }
    told = {name: value for name, value in os.environ.items() if name.startswith(("PERFRAME_", "PIP_", "MESA_"))}
    binds = [("--bind", folder / "system", "/"), ("--dev", "/dev"), ("--proc", "/proc"), ("--tmpfs", "/tmp")]
    binds += [("--ro-bind", "/sys", "/sys"), ("--ro-bind", facts, "/proc/cpuinfo")]
    # names of hosts, certificates, and where pip finds packages: this machine's
    for place in ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs", "/etc/pip.conf"):
        binds += [("--ro-bind-try", place, place)]
    binds += [("--ro-bind", path, path) for path in (ROOT, *visible)]
    shell = ["bwrap", "--die-with-parent", "--unshare-pid", "--clearenv", "--chdir", ROOT]
    shell += [word for bind in binds for word in bind]
    shell += [word for item in {**settings, **told}.items() for word in ("--setenv", *item)]
    status = subprocess.run([*shell, *command]).returncode
    if status:
        sys.exit(status)


def main() -> None:
    """Make the system if need be, and run a command there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")))
    parser.add_argument("--folder", type=Path, default=cache / "perframe-arm64", help="where the system lies")
    parser.add_argument("--cpu", choices=PROCESSORS, default="neoverse-n1", help="the processor that qemu plays")
    parser.add_argument("--with", type=Path, action="append", default=[], dest="visible", help="a folder to see inside")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what is run in the checkout's folder")
    told = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("arm64: only root may register qemu and enter the system")
    folder = told.folder.resolve()
    install_tools()
    register_emulator()
    make_system(folder)
    install_packages(folder, told.cpu)
    enter(folder, told.cpu, told.command or ["bash"], tuple(path.resolve() for path in told.visible))


if __name__ == "__main__":
    main()
