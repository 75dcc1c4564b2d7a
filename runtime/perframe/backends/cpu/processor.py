"""This machine's processor: its architecture, and what it can do."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Mapping
from typing import Any

import numpy  # noqa: F401, it knows the processor

# LLVM's names of features, by NumPy's
_NAMES = {
    "AVX2": "avx2",
    "AVX512BW": "avx512bw",
    "AVX512CD": "avx512cd",
    "AVX512DQ": "avx512dq",
    "AVX512F": "avx512f",
    "AVX512VL": "avx512vl",
    "AVX512VNNI": "avx512vnni",
    "BMI": "bmi",
    "BMI2": "bmi2",
    "F16C": "f16c",
    "FMA3": "fma",
    "LZCNT": "lzcnt",
    "MOVBE": "movbe",
    "POPCNT": "popcnt",
    "SSE42": "sse4.2",
}

_AVX2 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")  # x86-64-v3
_AVX512 = (*_AVX2, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")  # x86-64-v4
# Levels of processors: the features that code for each may use, by architecture, float32 lanes and registers
LEVELS = {
    ("x86_64", 8, 16): _AVX2,
    ("x86_64", 16, 32): _AVX512,
    ("aarch64", 4, 32): (),
}


@functools.cache
def architecture() -> str:
    """The processor's architecture as LLVM names it: x86_64, aarch64 (which Apple calls arm64), or another."""
    name = platform.machine()
    if sys.platform == "win32":  # which tells a program for another processor the name of the real one
        import llvmlite.binding as llvm

        name = llvm.get_process_triple().partition("-")[0]
    return {"AMD64": "x86_64", "arm64": "aarch64"}.get(name, name)


def has(feature: str) -> bool:
    """Whether this processor and system have a feature, by LLVM's name of it.

    NumPy tells most of them: to import llvmlite takes a tenth of a small model's start.
    """
    told = _told_by_numpy().get(feature)
    return bool(_told_by_llvm().get(feature)) if told is None else told


@functools.cache
def _told_by_numpy() -> Mapping[str, bool]:
    """What NumPy says. It does not document where that stands, so it may say nothing."""
    module = sys.modules.get("numpy._core._multiarray_umath")
    told: Mapping[str, Any] = getattr(module, "__cpu_features__", {})
    return {_NAMES[name]: bool(value) for name, value in told.items() if name in _NAMES}


@functools.cache
def _told_by_llvm() -> Mapping[str, Any]:
    import llvmlite.binding as llvm

    told: Mapping[str, Any] = llvm.get_host_cpu_features()
    return told
