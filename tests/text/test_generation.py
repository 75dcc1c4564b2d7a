"""Text token by token: with a model whose next token is the sum of all tokens so far."""

from __future__ import annotations

import asyncio
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from perframe import functional as F

LETTERS = pf.text.Characters("abcdefghijk ", end=" ")
COUNT = len(LETTERS.alphabet)


def adding(mask: bool = False, caches: bool = True, batch: int = 1) -> pf.Model:
    """A decoder: the next token is the sum of all tokens. The second likeliest is one more, the third two more."""
    graph = pf.FunctionalGraph("adding")
    ids = graph.add_input("int64", (batch, "length"), "input_ids")
    rows = F.reshape(F.float(ids), (batch, 1, -1, 1))
    if caches:
        past = graph.add_input("float32", (batch, 1, "past", 1), "past_key_values.0.key")
        rows = F.concat([past, rows], 2)
        graph.add_output(rows, "present.0.key")
    total = F.reduce_sum(rows, [1, 2, 3], False)
    if mask:
        total = total + F.float(F.reduce_sum(graph.add_input("int64", (batch, "total"), "attention_mask"), 1)) * 0.0
        total = total + F.float(F.reduce_sum(graph.add_input("int64", (batch, "length"), "position_ids"), 1)) * 0.0
    each = np.arange(COUNT, dtype=np.float32)
    apart = F.remainder(F.unsqueeze(total, 1) * -1.0 + each, float(COUNT))  # 0 for the next token
    logits = F.unsqueeze(30.0 - apart * 2.0, 1) + F.unsqueeze(F.float(ids), 2) * 0.0
    return graph.compile(logits=logits)


def flat() -> pf.Model:
    graph = pf.FunctionalGraph("flat")
    return graph.compile(logits=F.float(graph.add_input("int64", (1, "length"), "input_ids")))


def continued(prompt: str, count: int) -> str:
    tokens = LETTERS.encode(prompt)
    for _ in range(count):
        tokens.append(sum(tokens) % COUNT)
        if tokens[-1] in LETTERS.ends:
            return LETTERS.decode(tokens[len(prompt) : -1])
    return LETTERS.decode(tokens[len(prompt) :])


@pytest.mark.parametrize("slice_size", [1, 2, 3, 100])
def test_the_likeliest_tokens(backend: str, slice_size: int) -> None:
    for mask, caches in ((True, True), (False, True), (False, False)):
        made = pf.text.generate(
            adding(mask, caches), "bc", tokenizer=LETTERS, backend=backend, max_tokens=6, slice_size=slice_size
        )
        pieces = list(made)
        assert pieces == list(continued("bc", 6))
        assert made.text == "".join(pieces) and made.done


def test_a_worker_begins_again_and_stays(backend: str) -> None:
    model = adding()
    with pf.Worker(model, backend, carry=pf.text.carry_of(model)) as worker:
        for prompt in ("bc", "cde", "bc"):
            made = pf.text.generate(worker, prompt, tokenizer=LETTERS, max_tokens=5)
            assert "".join(made) == continued(prompt, 5)
        worker.reset()


@pytest.mark.quick(cases=0)
def test_draws_follow_their_seed(backend: str) -> None:
    def drawn(seed: int, **choice: Any) -> str:
        made = pf.text.generate(
            adding(), "bcd", tokenizer=LETTERS, backend=backend, max_tokens=12, temperature=1.5, seed=seed, **choice
        )
        return "".join(made)

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(6)}) > 1
    assert {drawn(seed, top_k=1) for seed in range(4)} == {continued("bcd", 12)}
    assert {drawn(seed, top_p=1e-6) for seed in range(4)} == {continued("bcd", 12)}
    assert len({drawn(seed, top_k=0) for seed in range(4)}) > 1


@pytest.mark.slow
def test_draws_have_the_shares_that_they_should() -> None:
    """Of the three likeliest tokens, 2 apart: e^0, e^-2 and e^-4 at temperature 1."""
    model, counts = adding(), np.zeros(3)
    with pf.Worker(model, carry=pf.text.carry_of(model)) as worker:
        for seed in range(400):
            made = pf.text.generate(worker, "b", tokenizer=LETTERS, max_tokens=1, temperature=1, seed=seed, top_k=3)
            counts[(LETTERS.encode("".join(made))[0] - 1) % COUNT] += 1
    shares = np.exp([0, -2, -4]) / np.exp([0, -2, -4]).sum()
    np.testing.assert_allclose(counts / 400, shares, atol=0.06)


def test_tokens_that_came_before_become_less_likely(backend: str) -> None:
    made = pf.text.generate(adding(), "b", tokenizer=LETTERS, backend=backend, max_tokens=8, repetition=1e9)
    tokens = LETTERS.encode("b")
    while len(tokens) <= 8:
        likely = [(sum(tokens) + more) % COUNT for more in range(COUNT)]
        tokens.append(next(token for token in likely if token not in tokens))
        if tokens[-1] in LETTERS.ends:
            tokens.pop()
            break
    assert "".join(made) == LETTERS.decode(tokens[1:])


