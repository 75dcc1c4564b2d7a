"""Kernels for machines that are not here: their objects need nothing that these lack, and their tiles do not spill."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import pytest
import targets
from targets import TARGETS, Emitted

from perframe.backends.cpu import processor
from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels import compiler, sizes

RAISING = """
target triple = "x86_64-pc-windows-msvc"
declare float @fmaf(float, float, float)
define float @kernel(ptr %called, float %x) {
  call void %called()
  %y = call float @fmaf(float %x, float %x, float %x)
  ret float %y
}
"""
SPILLING = """
_perframe_tile_8_2:
	str	q8, [sp, #-16]!
LBB1_1:
	ldr	x9, [sp, #8]
	ldr	q1, [sp, #32]
	fmla.4s	v4, v12, v10[0]
	str	s2, [sp, #48]
	fmla.4s	v3, v11, v10[0]
	b.lt	LBB1_1
LBB1_2:
	ldr	q7, [sp, #64]
	cbnz	x9, LBB1_2
_perframe_tile_7_2:
	ldr	q7, [sp, #64]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "kernels"),
    [
        ("windows-x64", targets.SOME),
        ("macos-arm64", targets.SOME),
        ("macos-rosetta", ("gemm", "walk")),
        ("linux-arm64", ("gemm", "quantized", "walk")),
        ("linux-oryon", ("walk",)),  # LLVM's own model of it would end the process
    ],
)
def test_objects_of_other_machines(target: str, kernels: tuple[str, ...]) -> None:
    emitted = targets.emit(target, kernels)
    tiled = ["gemm", "quantized", "quantized"] if "arm64" in target else ["gemm"]  # one for each instruction
    assert [each.kernel for each in emitted if each.spills >= 0] == [one for one in tiled if one in kernels]
    assert {each.kernel: each.problems() for each in emitted} == {name: [] for name in kernels}


@pytest.mark.quick(cases=0)
def test_what_stands_against_an_object_is_found() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TARGETS["windows-x64"].triple)
    code = target.create_target_machine(codemodel="jitdefault", jit=True).emit_object(llvm.parse_assembly(RAISING))
    problems = targets.read("kernel", code, SPILLING, "perframe_tile_8_2").problems()
    assert problems == [
        "needs fmaf",
        "has relocations AMD64_ADDR32NB",
        "spills 2 vectors in the inner loop of its tile",
    ]
    assert Emitted("kernel", 0, ["memset"], ["AMD64_ADDR64"], -1).problems() == []
    assert targets.spills(SPILLING, "perframe_tile_6_2") == -1


def test_all_kernels_are_found() -> None:
    names = {name for name, _ in targets.kernels()}
    assert {*targets.SOME, "winograd", "reduce.sum_columns", "gather.tuples_of_bytes", "recurrent.lstm"} <= names
    assert len(names) > 80


def test_each_object_may_have_an_engine_of_its_own() -> None:
    """As on Windows. The code of the first stays when the second is linked."""
    linker = jit._Linker(shares_engine=False)
    write = [linker.link(*compiler.compile_kernel("arithmetic.write", "")) for _ in range(2)]
    assert write[0] != write[1] and len(linker._engines) == 2
    shared = jit._Linker()
    for _ in range(2):
        shared.link(*compiler.compile_kernel("arithmetic.write", ""))
    assert len(shared._engines) == 1


@pytest.mark.parametrize("changed", ["llvmlite.binding.get_process_triple", "llvmlite.__version__"])
def test_kernels_are_those_of_one_machine_and_one_compiler(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that several machines share has one cache."""
    before = jit._fingerprint.__wrapped__()
    another: Any = "0.1" if changed.endswith("__") else (lambda: "arm64-apple-darwin")
    monkeypatch.setattr(changed, another)
    assert jit._fingerprint.__wrapped__() != before


@pytest.mark.parametrize(
    ("system", "machine", "features", "halves", "fused"),
    [
        ("darwin", "arm64", [], True, True),
        ("linux", "aarch64", [], True, True),
        ("darwin", "x86_64", ["sse4.2"], False, False),
        ("linux", "x86_64", ["avx2", "f16c", "fma"], True, True),
        ("win32", "aarch64-pc-windows-msvc", [], True, True),
        ("win32", "x86_64-pc-windows-msvc", ["avx2", "f16c", "fma"], True, True),
    ],
)
def test_what_a_processor_has(
    system: str, machine: str, features: list[str], halves: bool, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows LLVM is asked: Python there tells a program for x86-64 on arm64 the name of the real processor."""
    monkeypatch.setattr(processor.sys, "platform", system)
    monkeypatch.setattr(processor.platform, "machine", lambda: "ARM64" if system == "win32" else machine)
    monkeypatch.setattr(llvm, "get_process_triple", lambda: machine)
    monkeypatch.setattr(processor, "_told_by_numpy", dict)
    monkeypatch.setattr(processor, "_told_by_llvm", lambda: dict.fromkeys(features, True))
    monkeypatch.setattr(processor, "architecture", processor.architecture.__wrapped__)
    monkeypatch.setattr(sizes, "architecture", processor.architecture)
    for function in (sizes.has_halves, sizes.multiplies_and_adds):
        monkeypatch.setattr(sizes, function.__name__, function.__wrapped__)
    assert (sizes.has_halves(), sizes.multiplies_and_adds()) == (halves, fused)
    assert processor.architecture() == machine.split("-")[0].replace("arm64", "aarch64")
