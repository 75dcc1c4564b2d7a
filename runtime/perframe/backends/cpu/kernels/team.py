"""The indices of words that native code and Python share: a program's table, and the team of threads that run it."""

from __future__ import annotations

# a row of a program's table, and the number of its words; a step whose chunk holds all of its items is not split
# FIRST is the first item that runs: above 0 where a frame has time for a part of the step
KERNEL, NUMBERS, ITEMS, CHUNK, FIRST, ROW = range(6)

# a program: the addresses of its table, of the team that runs it (0 for none), and of the words for the clock's ticks
# before each step and after the last (0 if steps are not timed); the table begins after these words
TABLE, TEAM, TICKS, PROGRAM = range(4)

# the words of a team; words that the same threads write at the same times share a cache line
# the present step: chunks that no thread has taken, the step's row, and the chunks that helpers have taken
REMAINING, POSTED, HELPED = 0, 1, 1 + ROW
DONE = 8  # chunks that helpers have finished since the team began
RUNNING, ASLEEP = 16, 17  # whether a program is running, and how many helpers sleep
# the calls that give way to other threads, sleep while RUNNING is 0, and wake the sleepers: a function's address, 0 if
# the system has none, and its arguments
GIVE_WAY, WAIT, WAKE = 24, 30, 36
ZERO = 42  # a word that stays 0
WORDS = 48
