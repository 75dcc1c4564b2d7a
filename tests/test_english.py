"""Plain English: nothing that words.toml lists. `python tests/test_english.py [FILE...]` lists the findings."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RULES = tomllib.loads((ROOT / "tests" / "words.toml").read_text(encoding="utf-8"))
MOST_WORDS = 35
PAGES = [*map(ROOT.joinpath, ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *(ROOT / "docs").rglob("*.md")]
TEXTS = sorted(path for path in [*PAGES, *(ROOT / "runtime" / "perframe").rglob("*.py")] if path.exists())
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
CODE = re.compile(r"^( *)(```|~~~).*?^\1\2[^\n]*$|<!--.*?-->|</?[a-z][^>]*>|^::: .*?$|^---\n.*?^---$", re.S | re.M)


def compiled(table: str, form: str) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(form.format(stem), re.IGNORECASE), advice) for stem, advice in RULES[table].items()]


PHRASES = [*compiled("phrases", "{}"), *compiled("spelling", r"(?<![./-])\b\w*{}\w*")]
ANY = re.compile("|".join([*RULES["phrases"], *RULES["spelling"]]), re.IGNORECASE)
BEGINNINGS = compiled("beginnings", r"\A(?:{})")
PLANTED = [(suffix, text) for suffix, texts in RULES["planted"].items() for text in texts]


def findings(text: str) -> Iterator[str]:
    """Private words and British spelling. Words with underscores or capitals within them are names of code."""
    plain = re.sub(r"`[^`]*`", "`", re.sub(r"\s+", " ", text))
    for pattern, advice in PHRASES if ANY.search(plain) else ():
        found = (match[0] for match in pattern.finditer(plain))
        yield from (f"{words!r}: {advice}" for words in found if not re.search("_|[a-z][A-Z]", words))


def long_sentences(text: str) -> Iterator[str]:
    """Sentences that are too long for one reading. Lists, with a comma for each three words, may be longer."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", text))
    for sentence in re.split(r"(?<=[.!?])[\"')*]*\s+(?=[A-Z`*\"'(\[])", plain):
        words = re.findall(r"[\w'-]*[A-Za-z][\w'-]*", sentence)
        if len(words) > max(MOST_WORDS, 3 * sentence.count(",")):
            yield f"{len(words)} words in a sentence: {sentence[:60]}…"


def blocks(page: str) -> Iterator[tuple[int, str]]:
    """The prose of a page: line numbers and texts of paragraphs, list items, headings and cells, without code."""
    start, held = 1, list[str]()
    for number, line in enumerate([*CODE.sub(lambda code: "\n" * code[0].count("\n"), page).splitlines(), ""], 1):
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
    nodes = list(ast.walk(tree))
    skipped = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, (ast.Module, *DEFINITIONS)) and ast.get_docstring(node):
            held = node.body[0].value  # type: ignore[attr-defined]
            skipped.add(id(held))
            if isinstance(node, DEFINITIONS) and not node.name.startswith("_"):
                yield held.lineno, held.value, True
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(parts), False
        elif isinstance(node, ast.Constant) and id(node) not in skipped and len(str(node.value).split()) > 1:
            yield node.lineno, str(node.value), False


def problems(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """All findings of a page or a source, each with its line."""
    for line, block in blocks(text) if suffix == ".md" else ():
        yield from ((line, finding) for finding in (*findings(block), *long_sentences(block)))
    for line, said, is_docstring in strings(ast.parse(text)) if suffix == ".py" else ():
        yield from ((line, finding) for finding in findings(said))
        if is_docstring or said[:1].isupper():
            yield from ((line, f"{said[:20]!r}: {advice}") for rule, advice in BEGINNINGS if rule.match(said))


def listed(path: Path) -> list[str]:
    found = problems(path.read_text(encoding="utf-8"), path.suffix)
    return [f"{path.relative_to(ROOT)}:{line}: {finding}" for line, finding in found]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_text_is_plain(path: Path) -> None:
    found = listed(path)
    if found and path.relative_to(ROOT).as_posix() in RULES["pending"]:
        pytest.xfail(f"{len(found)} findings are left")
    assert not found, "\n".join(found)


def test_no_pending_text_is_plain_already() -> None:
    assert not [name for name in RULES["pending"] if not listed(ROOT / name)]


@pytest.mark.parametrize(("suffix", "text"), PLANTED)
def test_a_planted_sentence_is_found(suffix: str, text: str) -> None:
    assert len(list(problems(text, f".{suffix}"))) == 1


if __name__ == "__main__":
    for path in [Path(name).resolve() for name in sys.argv[1:]] or TEXTS:
        print("".join(f"{line}\n" for line in listed(path)), end="")
