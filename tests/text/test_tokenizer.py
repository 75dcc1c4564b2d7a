"""Tokenizers of Hugging Face's files: end tokens, chat templates, and files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import perframe as pf

tokenizers = pytest.importorskip("tokenizers")

WORDS = ["<s>", "</s>", "<user>", "<me>", "hello", "world", "good", "day", "!"]
TEMPLATE = """
{%- for message in messages %}
    {%- if message['role'] not in ('user', 'me') %}{{ raise_exception('no such role') }}{% endif %}
    {{- '<' + message['role'] + '> ' + message['content'] + ' ' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<me>' }}{% endif %}
"""


def write(folder: Path, **settings: Any) -> Path:
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: at for at, word in enumerate(WORDS)}, "<s>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(WORDS[:4])
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>", **settings}), encoding="utf-8")
    return folder


def test_words_and_ends(tmp_path: Path) -> None:
    coder = pf.text.Tokenizer(write(tmp_path))
    assert coder.encode("hello world") == [4, 5]
    assert coder.decode([4, 5, 1]) == "hello world"
    assert coder.ends == [1]
    (tmp_path / "genai_config.json").write_text('{"model": {"eos_token_id": [2, 3]}}', encoding="utf-8")
    assert pf.text.Tokenizer(tmp_path).ends == [2, 3]
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [1, 8]}', encoding="utf-8")
    assert pf.text.Tokenizer(tmp_path / "tokenizer.json").ends == [1, 8]


@pytest.mark.parametrize("place", ["settings", "named", "file"])
def test_a_conversation(tmp_path: Path, place: str) -> None:
    template: Any = {"settings": TEMPLATE, "named": [{"name": "default", "template": TEMPLATE}], "file": None}[place]
    write(tmp_path, chat_template=template)
    if place == "file":
        (tmp_path / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    coder = pf.text.Tokenizer(tmp_path)
    talk = [{"role": "user", "content": "hello !"}, {"role": "me", "content": "good day"}]
    assert coder.chat(talk) == [2, 4, 8, 3, 6, 7, 3]
    with pytest.raises(pf.ModelError, match="no such role"):
        coder.chat([{"role": "nobody", "content": "hello"}])


def test_a_template_reaches_nothing_outside(tmp_path: Path) -> None:
    write(tmp_path, chat_template="{{ messages.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(pf.ModelError, match="the chat template does not take these messages"):
        pf.text.Tokenizer(tmp_path).chat([{"role": "user", "content": "hello"}])
    write(tmp_path, chat_template="{{ messages.append(1) }}")
    with pytest.raises(pf.ModelError):
        pf.text.Tokenizer(tmp_path).chat([{"role": "user", "content": "hello"}])


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(pf.MissingFileError, match=r"tokenizer\.json"):
        pf.text.Tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(pf.ModelError, match="is not a tokenizer"):
        pf.text.Tokenizer(tmp_path)
    write(tmp_path)
    with pytest.raises(pf.InputError, match="has no chat template"):
        pf.text.Tokenizer(tmp_path).chat([{"role": "user", "content": "hello"}])
    for text in ("[1]", "{"):
        (tmp_path / "tokenizer_config.json").write_text(text, encoding="utf-8")
        with pytest.raises(pf.ModelError, match=r"tokenizer_config\.json"):
            pf.text.Tokenizer(tmp_path)


def test_an_alphabet_beside_a_model(tmp_path: Path) -> None:
    from perframe.text.tokenizer import coder_in

    file = tmp_path / "characters.json"
    file.write_text(json.dumps({"alphabet": "abc ", "end": " "}), encoding="utf-8")
    coder = coder_in(tmp_path)
    assert coder.encode("cab!") == [2, 0, 1] and coder.decode([1, 0]) == "ba" and coder.ends == [3]
    for wrong in ({}, {"alphabet": "aa"}, {"alphabet": 3}, {"alphabet": "ab", "end": "c"}):
        file.write_text(json.dumps(wrong), encoding="utf-8")
        with pytest.raises(pf.ModelError, match=r"characters\.json"):
            coder_in(tmp_path)
