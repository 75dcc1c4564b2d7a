"""Passes that choose between a backend and the host."""

from perframe.passes.place import place_shape_arithmetic, place_wide_numbers

__all__ = ["place_shape_arithmetic", "place_wide_numbers"]
