"""Puts a library of compiled kernels into a wheel: PERFRAME_KERNELS names its file (tools/kernel_library.py makes it).

Such a wheel is for one system. Without the variable the wheel has no library, and is for all systems.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAGS = {
    "kernels-linux-x86_64.so": "manylinux_2_17_x86_64",
    "kernels-linux-aarch64.so": "manylinux_2_17_aarch64",
    "kernels-darwin-aarch64.dylib": "macosx_11_0_arm64",
    "kernels-win32-x86_64.dll": "win_amd64",
    "kernels-win32-aarch64.dll": "win_arm64",
}


class Hook(BuildHookInterface):  # type: ignore[type-arg]
    """hatchling's hook."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the library, and say which systems the wheel is for. An editable installation gets no library."""
        given = os.environ.get("PERFRAME_KERNELS")
        if not given or version == "editable":
            return
        library = Path(given).resolve()
        if not library.is_file() or library.name not in TAGS:
            raise SystemExit(f"PERFRAME_KERNELS is no library of kernels: {given}")
        for name in (library.name, f"{library.name}.sum"):
            build_data["force_include"][str(library.with_name(name))] = f"perframe/backends/cpu/compile/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TAGS[library.name]}"
