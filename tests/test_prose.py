"""The prose of README and pages: American spelling, sentences that are read once, and none of the words to avoid.

Code, tables, and what programs print do not count. Lists that a tool writes are not prose.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FIRST = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
WRITTEN_BY_TOOLS = {"operators.md", "litert-operators.md", "conformance.md", "models.md"}
PAGES = [ROOT / name for name in FIRST] + sorted(
    path for path in (ROOT / "docs").rglob("*.md") if path.name not in WRITTEN_BY_TOOLS
)
MOST_WORDS = 25

BRITISH = (
    r"\w*colour\w*|\w*behaviour\w*|neighbour\w*|favour\w*|honour\w*|labour\w*|centre[sd]?|metres?|fibres?|licen[c]e\w*|defence|"
    r"catalogues?|dialogues?|analogues?|greys?|learnt|spelt|modell\w+|labell\w+|travell\w+|"
    r"(?:optim|quant|recogn|normal|initial|serial|organ|synchron|general|minim|maxim|vector|summar|real|special|util|"
    r"parallel|memor|token|final|visual|emphas|character|categor|custom|standard|stabil|factor|local|apolog|critic)"
    r"is(?:e|es|ed|ing|ation|ations|er|ers)|analys(?:e|es|ed|ing)"
)
AVOIDED = r"anew|in silence|as many times as|so many that|that which|so as to|thereby|whilst|amongst"


def prose(text: str) -> str:
    """The sentences of a page, without code, tables, HTML and targets of links. Each list item ends a sentence."""
    text = re.sub(r"^ *```.*?^ *```", "\n\n", text, flags=re.S | re.M)
    text = re.sub(r"<!--.*?-->|<[^>]+>", "", text, flags=re.S)
    text = re.sub(r"^ *\|.*$", "\n", text, flags=re.M)
    text = re.sub(r"^ *(?:[-*]|\d+\.) ", "\n\n", text, flags=re.M)
    text = re.sub(r"^#+ .*$", "\n", text, flags=re.M)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`", "code", text)


def sentences(text: str) -> list[str]:
    found = (
        part
        for block in re.split(r"\n\s*\n", prose(text))
        for part in re.split(r"(?<=[.!?:;])\s+|(?<=[.!?:;]\*\*)\s+", block)
    )
    return [" ".join(part.split()) for part in found if part.strip()]


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_sentences_are_short(page: Path) -> None:
    found = [
        one for one in sentences(page.read_text(encoding="utf-8")) if len(re.findall(r"[\w'-]+", one)) > MOST_WORDS
    ]
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_spelling_is_american(page: Path) -> None:
    found = re.findall(rf"\b(?:{BRITISH})\b", prose(page.read_text(encoding="utf-8")), re.IGNORECASE)
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_words_are_plain(page: Path) -> None:
    found = re.findall(rf"\b(?:{AVOIDED})\b", prose(page.read_text(encoding="utf-8")), re.IGNORECASE)
    assert found == []


def test_the_reader_of_prose_sees_sentences() -> None:
    text = "# A title\n\nOne `x = 1`. Two:\n\n- three\n- [four](a.md)\n\n```py\nfive\n```\n| six |\n"
    assert sentences(text) == ["One code.", "Two:", "three", "four"]
    assert re.search(BRITISH, "an optimised colour") and not re.search(rf"\b(?:{BRITISH})\b", "precise, raise, color")
