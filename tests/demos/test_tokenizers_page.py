"""The program of docs/tokenizers.md prints what the page shows, and the network knows new sentences everywhere."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.resources import resource

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tokenizers.md"
NEW = {
    "en": ["Thank you very much for your help.", "I am looking for the museum.", "He works in a small office."],
    "de": ["Vielen Dank für Ihre Hilfe.", "Ich suche das Museum.", "Er arbeitet in einem kleinen Büro."],
    "fr": ["Merci beaucoup pour votre aide.", "Je cherche le musée.", "Il travaille dans un petit bureau."],
    "es": ["Muchas gracias por su ayuda.", "Estoy buscando el museo.", "Trabaja en una oficina pequeña."],
}


def test_the_program_prints_what_the_page_shows() -> None:
    ((program, shown),) = re.findall(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, PAGE.name, "exec"), {})
    assert printed.getvalue() == shown


@pytest.mark.parametrize("count", [1, 3])
def test_new_sentences_of_any_length(count: int, backend: str, backend_context: Any) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    folder = resource("assets") / "languages"
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    with pf.Worker(folder / "languages.perframe", backend, backend_context, strict=True) as worker:
        for language, sentences in NEW.items():
            found = tokenizer.encode_batch(sentences[:count])
            worker.schedule(tokens=[one.ids for one in found], mask=[one.attention_mask for one in found])
            probabilities = worker.peek_output("probabilities").download_to_array()
            assert [("en", "de", "fr", "es")[index] for index in probabilities.argmax(1)] == [language] * count
            np.testing.assert_allclose(probabilities.sum(1), 1, 1e-5)
