"""Regular expressions that take time in proportion to the text, whatever they say, as RE2's do.

Python's `re` tries one way after the other, of which a short expression can have more than anybody waits for. Here all
ways are followed at once (Thompson, Regular expression search algorithm, 1968); `re` says what single characters match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from perframe.errors import InferenceError

MAX_STATES = 20_000  # what counts in braces stand for is spelled out
MAX_DEPTH = 100  # of groups within groups

_TOKEN = re.compile(
    r"(?P<repeat>(?:[*+?]|\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\})(?P<lazy>[?+]?))"
    r"|(?P<flags>\(\?[imsa]+\))"
    r"|(?P<open>\((?:\?(?:[ims]*(?:-[ims]+)?:|P<\w+>)|(?!\?)))"
    r"|(?P<close>\))|(?P<branch>\|)"
    r"|(?P<anchor>\^|\$|\\[bBAZ])"
    r"|\\(?:x[0-9a-fA-F]{2}|[0-7]{2,3}|[^1-9xNuU]|0)|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\(]|\n",
    re.DOTALL,
)


@dataclass
class State:
    """Where matching can be: it goes on to all of `after`, past a character that `what` matches if there is one."""

    after: list[State]
    what: re.Pattern[str] | None = None
    anchor: bool = False  # `what` looks at a place, and passes no character


@dataclass
class _Group:
    """An open group: its alternatives, each a list of parts."""

    options: list[list[_Part]]
    flags: int


@dataclass
class _Part:
    """A group or an expression of one character, and how often it is there."""

    what: _Group | re.Pattern[str]
    anchor: bool = False
    counts: list[tuple[int, int | None]] = field(default_factory=list)  # from the inside out


class Automaton:
    """An expression in Python's syntax, without what RE2 does not have. Raises InferenceError."""

    def __init__(self, pattern: str, flags: int) -> None:
        try:
            re.compile(pattern, flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise InferenceError(f"{pattern!r:.200} is no regular expression: {error}") from None
        self._pattern, self._states = pattern, 0
        self._end = State([])
        self._begin = self._group(self._parsed(flags), self._end)

    def matches(self, text: str) -> bool:
        """Whether it matches the whole text."""
        here = self._reached([self._begin], text, 0)
        for place in range(len(text)):
            passed = [s for s in here if s.what is not None and not s.anchor and s.what.match(text, place)]
            here = self._reached([after for state in passed for after in state.after], text, place + 1)
            if not here:
                return False
        return self._end in here

    def _reached(self, states: list[State], text: str, place: int) -> list[State]:
        """All states that can be reached without passing a character."""
        seen = {id(state) for state in states}
        found = list(states)
        for state in found:  # which grows
            if state.what is None or (state.anchor and state.what.match(text, place)):
                for after in state.after:
                    if id(after) not in seen:
                        seen.add(id(after))
                        found.append(after)
        return found

    def _parsed(self, flags: int) -> _Group:
        open_groups, at = [_Group([[]], flags)], 0
        while at < len(self._pattern):
            found = _TOKEN.match(self._pattern, at)
            group = open_groups[-1]
            if found is None:
                raise self._refusal(self._pattern[at : at + 4])
            at = found.end()
            if found["repeat"] and not _is_text(found):
                if found["lazy"] == "+":
                    raise self._refusal(found[0])
                group.options[-1][-1].counts.append(_counts(found))
            elif found["flags"]:
                group.flags |= _flags(found[0])
            elif found["open"]:
                kept, _, dropped = found[0].partition("-") if not found[0].startswith("(?P") else ("", "", "")
                inner = _Group([[]], (group.flags | _flags(kept)) & ~_flags(dropped))
                group.options[-1].append(_Part(inner))
                open_groups.append(inner)
                if len(open_groups) > MAX_DEPTH:
                    raise InferenceError(f"{self._pattern!r:.200} has more than {MAX_DEPTH} groups within each other")
            elif found["close"]:
                open_groups.pop()
            elif found["branch"]:
                group.options.append([])
            else:
                text = found[0]
                if found["repeat"]:  # a brace that counts nothing is a character
                    text, at = "{", found.start() + 1
                what = re.compile(re.escape(text) if len(text) == 1 and text in "{}]" else text, group.flags)
                group.options[-1].append(_Part(what, anchor=bool(found["anchor"])))
        return open_groups[0]

    def _refusal(self, what: str) -> InferenceError:
        return InferenceError(f"{self._pattern!r:.200} is no regular expression of RE2, which does not know {what!r}")

    def _state(self, after: list[State], what: re.Pattern[str] | None = None, anchor: bool = False) -> State:
        self._states += 1
        if self._states > MAX_STATES:
            raise InferenceError(f"{self._pattern!r:.200} stands for more than {MAX_STATES} characters")
        return State(after, what, anchor)

    def _group(self, group: _Group, after: State) -> State:
        first = []
        for option in group.options:
            begin = after
            for part in reversed(option):
                begin = self._repeated(part, len(part.counts), begin)
            first.append(begin)
        return first[0] if len(first) == 1 else self._state(first)

    def _repeated(self, part: _Part, depth: int, after: State) -> State:
        if not depth:
            if isinstance(part.what, _Group):
                return self._group(part.what, after)
            return self._state([after], part.what, part.anchor)
        least, most = part.counts[depth - 1]
        begin = after
        if most is None:
            begin = self._state([after])
            begin.after.append(self._repeated(part, depth - 1, begin))
        for _ in range(0 if most is None else most - least):
            begin = self._state([self._repeated(part, depth - 1, begin), after])
        for _ in range(least):
            begin = self._repeated(part, depth - 1, begin)
        return begin


def _is_text(found: re.Match[str]) -> bool:
    """Whether braces are no count."""
    return found[0].startswith("{") and not found["least"] and not (found["comma"] and found["most"])


def _counts(found: re.Match[str]) -> tuple[int, int | None]:
    if not found[0].startswith("{"):
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[found[0][0]]
    least = int(found["least"] or 0)
    if not found["comma"]:
        return least, least
    return least, int(found["most"]) if found["most"] else None


def _flags(letters: str) -> int:
    named = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
    return sum(flag for letter, flag in named.items() if letter in letters)