def test_it_is_shown_with_its_text() -> None:
    made = pf.text.generate(adding(), "bc", tokenizer=LETTERS, max_tokens=6)
    assert repr(made) == "<generation, not begun: 0 tokens, ''>"
    pieces = iter(made)
    first = next(pieces)
    assert repr(made) == f"<generation, under way: 1 token, {first!r}>"
    whole = first + "".join(pieces)
    assert repr(made) == f"<generation, done: 6 tokens, {whole!r}>"


def test_a_stop_is_not_told() -> None:
    whole = continued("bc", 6)
    for stop in (whole[2:4], [whole[4], "zz"], [whole[1:3] + "zz", whole[3:5]]):
        made = pf.text.generate(adding(), "bc", tokenizer=LETTERS, max_tokens=6, stop=stop)
        found = "".join(made)
        ends = [whole.find(one) for one in ([stop] if isinstance(stop, str) else stop) if one in whole]
        assert found == whole[: min(ends)]
    assert "".join(pf.text.generate(adding(), "bc", tokenizer=LETTERS, max_tokens=6, stop=whole[-1] + "z")) == whole


class Bytes:
    """A tokenizer whose tokens are bytes of UTF-8: a letter may take four of them."""

    ends: tuple[int, ...] = ()

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, tokens: Any) -> str:
        return bytes(tokens).decode(errors="replace")


def test_letters_of_several_tokens_come_whole() -> None:
    from perframe.text.tokenizer import Pieces

    for text in ("aé€𝄞b", "日本語", "é"):
        pieces, coder = Pieces(Bytes()), Bytes()
        made = [pieces.add(token) for token in coder.encode(text)]
        assert "".join(made) == text and "\ufffd" not in "".join(made)
        assert pieces.rest() == ""
    pieces = Pieces(Bytes())
    assert [pieces.add(token) for token in b"a\xe2\x82"] == ["a", "", ""]
    assert pieces.rest() == "\ufffd"


def test_in_an_app_the_frames_go_on(backend: str) -> None:
    class Typist(pf.Script):
        text, frames = "", 0

        async def start(self) -> None:
            made = pf.text.generate(
                adding(), "bc", tokenizer=LETTERS, backend=backend, max_tokens=6, budget_ms=2, ctx=self.app.ctx
            )
            async for piece in made:
                self.text += piece

        def update(self, frame: pf.Frame) -> None:
            self.frames += 1

    script = Typist()
    pf.App(size=(32, 32), headless=True).run(script, frames=400)
    assert script.text == continued("bc", 6) and script.frames == 400


def test_it_runs_in_any_event_loop_and_can_be_cancelled() -> None:
    async def some() -> str:
        made, text = pf.text.generate(adding(), "bc", tokenizer=LETTERS, max_tokens=50), ""
        async for piece in made:
            text += piece
            if len(text) == 3:
                made.cancel()
        assert made.done
        return text

    assert asyncio.run(some()) == continued("bc", 3)
    made = pf.text.generate(adding(), "bc", tokenizer=LETTERS, max_tokens=50)
    for count, _ in enumerate(made, 1):
        if count == 2:
            made.cancel()
    assert made.text == continued("bc", 2) and made.done
    with pytest.raises(pf.InputError, match="iterated once"):
        next(iter(made))


def test_two_generations_on_one_worker() -> None:
    model = adding()
    with pf.Worker(model, carry=pf.text.carry_of(model)) as worker:
        first = iter(pf.text.generate(worker, "bc", tokenizer=LETTERS))
        next(first)
        second = pf.text.generate(worker, "cd", tokenizer=LETTERS, max_tokens=4)
        with pytest.raises(pf.InputError, match="another generation began on this worker"):
            list(first)
        assert "".join(second) == continued("cd", 4)


def test_nothing_holds_a_worker_after_its_text() -> None:
    model = adding()
    worker = pf.Worker(model, carry=pf.text.carry_of(model))
    assert "".join(pf.text.generate(worker, "bc", tokenizer=LETTERS, max_tokens=4)) == continued("bc", 4)
    gone = weakref.ref(worker)
    del worker
    collect_garbage()
    assert gone() is None


@pytest.mark.parametrize(
    "file, settings",
    [
        ("onnx/model.onnx", {}),
        ("onnx/model_q4.onnx", {}),
        ("talk.onnx", {}),
        ("decoder.onnx", {"model": {"decoder": {"filename": "decoder.onnx"}}}),
    ],
)
def test_a_folder_with_a_model(file: str, settings: Any, tmp_path: Any) -> None:
    """Of Hugging Face, or of onnxruntime-genai, whose settings name the decoder."""
    (tmp_path / file).parent.mkdir(exist_ok=True)
    pf.save(adding(), tmp_path / file)
    (tmp_path / "characters.json").write_text('{"alphabet": "abcdefgh"}', encoding="utf-8")
    if settings:
        pf.save(adding(), tmp_path / "encoder.onnx")
        (tmp_path / "genai_config.json").write_text(json.dumps(settings), encoding="utf-8")
    expected = list(pf.text.generate(tmp_path, "b", max_tokens=3))
    assert expected == list(pf.text.generate(adding(), "b", tokenizer=LETTERS, max_tokens=3))


