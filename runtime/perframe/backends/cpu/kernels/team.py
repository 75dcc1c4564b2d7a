"""The indices of words that native code and Python share: a program's table, and the team of threads that run it."""

from __future__ import annotations

# a row of a program's table, and the number of its words: if the chunk is all items, the step is not split
KERNEL, NUMBERS, ITEMS, CHUNK, ROW = range(5)

# a program: the addresses of its table and of the team that runs it (0 for none); the table begins after these words
TABLE, TEAM, PROGRAM = range(3)

# the words of a team: each group has a cache line of its own, since other threads write it at other times
# the step that is under way: chunks that no thread has taken, the step's row, and the chunks that helpers have taken
REMAINING, POSTED, HELPED = 0, 1, 1 + ROW
DONE = 8  # chunks that helpers have finished, ever
RUNNING, ASLEEP = 16, 17  # whether a program is under way, and how many helpers sleep
YIELD, SYSCALL, FUTEX = 24, 25, 26  # addresses of sched_yield and syscall, and futex's number; 0 where there is none
WORDS = 32
