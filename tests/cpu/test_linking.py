"""Kernels into which formulas, epilogues and activations are linked: their own Python is compiled once."""

from __future__ import annotations

import re

import pytest

from perframe.backends.cpu.kernels import compiler, elementwise, sizes


def text(formula: str, dtype: str = "float32 float") -> str:
    head = f"operands, result = [{dtype!r}, {dtype!r}], {dtype.split()[0]!r}\n"
    body = f"@inline\ndef formula(x0, x1, p):\n    return {formula}\n@inline\ndef epilogue(x, p):\n    return x\n"
    return head + body


@pytest.mark.quick(cases=0)
def test_a_kernel_is_compiled_once_for_all_formulas_and_dtypes() -> None:
    compiler.compile_library("elementwise", text("x0 + x1"))
    before = compiler._lowered_once.cache_info().misses
    kernel = elementwise._kernel.cache_info().misses
    symbols = {
        compiler.compile_library("elementwise", each)[1] for each in (text("x0 - x1"), text("x0 * x1", "int32 int"))
    }
    assert len(symbols) == 2
    assert compiler._lowered_once.cache_info().misses == before and elementwise._kernel.cache_info().misses == kernel


@pytest.mark.parametrize("name", ["matmul", "finish", "conv", "conv.transpose"])
def test_a_kernel_is_compiled_once_for_all_epilogues(name: str) -> None:
    first, second = (f"@inline\ndef epilogue(x, p):\n    return {each}\n" for each in ("x * p[0]", "exp(x)"))
    compiler.compile_library(name, first)
    before = compiler._lowered_once.cache_info().misses
    library, symbol = compiler.compile_library(name, second)
    assert compiler._lowered_once.cache_info().misses == before
    assert [each.name for each in library.get_defined_functions()] == [symbol]


def test_a_linked_formula_is_inlined() -> None:
    library, symbol = compiler.compile_library("elementwise", text("x0 * x1"))
    assert [each.name for each in library.get_defined_functions()] == [symbol]
    code = library.get_llvm_str()
    assert set(re.findall(r"call [^@\n]*@([.\w]+)", code)) <= set(re.findall(r"@(llvm\.[.\w]+)", code))
    assert f"fmul contract <{sizes.LANES} x float>" in code, "its loop has vectors"
