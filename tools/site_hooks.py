"""Changes of the pages that mkdocs builds.

Before mkdocs reads a page: a list of all functions of `pf.functional`, links out of the site, and flowcharts. A script
of ours draws flowcharts, since mkdocs' theme would load one from elsewhere. After that: places where code may break.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

MARK = "<!-- all functions -->"
FLOWCHART = re.compile(r"^```mermaid\nflowchart TD\n(.*?)^```$", re.S | re.M)
CELL = re.compile(r"<t[dh][ >].*?</t[dh]>", re.S)
CODE = re.compile(r"(?<!</span>)<code>(?:[^<>]|<wbr>)*</code>")  # within a sentence or a cell: blocks have spans
UNIT = re.compile(r"<code>.*?</code>|(?<=\d) (?=(?:%|[mµ]?s|dB|[KMG]i?B)(?!\w))")  # the space before a unit, and code
OPTION = re.compile(r"--[a-z][a-z-]*")
BREAK = re.compile(
    r"(?<=[\w)])(?=\.[A-Za-z_]{3})|(?<=[a-zA-Z0-9]_)(?=[a-zA-Z0-9])|(?<=[/=(])(?=[^\s)=]{2})|(?<=\w:)(?=\w)"
)
LONG_WORD = re.compile(r"[^\s<>]{21,}")
LONGEST = 80  # characters of a signature's line
DAGRE = Path(__file__).resolve().parents[1] / "runtime" / "perframe" / "inspection" / "page" / "dagre.min.js"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the layout of graphs that the package ships."""
    files.append(File.generated(config, DAGRE.name, abs_src_path=str(DAGRE)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put a list of all functions where a page has the mark, and draw flowcharts. Links to files that are not pages
    keep their texts.
    """
    markdown = re.sub(r"\[([^\]]+)\]\((?:\.\./)+(?:demos|assets|tools|runtime)\b[^)]*\)", r"`\1`", markdown)
    if FLOWCHART.search(markdown):
        scripts = (get_relative_url(name, page.url) for name in (DAGRE.name, "flowcharts.js"))
        tags = "".join(f'<script src="{url}"></script>\n' for url in scripts)
        markdown = FLOWCHART.sub(r'<pre class="flowchart">\n\1</pre>\n', markdown) + f"\n{tags}"
    return markdown.replace(MARK, functions()) if MARK in markdown else markdown


def on_page_content(html: str, **_: Any) -> str:
    """Keep options such as --out in one piece. In tables, let long names break at their joints, unescape `\\|`, and
    keep numbers with their units.
    """

    def in_cell(code: re.Match[str]) -> str:
        return LONG_WORD.sub(lambda word: BREAK.sub("<wbr>", word[0]), code[0].replace("\\|", "|"))

    def cell(found: re.Match[str]) -> str:
        return UNIT.sub(lambda one: "&nbsp;" if one[0] == " " else one[0], CODE.sub(in_cell, found[0]))

    def option(code: re.Match[str]) -> str:
        return OPTION.sub(r'<span class="option">\g<0></span>', code[0])

    return CODE.sub(option, CELL.sub(cell, html))


def on_post_build(config: MkDocsConfig) -> None:
    """Delete the theme's page for missing addresses: its links hold at the root of a host alone."""
    (Path(config.site_dir) / "404.html").unlink(missing_ok=True)


def functions() -> str:
    """Each function with its signature and its docstring."""
    import perframe.functional as functional

    parts = []
    for name in sorted(functional.__all__, key=str.lower):
        function = getattr(functional, name)
        call = f"{name}{signature(function)}"
        parts.append(f"### `{name}` {{ #{name} }}\n\n```python\n{call}\n```\n\n{inspect.getdoc(function)}\n")
    return "\n".join(parts)


class Text(str):
    """A text whose repr has no quotes, for `inspect`."""

    __repr__ = str.__str__


def signature(function: Any) -> str:
    """The signature with short names of types. A long one has a line for each parameter."""
    given = inspect.signature(function)
    parameters = []
    for one in given.parameters.values():
        has_default = one.default is not one.empty
        default = json.dumps(str(one.default)) if isinstance(one.default, str) else repr(one.default)
        annotation = Text(re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", one.annotation).replace("'", '"'))
        parameters.append(one.replace(annotation=annotation, default=Text(default) if has_default else one.empty))
    result = str(given.replace(parameters=parameters, return_annotation=Text(given.return_annotation)))
    if len(function.__name__ + result) <= LONGEST:
        return result
    inside, _, after = result[1:].rpartition(") -> ")
    lines = re.split(r", (?![^\[]*\])(?![^(]*\))", inside)  # not within brackets
    return "(\n" + "".join(f"    {line},\n" for line in lines) + f") -> {after}"
