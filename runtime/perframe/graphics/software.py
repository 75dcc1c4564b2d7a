"""Software devices: OpenGL that runs on the CPU."""

from __future__ import annotations

_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software", "gdi generic", "basic render")


def is_software(renderer: str) -> bool:
    """Whether a renderer of this name runs on the CPU, and takes its time from everything else."""
    return any(name in renderer.lower() for name in _SOFTWARE)
