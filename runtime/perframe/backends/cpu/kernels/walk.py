"""The loop that runs a program, and the loop that helps: a thread that asks first gets the next chunk of a step.

A team is one block of words, shared by the threads of the process and never freed. The thread that walks a program
posts a split step there and takes chunks of it like everyone else; it waits only for chunks that another thread has
taken. A chunk is taken by decrementing `REMAINING`, and is ours if that was positive. Only then are the words beside it
read: they cannot change before the chunk is reported in `DONE`. So a helper that comes late, or was held up for long,
finds nothing to take, and touches nothing.

The walker takes the first chunks and the helpers take the last. So a thread mostly reads what it computed in the step
before, and finds it in its core's cache.
"""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.atomics import (
    add,
    add_in_order,
    call_system,
    exchange,
    load_acquire,
    pause,
    read_ticks,
    store_release,
)
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import call_kernel, int64s
from perframe.backends.cpu.kernels.team import (
    ASLEEP,
    CHUNK,
    DONE,
    FIRST,
    GIVE_WAY,
    HELPED,
    ITEMS,
    KERNEL,
    NUMBERS,
    POSTED,
    REMAINING,
    ROW,
    RUNNING,
    TABLE,
    TEAM,
    TICKS,
    WAIT,
    WAKE,
)

# a power of two: pauses between two offers of the core to other threads: we may wait for one of them
PATIENCE = 256


@inline
def _take_chunks(team, helps):
    """Run chunks of the posted step until none is left. Return their number."""
    words = int64s(team)
    mine = 0
    while True:
        if add(team + 8 * REMAINING, -1) <= 0:
            return mine
        items, chunk = words[POSTED + ITEMS], words[POSTED + CHUNK]
        first = words[POSTED + FIRST]
        begin = mine * chunk
        if helps:
            begin = ((items + chunk - 1) // chunk - 1 - add(team + 8 * HELPED, 1)) * chunk
        end = min(items, begin + chunk)
        call_kernel(words[POSTED + KERNEL], words[POSTED + NUMBERS], first + begin, first + end)
        mine += 1


@inline
def _call(team, at):
    """Make one of the system's calls."""
    words = int64s(team)
    call_system(words[at], words[at + 1], words[at + 2], words[at + 3], words[at + 4], words[at + 5])


@inline
def _be_patient(team, spins):
    """Take one turn of a loop that waits for another thread. Return the number of turns so far."""
    if spins & (PATIENCE - 1) == PATIENCE - 1 and int64s(team)[GIVE_WAY]:
        _call(team, GIVE_WAY)
    else:
        pause()
    return spins + 1


@inline
def _share(team, row):
    """Run a step together with the helpers that are awake."""
    words, step = int64s(team), int64s(row)
    for index in range(ROW):
        words[POSTED + index] = step[index]
    words[HELPED] = 0
    done = words[DONE]  # of all steps before: no thread changes it until a chunk of this one is finished
    chunks = (step[ITEMS] + step[CHUNK] - 1) // step[CHUNK]
    store_release(team + 8 * REMAINING, chunks)
    done += chunks - _take_chunks(team, False)
    spins = 0
    while load_acquire(team + 8 * DONE) != done:
        spins = _be_patient(team, spins)


@inline
def _begin(team):
    """Call the helpers. Those that sleep come when the system wakes them; no thread waits for that."""
    exchange(team + 8 * RUNNING, 1)
    if add_in_order(team + 8 * ASLEEP, 0):
        _call(team, WAKE)


def build() -> Any:
    """walk(program, begin, end): run a program's rows from `begin` up to `end`."""

    def walk(program, begin, end):
        table, team, ticks = int64s(program)[TABLE], int64s(program)[TEAM], int64s(program)[TICKS]
        if team:
            _begin(team)
        for index in range(begin, end):
            if ticks:
                int64s(ticks)[index] = read_ticks()
            row = table + 8 * ROW * index
            step = int64s(row)
            if team and step[CHUNK] < step[ITEMS]:
                _share(team, row)
            else:
                call_kernel(step[KERNEL], step[NUMBERS], step[FIRST], step[FIRST] + step[ITEMS])
        if ticks:
            int64s(ticks)[end] = read_ticks()
        if team:
            store_release(team + 8 * RUNNING, 0)

    return walk


def build_help() -> Any:
    """help(team, forever, unused): take chunks while a program runs; then return, or sleep until the next."""

    def help(team, forever, unused):
        while True:
            spins = 0
            while load_acquire(team + 8 * RUNNING):
                if load_acquire(team + 8 * REMAINING) > 0:
                    mine = _take_chunks(team, True)
                    if mine:
                        add(team + 8 * DONE, mine)
                    spins = 0
                spins = _be_patient(team, spins)
            if not forever:
                return
            add_in_order(team + 8 * ASLEEP, 1)
            # the system looks at RUNNING once more before it puts us to sleep
            _call(team, WAIT)
            add_in_order(team + 8 * ASLEEP, -1)

    return help
