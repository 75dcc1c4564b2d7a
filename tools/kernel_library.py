"""Makes the library of compiled CPU kernels that a wheel brings (runtime/perframe/backends/cpu/compile/library.py).

`python tools/kernel_library.py collect FILE...` adds the kernels that models ask for to tools/kernels.json. Nothing is
compiled for that: NumPy computes each model.
`python tools/kernel_library.py build` compiles all of them into output/kernels, and links the library. Objects stay
there, so that the next build compiles only what has changed. `--target` names another system; its library is linked by
Zig (`pip install ziglang`), and this system's by the C compiler. `--wheel FOLDER` makes a wheel with the library.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import targets
from targets import TARGETS

from perframe.backends.cpu import processor
from perframe.backends.cpu.processor import LEVELS

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tools" / "kernels.json"
OUTPUT = ROOT / "output" / "kernels"
SECONDS = 600  # for one model
SHARE = 24  # kernels that a process compiles: it imports Numba first, and grows with each

Request = tuple[str, str]  # name and text of a kernel


@dataclass(frozen=True)
class System:
    """A system with a library: its name and architecture, Zig's name of it, and machines that stand for its levels."""

    name: str
    architecture: str
    zig: str
    machines: tuple[str, ...]


SYSTEMS = {
    "linux-x86_64": System("linux", "x86_64", "x86_64-linux-gnu.2.17", ("linux-x64", "linux-avx512")),
    "linux-aarch64": System("linux", "aarch64", "aarch64-linux-gnu.2.17", ("linux-arm64",)),
    "macos-aarch64": System("darwin", "aarch64", "aarch64-macos.11.0", ("macos-arm64",)),
    "windows-x86_64": System("win32", "x86_64", "x86_64-windows-gnu", ("windows-x64", "windows-avx512")),
    "windows-aarch64": System("win32", "aarch64", "aarch64-windows-gnu", ("windows-arm64",)),
}
# What a kernel's text says of instructions for products of bytes, and the features that these need
_TILES = {
    ("x86_64", 8): {"vnni": "avxvnni"},
    ("x86_64", 16): {"vnni": "avx512vnni", "amx": "avx512vnni,amx-int8,amx-tile"},
    ("aarch64", 4): {"sdot": "dotprod", "sudot": "dotprod,i8mm"},
}
_PLAIN = "tile, result = 'plain'"


# --- the list ---


def listed() -> list[Request]:
    """The kernels of the list."""
    return [(name, text) for name, text in json.loads(LIST.read_text(encoding="utf-8"))]


