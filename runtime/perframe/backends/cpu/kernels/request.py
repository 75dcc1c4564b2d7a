"""Where words lie in what asks for an evaluation of formulas (see formulas.py)."""

from __future__ import annotations

HOLDS = 0  # set to whether all guards do
VALUES, GIVEN, ROWS = 1, 2, 3  # addresses of the values and the rows, and how many of the values are given
PLACES, SOURCES, COUNT, OUT, REQUEST = 4, 5, 6, 7, 8  # what goes to which place after OUT
