"""Plain English: pages, public docstrings, help texts and messages keep to the words of tests/words.toml.

Sentences of pages have at most 35 words. `python tests/test_english.py [PATH...]` lists what it finds.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RULES = tomllib.loads((ROOT / "tests" / "words.toml").read_text(encoding="utf-8"))
MOST_WORDS = 35
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
SOURCES = sorted((ROOT / "runtime" / "perframe").rglob("*.py"))
TEXTS = [path for path in PAGES + SOURCES if path.exists()]
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def compiled(table: str, form: str) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(form.format(stem), re.IGNORECASE), advice) for stem, advice in RULES[table].items()]


PHRASES = compiled("phrases", "{}")
BEGINNINGS = compiled("beginnings", r"\A(?:{})")
SPELLING = compiled("spelling", r"(?<![\w./-])\w*?{}\w*")


def findings(text: str) -> Iterator[str]:
    """Private words and British spelling in a text. Words with underscores are names of code."""
    plain = re.sub(r"`[^`]*`", "`", re.sub(r"\s+", " ", text))
    for pattern, advice in (*PHRASES, *SPELLING):
        for match in pattern.finditer(plain):
            if not re.search("_|[a-z][A-Z]", match[0]):
                yield f"{match[0]!r}: {advice}"


def long_sentences(text: str) -> Iterator[str]:
    """Sentences that are too long for one reading. Lists, with a comma for each three words, may be longer."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", re.sub(r"\s+", " ", text)))
    for sentence in re.split(r"(?<=[.!?])[\"')*]*\s+(?=[A-Z`*\"'(\[])", plain):
        words = re.findall(r"[\w'-]*[A-Za-z][\w'-]*", sentence)
        if len(words) > max(MOST_WORDS, 3 * sentence.count(",")):
            yield f"{len(words)} words in a sentence: {sentence[:60]}…"


def blocks(page: str) -> Iterator[tuple[int, str]]:
    """The prose of a page: line numbers and texts of paragraphs, list items, headings and cells, without code."""
    blank = re.compile(r"^( *)(```|~~~).*?^\1\2[^\n]*$|<!--.*?-->|^::: .*?$|^---\n.*?^---$", re.DOTALL | re.MULTILINE)
    page = blank.sub(lambda match: "\n" * match[0].count("\n"), page)
    start, held = 1, list[str]()
    for number, line in enumerate([*page.splitlines(), ""], 1):
        row, item = line.lstrip().startswith("|"), re.match(r"\s*([-*]|\d+\.|#+) ", line)
        if held and (not line.strip() or row or item):
            yield start, " ".join(held)
            held = []
        if row:
            yield from ((number, cell) for cell in line.strip().strip("|").split(" | "))
        elif line.strip():
            start, held = (start, held) if held else (number, held)
            held.append(line.strip())


def strings(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Public docstrings and the literals with words in them: line, text, and whether it is a docstring."""
    docstrings = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, *DEFINITIONS)) and ast.get_docstring(node):
            held = node.body[0].value  # type: ignore[attr-defined]
            docstrings.add(id(held))
            if isinstance(node, DEFINITIONS) and not node.name.startswith("_"):
                yield held.lineno, held.value, True
    skipped = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    skipped |= docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(parts), False
        elif isinstance(node, ast.Constant) and id(node) not in skipped and len(str(node.value).split()) > 1:
            yield node.lineno, str(node.value), False


def problems(path: Path) -> list[str]:
    """All findings of a page or a source, each with its line."""
    text = path.read_text(encoding="utf-8")
    found = list[tuple[int, str]]()
    if path.suffix == ".md":
        for line, block in blocks(text):
            found += [(line, finding) for finding in (*findings(block), *long_sentences(block))]
    else:
        for line, said, docstring in strings(ast.parse(text)):
            found += [(line, finding) for finding in findings(said)]
            if docstring or said[:1].isupper():
                found += [(line, f"begins {said[:20]!r}: {advice}") for rule, advice in BEGINNINGS if rule.match(said)]
    return [f"{path.relative_to(ROOT)}:{line}: {finding}" for line, finding in found]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_text_is_plain(path: Path) -> None:
    found = problems(path)
    if any(fnmatch(str(path.relative_to(ROOT)), pattern) for pattern in RULES["pending"]):
        assert found, "nothing is left to do: delete its line from `pending` in tests/words.toml"
        pytest.xfail(f"{len(found)} findings are left")
    assert not found, "\n".join(found)


if __name__ == "__main__":
    given = [Path(name).resolve() for name in sys.argv[1:]] or TEXTS
    print(*(line for path in given for line in problems(path)), sep="\n")
