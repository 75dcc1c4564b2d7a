"""Changes of pages before mkdocs reads them: a list of all functions of `pf.functional`, links out of the site, and
flowcharts, which a script of ours draws, since mkdocs' theme would load one from elsewhere.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

MARK = "<!-- all functions -->"
FLOWCHART = re.compile(r"^```mermaid\nflowchart TD\n(.*?)^```$", re.S | re.M)
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
    """Let names in the cells of tables break after underscores, dots and slashes, since phones are narrow."""

    def with_breaks(code: re.Match[str]) -> str:
        return f"<code>{re.sub(r'(?<=[a-z0-9][_/.])(?=[a-zA-Z])', '<wbr>', code[1])}</code>"

    html = re.sub(r"<code>(?=--[^<]{,22}<)", '<code class="option">', html)  # no line ends with its hyphens
    return re.sub(
        r"<td[ >].*?</td>", lambda cell: re.sub(r"<code>([^<]*)</code>", with_breaks, cell[0]), html, flags=re.S
    )


def functions() -> str:
    """Each function with its signature and its docstring."""
    import perframe.functional as functional

    parts = []
    for name in sorted(functional.__all__, key=str.lower):
        function = getattr(functional, name)
        signature = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", str(inspect.signature(function)).replace("'", ""))
        code = f"```{{.python .doc-signature}}\n{name}{signature}\n```"
        parts.append(f"### `{name}` {{ #{name} }}\n\n{code}\n\n{inspect.getdoc(function)}\n")
    return "\n".join(parts)
