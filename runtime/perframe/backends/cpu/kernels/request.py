"""The words of a request for the arithmetic that holds for some sizes (see ir/sizes/arithmetic.py), and of its records."""

from __future__ import annotations

# A request. The kernel sets CHOSEN to the index of the record that holds, or to -1. DIMS is the address of all dims of
# all inputs, OPEN that of the positions of open dims among them, ALIKE that of pairs of positions whose sizes must be
# equal, and LISTED that of the records' addresses.
CHOSEN, DIMS, OPEN, OPEN_COUNT, ALIKE, ALIKE_COUNT, LISTED, REQUEST = range(8)
# A record. VALUES is the address of the values, the first GIVEN of which are inputs and constants. ROWS is the address
# of the rows, PLACED that of triples that map values to words of a block, and BLOCK that of the block.
VALUES, GIVEN, ROWS, ROW_COUNT, PLACED, BLOCK, RECORD = range(7)