def test_a_model_in_memory_takes_the_characters_of_a_bundled_one_or_of_a_folder(tmp_path: Any) -> None:
    (tmp_path / "characters.json").write_text('{"alphabet": "abcdefghijk "}', encoding="utf-8")
    expected = list(pf.text.generate(adding(), "b", tokenizer=LETTERS, max_tokens=3))
    assert expected == list(pf.text.generate(adding(), "b", tokenizer=tmp_path, max_tokens=3))
    talk = list(pf.text.generate("talk", "☀you: hi!\nkeeper:", max_tokens=5))
    assert talk == list(pf.text.generate(pf.load("talk"), "☀you: hi!\nkeeper:", tokenizer="talk", max_tokens=5))


def test_a_folder_with_several_models_is_refused(tmp_path: Any) -> None:
    (tmp_path / "onnx").mkdir()
    for name in ("model_q4", "model_fp16"):
        pf.save(adding(), tmp_path / "onnx" / f"{name}.onnx")
    with pytest.raises(pf.InputError, match=r"several models: .* onnx.model_fp16\.onnx, onnx.model_q4\.onnx"):
        pf.text.generate(tmp_path, "b", tokenizer=LETTERS)


def test_a_tokenizer_beside_the_folder_onnx(tmp_path: Any) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    (tmp_path / "onnx").mkdir()
    pf.save(adding(), tmp_path / "onnx" / "model_q4.onnx")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({letter: at for at, letter in enumerate("abcdefgh")}, "a"))
    made.save(str(tmp_path / "tokenizer.json"))
    assert list(pf.text.generate(tmp_path / "onnx" / "model_q4.onnx", "b", max_tokens=2))


def test_wrong_input(tmp_path: Path) -> None:
    model = adding()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"prompt": ""}, "has no tokens"),
        ({"prompt": "zzz"}, "has no tokens"),
        ({"prompt": [{"role": "user", "content": "b"}]}, "needs the chat template"),
        ({"temperature": -1}, "temperature is at least 0"),
        ({"top_p": 0}, "top_p is over 0"),
        ({"top_k": 1.5}, "top_k is a number of tokens"),
        ({"repetition": float("nan")}, "repetition is a number"),
        ({"prompt": [1, -1]}, "the tokens of a prompt are ints of at least 0"),
        ({"prompt": ["b", 1]}, "the tokens of a prompt are ints"),
        ({"prompt": 5}, "a prompt is a text, tokens or messages, not int"),
        ({"seed": -1}, "seed is an int of at least 0"),
        ({"budget_ms": -1}, "budget_ms is a number of milliseconds of at least 0"),
        ({"backend": "gpu"}, "there is no backend 'gpu'"),
        ({"max_tokens": 0}, "max_tokens is a number of tokens, at least 1"),
        ({"stop": [""]}, "stop is a text or several"),
        ({"tokenizer": None}, "give tokenizer=.*a bundled model, such as 'talk'"),
        ({"tokenizer": 3}, "a tokenizer has encode, decode and ends, unlike int"),
        ({"inputs": {"hidden": 1}}, "has no further input 'hidden'; its further inputs are none"),
        ({"source": pf.Worker(model)}, r"does not carry 'past_key_values.0.key': make it with carry=pf.text.carry_of"),
        ({"source": adding(batch=2)}, r"'input_ids' has the shape \(2, length\), and got \(1, 1\)"),
        (
            {"source": flat()},
            r"the output 'logits' is \(1, 1\), and scores of the next token are \(1, length, tokens\)",
        ),
    ]
    for changes, message in wrong:
        given = {"source": model, "prompt": "b", "tokenizer": LETTERS, **changes}
        with pytest.raises(pf.InputError, match=message):
            list(pf.text.generate(given.pop("source"), given.pop("prompt"), **given))
    with pytest.raises(pf.InputError, match="is not a language model"):
        pf.text.generate("digits", "b")
    with pytest.raises(pf.MissingFileError, match="has no model"):
        pf.text.generate(tmp_path, "b", tokenizer=LETTERS)
    with pytest.raises(pf.MissingFileError, match="there is no model file"):
        pf.text.generate(tmp_path / "model.onnx", "b")
    pf.save(model, tmp_path / "model.perframe")
    with pytest.raises(pf.MissingFileError, match=r"there is no file .*tokenizer\.json"):
        pf.text.generate(tmp_path / "model.perframe", "b")
    with pytest.raises(pf.InputError, match="has a character twice"):
        pf.text.Characters("abca")


def test_a_character_that_the_alphabet_lacks_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    letters = pf.text.Characters("abc")
    assert letters.encode("aXbXY") == [0, 1] and letters.encode("Xc") == [2]
    assert [record.message for record in caplog.records] == ["the alphabet lacks 'X', 'Y': dropped from the text"]