def collect(files: Sequence[Path], jobs: int) -> None:
    """Add the kernels that models ask for to the list, and those of all families."""
    found = set(listed()) if LIST.exists() else set()
    found |= set(targets.kernels())
    with ThreadPoolExecutor(jobs) as pool:
        for file, requests in zip(files, pool.map(asked_apart, files), strict=True):
            new = requests - found
            found |= new
            print(f"{file.name}: {len(requests)} kernels, {len(new)} of them new; {len(found)} in all", flush=True)
            LIST.write_text(json.dumps(sorted(found), indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def asked_apart(file: Path) -> set[Request]:
    """What `asked` finds in a process of its own."""
    environment = {**os.environ, "PERFRAME_FOLLOW": "0", "PERFRAME_INTERPRET": "1"}
    command = [sys.executable, __file__, "ask", str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        print(f"{file.name}: took more than {SECONDS} s", file=sys.stderr)
        return set()
    if done.returncode:
        print(f"{file.name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    return {(name, text) for name, text in map(json.loads, done.stdout.splitlines())}


class _Never:
    """A compilation that never ends, so that NumPy computes the layers."""

    is_done = False

    def wait(self) -> None:
        threading.Event().wait()


def asked(file: Path) -> Iterator[Request]:
    """The kernels that a model asks for in a run with random inputs. The process is of no other use afterward."""
    import perframe as pf
    from perframe.backends.cpu import reference
    from perframe.backends.cpu.compile import jit
    from perframe.command_line.sources import model_inputs

    seen: dict[Request, None] = {}

    @functools.cache
    def kernel(name: str, text: str = "") -> Any:
        seen[name, text] = None
        return jit._Pending(name, text, Path(), _Never())  # type: ignore[arg-type]

    jit.kernel = kernel
    jit.hurry, jit.all_compiled = lambda address: None, lambda: False
    reference.LONG = float("inf")  # type: ignore[assignment]
    model = pf.load(file)
    arrays, _ = model_inputs(model, [], likely=True)
    worker = pf.Worker(model)
    worker.schedule(arrays)
    for output in model.outputs:
        worker.peek_output(output.name).readback_and_clone()
    yield from seen


# --- objects ---


def variants(text: str, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(kind, text) of a kernel for each kind of instructions."""
    yield "", text
    if text.startswith(_PLAIN):
        for kind in kinds:
            yield kind, text.replace("'plain'", repr(kind), 1)


def objects(system: System, requests: Sequence[Request], jobs: int, folder: Path) -> list[Path]:
    """Compile what is missing in a folder of objects. Return the paths of all."""
    from perframe.backends.cpu.compile import jit, library  # late: they look at the processor that is here

    wanted: dict[Path, tuple[str, str, Request]] = {}
    for machine in system.machines:
        level = _level(machine)
        kinds = _TILES[level[:2]]
        for name, plain in requests:
            for kind, text in variants(plain, [*kinds]):
                path = folder / f"{library.symbol(jit.own_sources(), name, text, *level[1:])}.o"
                wanted[path] = machine, kinds.get(kind, ""), (name, text)
    groups: dict[tuple[str, str], list[tuple[Path, Request]]] = {}
    for path, (machine, features, request) in wanted.items():
        if not path.exists():
            groups.setdefault((machine, features), []).append((path, request))
    shares = [
        (machine, features, share[first : first + SHARE])
        for (machine, features), share in groups.items()
        for first in range(0, len(share), SHARE)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        for count, _ in enumerate(pool.map(lambda share: emit_apart(*share), shares), 1):
            print(f"{count} of {len(shares)} parts are compiled", flush=True)
    return list(wanted)


def _level(machine: str) -> tuple[str, int, int]:
    """Architecture, lanes and registers of a machine."""
    target = TARGETS[machine]
    if not target.triple.startswith("x86_64"):
        return "aarch64", 4, 32
    return ("x86_64", 16, 32) if "avx512f" in target.features else ("x86_64", 8, 16)


def emit_apart(machine: str, features: str, share: Sequence[tuple[Path, Request]]) -> None:
    """Emit objects in a process that takes a machine's place."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PERFRAME_VEC"))}
    asked = json.dumps([[str(path), *request] for path, request in share])
    command = [sys.executable, __file__, "emit", machine, features]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, env=clean, check=False)
    if done.returncode:
        raise SystemExit(f"no kernels for {machine}: {done.stderr[-2000:]}")


def emit(machine: str, features: str, share: Sequence[Sequence[str]]) -> None:
    """Take the place of a machine, and write objects to their paths. The symbol of each is its path's name."""
    target = TARGETS[machine]
    level = _level(machine)
    base = ",".join(LEVELS[level]) or "neon"  # without what this machine has beyond its level
    target = replace(target, features=",".join(filter(None, [base, features])), cpu=_CPUS[level])
    targets.take_place(target)
    import llvmlite.binding as llvm

    from perframe.backends.cpu.kernels import compiler, sizes

    assert (processor.architecture(), sizes.LANES, sizes.REGISTERS) == level
    for path, name, text in share:
        library, entry = compiler.compile_library(name, text)
        module, numba = library._final_module, library._codegen
        for value in (*module.functions, *module.global_variables):
            if value.name == entry:
                value.name = Path(path).stem
            elif not value.is_declaration:
                value.linkage = "internal"  # helpers of two kernels may share a name
        machine_of = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=numba._customize_tm_features(), opt=3, reloc="pic", codemodel="small"
        )
        part = Path(path).with_suffix(".part")
        part.write_bytes(machine_of.emit_object(module))
        part.replace(path)


_CPUS = {
    ("x86_64", 8, 16): "x86-64-v3",
    ("x86_64", 16, 32): "x86-64-v4",
    ("aarch64", 4, 32): "generic",
}


# --- the library ---


def build(system: System, requests: Sequence[Request], jobs: int, output: Path = OUTPUT) -> Path:
    """Make a library of kernels. Return its path."""
    from perframe.backends.cpu.compile import library

    name = library.file_name(system.name, system.architecture)
    paths = objects(system, requests, jobs, output / "objects" / Path(name).stem)
    listing = output / f"{name}.objects"
    listing.write_text("\n".join(map(str, paths)), encoding="utf-8")
    is_own = (system.name, system.architecture) == (sys.platform, processor.architecture())
    compiler = (
        [os.environ.get("CC", "cc")] if is_own else [sys.executable, "-m", "ziglang", "cc", "-target", system.zig]
    )
    own = {"linux": ["-Wl,--gc-sections", "-Wl,-s"], "darwin": ["-Wl,-S"], "win32": ["-s"]}[system.name]
    command = [*compiler, "-shared", "-nostdlib", *own, "-o", str(output / name), f"@{listing}"]
    try:
        subprocess.run(command, check=True)
    except OSError as error:
        raise SystemExit(f"the library needs a C compiler, and {command[0]} does not start: {error}") from error
    content = (output / name).read_bytes()
    (output / f"{name}.sum").write_text(f"{len(content)} {hashlib.sha256(content).hexdigest()}\n", encoding="ascii")
    return output / name


def make_wheel(path: Path, folder: Path) -> None:
    """Make a wheel with a library."""
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder.resolve())]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PERFRAME_KERNELS": str(path)}, check=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("collect")
    one.add_argument("files", nargs="+", type=Path)
    one.add_argument("--jobs", type=int, default=os.cpu_count())
    one = commands.add_parser("build")
    one.add_argument("--target", choices=SYSTEMS)
    one.add_argument("--wheel", type=Path, metavar="FOLDER")
    one.add_argument("--jobs", type=int, default=os.cpu_count())
    commands.add_parser("ask").add_argument("file", type=Path)
    one = commands.add_parser("emit")
    one.add_argument("machine")
    one.add_argument("features")
    given = parser.parse_args()
    if given.command == "collect":
        collect(given.files, given.jobs)
    elif given.command == "ask":
        for request in asked(given.file):
            print(json.dumps(request), flush=True)
        os._exit(0)  # threads wait for kernels
    elif given.command == "emit":
        emit(given.machine, given.features, json.load(sys.stdin))
    else:
        names = {(one.name, one.architecture): one for one in SYSTEMS.values()}
        system = SYSTEMS[given.target] if given.target else names.get((sys.platform, processor.architecture()))
        if system is None:
            raise SystemExit(f"no library is made for {sys.platform} on {processor.architecture()}")
        path = build(system, listed(), given.jobs)
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)
        if given.wheel:
            make_wheel(path, given.wheel)


if __name__ == "__main__":
    main()
