"""What an arm64 processor can do with bytes. The system is asked: LLVM does not know on every system."""

from __future__ import annotations

import ctypes
import sys

from perframe.c_functions import c_function, sysctl

_CAPABILITIES, _MORE_CAPABILITIES = 16, 26  # AT_HWCAP and AT_HWCAP2, of Linux
_DOTS, _MIXED_DOTS = 1 << 20, 1 << 13  # HWCAP_ASIMDDP of the first, HWCAP2_I8MM of the second
_WINDOWS_DOTS = 43  # PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE


def byte_products() -> list[str]:
    """The kinds of tiles in kernels/dot_tile.py that this processor has, best first."""
    found = {"linux": _of_linux, "darwin": _of_macos, "win32": _of_windows}.get(sys.platform, lambda: (False, False))()
    return [kind for kind, there in zip(("sudot", "sdot"), found, strict=True) if there]


def _of_linux() -> tuple[bool, bool]:
    ask = c_function("", "getauxval")
    if ask is None:
        return False, False
    ask.argtypes, ask.restype = [ctypes.c_ulong], ctypes.c_ulong
    return bool(ask(_MORE_CAPABILITIES) & _MIXED_DOTS), bool(ask(_CAPABILITIES) & _DOTS)


def _of_macos() -> tuple[bool, bool]:
    return sysctl("hw.optional.arm.FEAT_I8MM") == 1, sysctl("hw.optional.arm.FEAT_DotProd") == 1


def _of_windows() -> tuple[bool, bool]:
    ask = c_function("kernel32", "IsProcessorFeaturePresent")
    return False, ask is not None and bool(ask(_WINDOWS_DOTS))
