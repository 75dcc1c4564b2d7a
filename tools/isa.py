"""What AMD's real compiler makes of shaders: registers, waves, and the mix of instructions in the hottest loop.

Mesa's radeonsi compiles for a GPU that is not here (drivers.py) and prints the machine code. A loop of 90 % multiply-
adds that loads one byte for each comes near the GPU's peak; a loop of 10 % does not, whatever the memory does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from shader_texts import BEGIN, END, kernel_name

Uses = Mapping[str, Mapping[str, int]]  # the number of steps, by the shader's file and by model

# Environment variables with which radeonsi prints what it compiles, at once and not in threads of its own.
PRINT_CODE = {"AMD_DEBUG": "cs,ps,asm,useaco", "radeonsi_sync_compile": "true"}

_MULTIPLY_ADD = re.compile(r"v_(pk_)?(fma|fmac|fmamk|fmaak|mac|mad|madmk|madak)_(f32|legacy_f32|mix_f32)")
_DUAL = re.compile(r"v_dual_(?:fmac|fmamk|fmaak)_f32")  # two instructions in one, from RDNA 3 on
_LOAD = re.compile(r"(?:buffer|global|flat|tbuffer)_load_|image_(?:load|sample|gather)")
_WIDTHS = {"x2": 8, "x3": 12, "x4": 16, "b64": 8, "b96": 12, "b128": 16, "xyzw": 16, "xyz": 12, "xy": 8}  # bytes
_LABEL = re.compile(r"\s*\.?L?(BB\d+(?:_\d+)?):")
_BRANCH = re.compile(r"\bs_c?branch\w*\s+\.?L?(BB\d+(?:_\d+)?)")


@dataclass(frozen=True)
class Loop:
    """The instructions of a loop that holds no other."""

    instructions: int
    multiply_adds: int
    vector: int  # instructions of the vector unit; loads and stores are not among them
    multiplying: int  # those that multiply and add; one may do it twice
    bytes_loaded: int  # by each lane; loads of scalars, which a wave shares, do not count
    waits: int

    @property
    def share(self) -> float:
        """The share of instructions that multiply and add in those of the vector unit."""
        return self.multiplying / max(1, self.vector)

    @property
    def bytes_each(self) -> float:
        """Bytes loaded a multiply-add and lane."""
        return self.bytes_loaded / max(1, self.multiply_adds)


@dataclass(frozen=True)
class Code:
    """A compiled shader. `waves` of it fit on a SIMD at once: 16 at most on RDNA, 8 or 10 before."""

    file: str
    registers: int
    waves: int
    spills: int
    shared: int  # bytes of shared memory
    size: int  # bytes of code
    # Those with most multiply-adds, nearly alike, in the shader's order. The whole shader if it has none.
    loops: list[Loop]

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return kernel_name(self.file)


def read_codes(printed: str) -> Iterator[Code]:
    """The shaders in what a compiler printed, each between the lines that `shader_texts.compile_files` writes."""
    pattern = re.compile(f"^{BEGIN}(.+?)$(.*?)^{END}", re.MULTILINE | re.DOTALL)
    for file, between in pattern.findall(printed):
        codes = [_read_code(file, chunk) for chunk in between.split("SHADER KEY")[1:] if "SHADER STATS" in chunk]
        if codes:  # a pixel shader may come twice; the larger one is the shader, the other an empty part
            yield max(codes, key=lambda code: code.size)


def _read_code(file: str, chunk: str) -> Code:
    body, _, facts = chunk.partition("*** SHADER STATS ***")
    lines = [line.split("//")[0].split(";")[0] for line in body.splitlines() if line.strip()]
    loops = [_read_loop(lines[first : last + 1]) for first, last in _innermost_loops(lines)] or [_read_loop(lines)]
    most = max(loop.multiply_adds for loop in loops)
    # a shader with a loop for each kind of operand runs one of them, and all have about the same multiply-adds
    hottest = [loop for loop in loops if loop.multiply_adds >= 0.9 * most] if most else loops[:1]

    def fact(name: str) -> int:
        found = re.search(rf"^{name}: (\d+)", facts, re.MULTILINE)
        return int(found[1]) if found else 0

    spills = fact("Spilled VGPRs") + fact("Spilled SGPRs")
    return Code(file, fact("VGPRS"), fact("Max Waves"), spills, fact("LDS"), fact("Code Size"), hottest)


def _innermost_loops(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Ranges of lines, from a label to the last branch back to it, that hold no other such range."""
    labels = {found[1]: index for index, line in enumerate(lines) if (found := _LABEL.match(line))}
    loops: dict[int, int] = {}
    for index, line in enumerate(lines):
        found = _BRANCH.search(line)
        if found and labels.get(found[1], index) < index:
            loops[labels[found[1]]] = index
    return [
        (first, last)
        for first, last in loops.items()
        if not any(one != first and one >= first and other <= last for one, other in loops.items())
    ]


def _read_loop(lines: Sequence[str]) -> Loop:
    count: Counter[str] = Counter()
    for line in lines:
        instruction = (line.split() or [""])[0]
        if instruction.startswith(("v_", "s_", "ds_")) or _LOAD.match(instruction):
            count["instructions"] += 1
        if instruction.startswith("v_"):
            found = _MULTIPLY_ADD.match(instruction)
            done = len(_DUAL.findall(line)) or (0 if found is None else 2 if found[1] else 1)
            count.update({"vector": 1, "multiply-adds": done, "multiplying": done > 0})
        elif _LOAD.match(instruction):
            width = next((size for end, size in _WIDTHS.items() if instruction.endswith(end)), 4)
            count["bytes"] += 16 if instruction.startswith("image") else width
        elif instruction.startswith("s_waitcnt"):
            count["waits"] += 1
    return Loop(
        count["instructions"],
        count["multiply-adds"],
        count["vector"],
        count["multiplying"],
        count["bytes"],
        count["waits"],
    )


def show(codes: Sequence[Code], uses: Uses, console: Console) -> None:
    """Print a table of shaders, the ones with most multiply-adds first, and how many steps of which model use each."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("kernel", no_wrap=True)
    table.add_column("steps")
    columns = ("registers", "waves", "spills", "shared", "loop", "multiply-adds", "share", "bytes each", "waits")
    for column in columns:
        table.add_column(column, justify="right")
    for code in sorted(codes, key=lambda code: -max(loop.multiply_adds for loop in code.loops)):
        steps = ", ".join(f"{count} {model}" for model, count in uses[code.file].items())
        facts = (code.registers, code.waves, code.spills, code.shared)
        for index, loop in enumerate(code.loops):
            of_loop = (loop.instructions, loop.multiply_adds)
            named = ("", "", *[""] * len(facts)) if index else (code.kernel, steps, *map(str, facts))
            table.add_row(*named, *map(str, of_loop), f"{loop.share:.0%}", f"{loop.bytes_each:.2f}", str(loop.waits))
    console.print(table)
