"""Emits the CPU's kernels for machines that are not here, and reads the objects.

LLVM in llvmlite's wheels writes code for all systems. A process of its own takes the place of each machine: LLVM, Numba
and the kernels see that machine's triple, processor and system, and choose tiles and instructions as they would there.
Nothing is run. `python tools/targets.py` emits some kernels for all machines, and prints what stands against one of
them; `--all` emits all kernels and all formulas.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import pkgutil
import platform
import re
import subprocess
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from perframe.backends.cpu import processor
from perframe.errors import FormulaError


@dataclass(frozen=True)
class Target:
    """A machine: LLVM's names of it and of its processor's features, and Python's names of machine and system."""

    triple: str
    cpu: str
    features: str
    machine: str
    system: str


_AVX2 = "avx2,fma,f16c,sse4.2"
TARGETS = {
    "windows-x64": Target("x86_64-pc-windows-msvc", "x86-64-v3", _AVX2, "AMD64", "win32"),
    "linux-avx512": Target("x86_64-unknown-linux-gnu", "x86-64-v4", f"{_AVX2},avx512f", "x86_64", "linux"),
    "windows-avx512": Target("x86_64-pc-windows-msvc", "x86-64-v4", f"{_AVX2},avx512f", "AMD64", "win32"),
    "windows-arm64": Target("aarch64-pc-windows-msvc", "cortex-x1", "neon,dotprod", "ARM64", "win32"),
    "macos-arm64": Target("arm64-apple-darwin", "apple-m1", "neon,dotprod", "arm64", "darwin"),
    "macos-rosetta": Target("x86_64-apple-darwin", "x86-64-v2", "sse4.2", "x86_64", "darwin"),
    "linux-x64": Target("x86_64-unknown-linux-gnu", "x86-64-v3", _AVX2, "x86_64", "linux"),
    "linux-oryon": Target("aarch64-linux-gnu", "oryon-1", "neon,dotprod", "aarch64", "linux"),
    "linux-arm64": Target("aarch64-linux-gnu", "neoverse-n1", "neon,dotprod", "aarch64", "linux"),
}
# What the loader of objects finds in any process of each system. Only Mod needs fmodf, which all C libraries have.
RESOLVED = frozenset({"memset", "memcpy", "bzero", "__chkstk", "_fltused", "fmodf"})
SOME = ("arithmetic", "depthwise", "elementwise", "gemm", "norm.softmax", "quantized", "walk", "walk.build_help")


@dataclass(frozen=True)
class Emitted:
    """What an object tells. `undefined` are the symbols that it needs. `spills` counts those of vectors in the
    inner loop of its largest tile; -1 if it has no tile.
    """

    kernel: str
    size: int
    undefined: list[str]
    relocations: list[str]
    spills: int

    def problems(self) -> list[str]:
        """What would go wrong on the machine, in words."""
        found = [f"needs {name}" for name in self.undefined if name not in RESOLVED]
        found += [f"has relocations {kind}" for kind in self.relocations if "ADDR32NB" in kind]
        if self.spills > 0:
            found.append(f"spills {self.spills} vectors in the inner loop of its tile")
        return found


