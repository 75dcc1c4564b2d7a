"""Texts as numbers and back: tokenizers of Hugging Face's files, or one character a token."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from perframe.errors import InputError, MissingExtraError, MissingFileError, ModelError

log = logging.getLogger("perframe")
Message = Mapping[str, Any]  # {"role": "user", "content": "..."}
REPLACEMENT = "\ufffd"  # the decoders' character for bytes that are no whole character yet


@runtime_checkable
class Coder(Protocol):
    """What `generate` needs of a tokenizer."""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of some tokens."""

    @property
    def ends(self) -> Sequence[int]:
        """The tokens that end a text."""


class Characters:
    """A tokenizer whose tokens are the characters of `alphabet`. Encoding drops all other characters, and
    warns of each once.
    """

    def __init__(self, alphabet: str, end: str = "") -> None:
        """The character `end`, if there is one, ends a text. Raises InputError for a character that comes twice."""
        if len(set(alphabet)) != len(alphabet):
            raise InputError(f"the alphabet {alphabet!r:.80} has a character twice")
        self.alphabet, self._dropped = alphabet, set[str]()
        self._numbers = {character: number for number, character in enumerate(alphabet)}
        self.ends = [self._numbers[character] for character in end]

    @classmethod
    def read(cls, file: Path) -> Characters:
        """Read the alphabet from characters.json: {"alphabet": ..., "end": ...}. Raises ModelError."""
        found = _settings(file)
        if not all(isinstance(found.get(name, ""), str) for name in ("alphabet", "end")) or not found.get("alphabet"):
            raise ModelError(f'{file} has no alphabet: it is {{"alphabet": "abc", "end": "c"}}')
        try:
            return cls(found["alphabet"], found.get("end", ""))
        except (InputError, KeyError) as error:
            raise ModelError(f"{file}: {error}") from error

    def encode(self, text: str) -> list[int]:
        """Return the numbers of the characters. A warning names those that are dropped, once each."""
        dropped = dict.fromkeys(character for character in text if character not in self._numbers)
        if new := [character for character in dropped if character not in self._dropped]:
            self._dropped.update(new)
            log.warning("the alphabet lacks %s: dropped from the text", ", ".join(map(repr, new[:20])))
        return [self._numbers[character] for character in text if character in self._numbers]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the characters of these numbers."""
        return "".join(self.alphabet[token] for token in tokens)


class Tokenizer:
    """A tokenizer of the file tokenizer.json, with the end tokens and the chat template that lie beside the file."""

    def __init__(self, path: str | Path) -> None:
        """`path` is the file or its folder. Raises MissingFileError, ModelError, and MissingExtraError."""
        given = Path(path)
        file = given / "tokenizer.json" if given.is_dir() else given
        if not file.is_file():
            raise MissingFileError(f"there is no file {file}: give the folder of a tokenizer.json, or a tokenizer")
        try:
            from tokenizers import Tokenizer as Encoder
        except ImportError as error:
            raise MissingExtraError("tokenizers", "tokenizers", "reading tokenizer.json") from error
        try:
            self._encoder = Encoder.from_file(str(file))
        except Exception as error:  # the library raises Exception itself
            raise ModelError(f"{file} is not a tokenizer: {error}") from error
        self._config = _settings(file.with_name("tokenizer_config.json"))
        self._template = file.with_name("chat_template.jinja")
        generation = _settings(file.with_name("generation_config.json"))
        self.ends = self._end_tokens({**genai_settings(file.parent), **generation})

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, with those that the file adds at its ends."""
        return list(self._encoder.encode(text).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of some tokens, without special ones."""
        return str(self._encoder.decode(list(tokens), skip_special_tokens=True))

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a conversation, up to where the model answers, by the file's chat template.

        Raises InputError if there is no template, and ModelError for one that fails.
        """
        text = self._template.read_text(encoding="utf-8") if self._template.is_file() else self._text_template()
        try:
            from jinja2 import TemplateError
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError as error:
            raise MissingExtraError("jinja2", "tokenizers", "a chat template") from error
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
        environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
        special = {name: self._special(name) for name in ("bos_token", "eos_token", "unk_token", "pad_token")}
        try:
            made = environment.from_string(text).render(messages=messages, add_generation_prompt=True, **special)
        except (TemplateError, TypeError, ValueError) as error:
            raise ModelError(f"the chat template does not take these messages: {error}") from error
        return list(self._encoder.encode(made, add_special_tokens=False).ids)

    def _text_template(self) -> str:
        found = self._config.get("chat_template")
        if isinstance(found, list):  # named ones
            named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
            found = named.get("default")
        if not isinstance(found, str):
            raise InputError("this tokenizer has no chat template: give the prompt as a text")
        return found

    def _special(self, name: str) -> str:
        found = self._config.get(name, "")
        return str(found.get("content", "")) if isinstance(found, dict) else str(found or "")

    def _end_tokens(self, generation: Mapping[str, Any]) -> list[int]:
        given = generation.get("eos_token_id")
        if isinstance(given, int):
            return [given]
        if isinstance(given, list) and all(isinstance(one, int) for one in given):
            return given
        found = self._encoder.token_to_id(self._special("eos_token"))
        return [] if found is None else [found]


def coder_in(folder: Path) -> Coder:
    """Return the tokenizer whose file lies in a folder: characters.json, or else tokenizer.json. That of a folder named
    onnx may lie beside the folder, as on Hugging Face.
    """
    characters = folder / "characters.json"
    if characters.is_file():
        return Characters.read(characters)
    is_beside = folder.name == "onnx" and not (folder / "tokenizer.json").is_file()
    return Tokenizer(folder.parent if is_beside else folder)


def genai_settings(folder: Path) -> Mapping[str, Any]:
    """Return what onnxruntime-genai's genai_config.json says of the model in a folder; nothing if there is no file."""
    found = _settings(folder / "genai_config.json").get("model")
    return found if isinstance(found, dict) else {}


def _settings(file: Path) -> dict[str, Any]:
    """Return the settings in a JSON file; none if there is no file. Raises ModelError."""
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{file} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ModelError(f"{file} holds no settings, but {type(found).__name__}")
    return found


def _refuse(message: str) -> None:
    raise ValueError(message)


class Pieces:
    """Decodes tokens one by one. A character of several tokens comes with the last of them.

    How a token looks depends on those before it, so that it is decoded together with the piece before.
    """

    def __init__(self, coder: Coder) -> None:
        self._coder, self._tokens = coder, list[int]()
        self._begin = self._told = 0  # the first token that is decoded, and the first that is not told yet

    def add(self, token: int) -> str:
        """Return the text that a token adds, which may be empty."""
        self._tokens.append(token)
        before = self._coder.decode(self._tokens[self._begin : self._told])
        after = self._coder.decode(self._tokens[self._begin :])
        if len(after) <= len(before) or after.endswith(REPLACEMENT):
            return ""
        self._begin, self._told = self._told, len(self._tokens)
        return after[len(before) :]

    def rest(self) -> str:
        """Return the text of tokens that make no whole character."""
        before = self._coder.decode(self._tokens[self._begin : self._told])
        after = self._coder.decode(self._tokens[self._begin :])
        self._told = len(self._tokens)
        return after[len(before) :]
