"""Profiles: what workers do in frames, layer by layer, and how long it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Profile", "ProfileOverlay"]

if TYPE_CHECKING:
    from perframe.profiling.overlay import ProfileOverlay
    from perframe.profiling.profile import Profile


def __getattr__(name: str) -> Any:
    if name == "ProfileOverlay":
        from perframe.profiling.overlay import ProfileOverlay

        return ProfileOverlay
    if name == "Profile":
        from perframe.profiling.profile import Profile

        return Profile
    raise AttributeError(f"module 'perframe.profiling' has no attribute {name!r}")