def emit(target: str, kernels: Sequence[str]) -> list[Emitted]:
    """Emit kernels in a process that takes the machine's place. Without names, all kernels."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PERFRAME_VEC"))}
    command = [sys.executable, __file__, "--emit", target, *kernels]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"no kernels for {target}: {done.stderr[-2000:]}")
    return [Emitted(**json.loads(line)) for line in done.stdout.splitlines()]


# --- in the process of a target ---


def take_place(target: Target) -> None:
    """Let LLVM, Numba and the kernels see another machine, and keep Numba from linking its code here."""
    import llvmlite.binding as llvm
    from llvmlite.binding import targets

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = targets.FeatureMap({name: True for name in target.features.split(",")})
    for module in (llvm, targets):
        module.get_process_triple = module.get_default_triple = lambda: target.triple
        module.get_host_cpu_name = lambda: target.cpu
        module.get_host_cpu_features = lambda: features
    platform.machine = lambda: target.machine  # type: ignore[assignment]
    processor._told_by_numpy.cache_clear()
    processor._NAMES = {}  # NumPy speaks of the machine that is here

    from numba.core import codegen

    library = codegen.JITCodeLibrary  # of what Numba itself compiles
    library._finalize_specific = lambda self: None
    library.get_pointer_to_function = lambda self, name: self._ensure_finalized() or 0
    codegen.JITCPUCodegen._add_module = lambda self, module: None
    codegen.JITCPUCodegen.set_env = lambda self, name, address: None


def read(kernel: str, code: bytes, assembly: str, tile: str) -> Emitted:
    """Read an object of any of the three formats, and count the spills in the function `tile` of its assembly."""
    import lief

    parsed = lief.parse(list(code))
    in_sections = (entry for section in parsed.sections for entry in section.relocations)
    relocations = list(parsed.relocations if isinstance(parsed, lief.ELF.Binary) else in_sections)
    needed = {str(entry.symbol.name) for entry in relocations if _is_undefined(entry.symbol)}
    if isinstance(parsed, lief.MachO.Binary):  # which puts a line before the names of C
        needed = {name.removeprefix("_") for name in needed}
    kinds = {str(entry.type).rpartition(".")[2] for entry in relocations}
    return Emitted(kernel, len(code), sorted(needed - {""}), sorted(kinds), spills(assembly, tile))


def _is_undefined(symbol: Any) -> bool:
    """Whether a symbol is defined elsewhere. Each format says so in its own way."""
    import lief

    if isinstance(symbol, lief.ELF.Symbol):
        return bool(symbol.name) and int(symbol.shndx) == 0
    if isinstance(symbol, lief.MachO.Symbol):
        return symbol.type == lief.MachO.Symbol.TYPE.UNDEFINED
    return symbol is not None and bool(symbol.is_undefined)


_STACK = re.compile(r"\(%rsp\b|\[sp\b")
_VECTOR = re.compile(r"%[xyz]mm\d|\b[bhsdqv]\d+\b")  # in the words of x86, or of Arm
_BLOCK = re.compile(r"^([.\w$]+):(.*?)(?=^[.\w$]+:|\Z)", re.MULTILINE | re.DOTALL)


def spills(assembly: str, function: str) -> int:
    """How often vectors go to the stack or come from it in the longest loop of one block of a function; -1 if there is
    no such function. Addresses may be spilled: they are few.
    """
    found = re.search(rf"^_?{function}:(.*?)^(?:_?perframe_\w+|\.?L?func_end\d*|_ZN\w+):", assembly, re.M | re.S)
    if found is None:
        return -1
    blocks = [(label, body) for label, body in _BLOCK.findall(found[1])]
    loops = [body for label, body in blocks if re.search(rf"\b[bj][.a-z]*\s+(?:\S+,\s*)*{re.escape(label)}\b", body)]
    longest = max(loops, key=len, default="")
    return sum(1 for line in longest.splitlines() if _STACK.search(line) and _VECTOR.search(line))


# --- the kernels ---

_EPILOGUE = "@inline\ndef epilogue(x, p):\n    return exp(x) * p[0]\n"
_SIGNED = ["signed = True", "signed = False"]
# the texts of variants, for the kernels that take any
_TEXTS: dict[str, list[str]] = {
    "byte_depthwise": _SIGNED,
    "byte_pool": _SIGNED,
    "conv": [_EPILOGUE],
    "cumulative": [
        f"dtype, start = {dtype!r}, 0\n@inline\ndef combine(a, b):\n    return a + b\n"
        for dtype in ("float32", "int64")
    ],
    "finish": [_EPILOGUE],
    "matmul": [_EPILOGUE],
    "packed": ["bits, has_zeros = 4, True", "bits, has_zeros = 8, False"],
    "quantize": _SIGNED,
    "bfloat": ["tile = 'bfloat_plain'"],
    "bfloat.lines": [],  # for AMX alone
    "quantized": ["tile, result = 'plain', 'bytes'", "tile, result = 'plain', 'float32'"],
    "recurrent": [
        "".join(f"@inline\ndef {name}(x, p):\n    return tanh(x)\n" for name in ("first", "second", "third"))
    ],
    "reduce": [
        "@inline\ndef formula(x):\n    return x * x\n@inline\ndef epilogue(x, count):\n    return x / count\n",
    ],
    "reduce_whole": [
        "dtype, start, averages = 'int32', 0, True\n@inline\ndef combine(a, b):\n    return a + b\n",
    ],
    "requantize": ["first_signed, second_signed = True, False"],
    "sample": [f"dtype = {dtype!r}" for dtype in ("float32", "uint8")],
    "scatter": ["dtype = 'float32'\n@inline\ndef combine(old, new):\n    return old + new\n"],
}
_OF_WHOLE_NUMBERS = {"And", "Or", "Xor", "Not", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"}
_HELPERS = {
    "byte_tile",
    "compiler",
    "inlining",
    "dot_tile",
    "emit",
    "gather_rows",
    "linking",
    "packed_tile",
    "rounded_tile",
    "vector",
    "whole_vector",
}  # their functions are parts of kernels


def kernels() -> Iterator[tuple[str, str]]:
    """(name, text) of all kernels, with some text for each parameter."""
    from perframe.backends.cpu import kernels as package
    from perframe.backends.cpu.kernels.dot_tile import FEATURES
    from perframe.backends.cpu.kernels.sizes import LANES
    from perframe.backends.cpu.processor import architecture

    rounds = architecture() == "x86_64" and LANES > 4
    texts = {
        **_TEXTS,
        "elementwise": list(_formulas()),
        "packed.rounded": [f"{text}\nkind = 'pairs'" for text in _TEXTS["packed"][:1]] if rounds else [],
        "rounding": ["bits = 4", "bits = 8"] if rounds else [],
    }
    if architecture() == "aarch64":
        texts["quantized"] = [f"tile, result = {kind!r}, 'bytes'" for kind in (*FEATURES, "plain")]
    for file in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{file.name}")
        if file.name in _HELPERS:
            continue
        for name, function in vars(module).items():
            is_own = isinstance(function, types.FunctionType) and function.__module__ == module.__name__
            if not is_own or name.startswith("_"):
                continue
            kernel = file.name if name == "build" else f"{file.name}.{name}"
            given = texts.get(kernel, texts.get(file.name)) if inspect.signature(function).parameters else [""]
            if given is None:
                raise SystemExit(f"the kernel {kernel} has parameters, and no texts here")
            yield from ((kernel, text) for text in given)


def _formulas() -> Iterator[str]:
    """The texts of all formulas, in kernels of their own."""
    from perframe.backends.cpu.compile import jit
    from perframe.ir.declaration import registry
    from perframe.ir.formula import keywords, name_in_text, translate
    from perframe.layers import activation

    elementwise = import_module("perframe.layers.elementwise")  # the package has a decorator of this name
    declared = [(each.formula, each.name in _OF_WHOLE_NUMBERS) for each in registry().values() if each.formula]
    chosen = [activation._exact_gelu, activation._tanh_gelu, elementwise._floored_mod, elementwise._truncated_mod]
    for formula, is_whole in [*declared, *((each, False) for each in chosen)]:
        attributes = len(keywords(formula))
        count = len(inspect.signature(formula).parameters) - attributes
        kind, dtype, head = "float", "float32", ""
        if is_whole:
            kind, dtype, head = "int", "int64", "from perframe.backends.cpu.kernels.whole import *\n"
        try:
            text, _ = translate(formula, [kind] * count, "python")
        except FormulaError:  # it chooses among formulas by its inputs or attributes
            continue
        names = ", ".join(f"x{k}" for k in range(count))
        arguments = ", ".join([names, *(f"p[{k}]" for k in range(attributes))])
        yield (
            f"operands, result = {[f'{dtype} {kind}'] * count}, {dtype!r}\n{head}{text}\n@inline\n"
            f"def formula({names}, p):\n    return {name_in_text(formula)}({arguments})\n{jit.epilogue_text(())}"
        )


def emit_here(target: str, names: Sequence[str]) -> Iterator[Emitted]:
    """Take the place of a target, and emit kernels. A named kernel gets its first text, or those of all tiles."""
    take_place(TARGETS[target])
    from perframe.backends.cpu.kernels import compiler, dot_tile, sizes

    seen = set[str]()
    for name, text in kernels():
        if names and (name not in names or (name in seen and not text.startswith("tile"))):
            continue
        seen.add(name)
        library, _ = compiler.compile_library(name, text)
        dots = [kind for kind in dot_tile.FEATURES if f"{kind!r}" in text]
        tile = f"{dots[0]}_{dot_tile.ROWS}" if dots else f"tile_{sizes.ROWS}"
        yield read(name, library.emit(), library.get_asm_str(), f"perframe_{tile}_{sizes.PANEL // sizes.LANES}")
    if missing := set(names) - seen:
        raise SystemExit(f"there are no kernels {', '.join(sorted(missing))}")


def report(targets: Iterable[str], names: Sequence[str]) -> int:
    """Print what stands against kernels on each target. Return the number of problems."""
    count = 0
    for target in targets:
        emitted = emit(target, names)
        symbols = sorted({name for each in emitted for name in each.undefined})
        spilled = max(each.spills for each in emitted)
        size = sum(each.size for each in emitted) >> 10
        print(f"{target}: {len(emitted)} objects, {size} KiB; they need {', '.join(symbols)}; spills: {spilled}")
        for each in emitted:
            for problem in each.problems():
                count += 1
                print(f"  {each.kernel} {problem}")
    return count


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", help="their names; without them some")
    parser.add_argument("--target", choices=TARGETS, action="append", help="one of the machines; without it all")
    parser.add_argument("--all", action="store_true", help="all kernels and formulas")
    parser.add_argument("--emit", choices=TARGETS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.emit:
        for emitted in emit_here(given.emit, given.kernels):
            print(json.dumps(asdict(emitted)), flush=True)
        return
    names = () if given.all else given.kernels or SOME
    sys.exit(1 if report(given.target or TARGETS, names) else 0)


if __name__ == "__main__":
    main()
