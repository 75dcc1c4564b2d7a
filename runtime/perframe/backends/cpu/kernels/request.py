"""Where words lie in the question which arithmetic holds for some sizes (see sizes/arithmetic.py)."""

from __future__ import annotations

# of the question: set to which of the records holds, or -1; the addresses of all dims of all inputs, of the places of
# the sizes among these, whose number follows, of pairs of places that must have the same size, whose number follows,
# and of the records' addresses
CHOSEN, DIMS, OPEN, OPEN_COUNT, ALIKE, ALIKE_COUNT, LISTED, REQUEST = range(8)
# of a record: the addresses of the values, of which so many are given, of the rows, of triples that say what goes
# where, and of the block that it goes to
VALUES, GIVEN, ROWS, ROW_COUNT, PLACED, BLOCK, RECORD = range(7)
