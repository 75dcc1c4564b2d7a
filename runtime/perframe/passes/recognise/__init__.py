"""Passes that find functions which exporters wrote in several layers."""

from perframe.passes.recognise import recognise_functions, recognise_norms, recognise_rotations, recognise_shuffles

__all__ = ["recognise_functions", "recognise_norms", "recognise_rotations", "recognise_shuffles"]
