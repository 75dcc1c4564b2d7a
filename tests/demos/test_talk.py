"""Talk: answers fit question and weather, are alike on each backend, and become letters while frames go on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest
from PIL import Image

import perframe as pf
from perframe.command_line.commands.demo import load_demo
from perframe.host import App, KeyEvent, ManualClock, TextEvent
from perframe.resources import resource

OPTIONS = SimpleNamespace(budget=40.0, temperature=0.7, seed=0)


def part(name: str, package: str = "talk") -> Any:
    load_demo("talk")
    return import_module(f"perframe_demos.{package}.{name}")


@pytest.fixture(scope="module")
def grammar() -> dict[str, Any]:
    """The grammar from which the model learned."""
    namespace: dict[str, Any] = {}
    exec(resource("assets", "talk", "grammar.py").read_text(encoding="utf-8"), namespace)
    return namespace


@pytest.fixture
def keeper(backend: str, backend_context: Any) -> Iterator[Any]:
    found = part("keeper").Keeper(pf.BackendType(backend), backend_context, 4.0, 0.0)
    yield found
    found.release()


def likeliest(letters: Any, prompt: str) -> str:
    """The likeliest answer, by onnxruntime."""
    session = onnxruntime.InferenceSession(str(resource("assets", "talk", "talk.onnx")))
    names = [value.name for value in session.get_outputs()]
    past = {one.name: np.zeros((1, 4, 0, 32), np.float32) for one in session.get_inputs() if "past" in one.name}
    tokens, total, text = letters.encode(prompt), 0, ""
    while True:
        total += len(tokens)
        given = {"input_ids": np.array([tokens]), "position_ids": np.arange(total - len(tokens), total)[None]}
        logits, *caches = session.run(names, {**given, **past})
        past, tokens = dict(zip(past, caches, strict=True)), [int(logits[0, -1].argmax())]
        if tokens[0] in letters.ends:
            return text
        text += letters.decode(tokens)


@pytest.mark.quick(cases=0)
def test_the_likeliest_answer_is_onnxruntimes(keeper: Any) -> None:
    for weather, sign, question in (("fog", "≈", "how is the sea?"), ("storm", "⚡", "who are you?")):
        wanted = likeliest(keeper.letters, f"{sign}you: {question}\nkeeper:")
        assert "".join(keeper.answer(question, weather, 0)) == wanted
        assert len(wanted) > 20


@pytest.mark.slow
def test_answers_have_the_words_of_the_grammar_and_know_the_weather(grammar: dict[str, Any]) -> None:
    texts = [grammar[name] for name in ("WORDS", "SEEN", "TALKS", "UNKNOWN")]
    words = set(re.findall(r"[a-z]+", repr(texts)))
    phrase = re.compile(r"[a-z]+(?: [a-z]+)+")
    phrases = {weather: phrase.findall(seen["sea"]) for weather, seen in grammar["SEEN"].items()}
    keeper = part("keeper").Keeper(pf.BackendType.CPU, None, 4.0, 0.7)
    known, fitting = list[bool](), list[bool]()
    for weather in part("keeper").WEATHERS:
        for seed in range(8):
            answer = "".join(keeper.answer("how is the sea?", weather, seed))
            assert re.fullmatch(r" (the sea|it) is [a-z ,]+\..*", answer), answer
            known.append(set(re.findall(r"[a-z]+", answer)) <= words)
            named = {name for name, several in phrases.items() if any(one in answer for one in several)}
            fitting += [named == {weather}] * bool(named)
    keeper.release()
    assert np.mean(known) > 0.9
    assert len(fitting) > 20 and np.mean(fitting) > 0.9


def test_the_alphabet_is_that_of_the_grammar(grammar: dict[str, Any]) -> None:
    random, drawn = np.random.default_rng(0), ""
    for weather in grammar["WEATHERS"]:
        drawn += "".join("".join(grammar["talk"](random, weather)) for _ in range(800))
    keeper = part("keeper").Keeper(pf.BackendType.CPU, None, 4.0, 0.7)
    assert set(drawn) == set(keeper.letters.alphabet) == set(grammar["ALPHABET"])
    assert tuple(grammar["WEATHERS"]) == part("keeper").WEATHERS
    assert keeper.readable("Où? ❄\nIs IT $5") == "o? is it "
    keeper.release()


def played(backend: str, app: App, in_step: bool) -> Any:
    stage = part("stage", "common").Stage(pf.BackendType(backend), app.ctx, in_step, OPTIONS)
    return part("view").TalkView(stage)


@pytest.mark.slow
def test_a_window_and_a_recording_type_the_same_answer(backend: str, gl_context: Any) -> None:
    texts = []
    for in_step in (True, False):
        with App((160, 90), headless=True, clock=ManualClock(1 / 30), stop_on_error=True) as app:
            script = played(backend, app, in_step)
            app.run(script, frames=3)
            for _ in range(4000):
                app.loop_once()
                if script._number == 2 or (script._answer is not None and script._answer.done):
                    break
            texts.append(script.page.text)
            app.remove(script)
    assert texts[0] == texts[1]
    assert re.fullmatch(r"\nyou: good evening! how is the sea\?\nkeeper: .*\.", texts[0])


@pytest.mark.slow
def test_the_user_asks(backend: str, gl_context: Any) -> None:
    with App((160, 90), headless=True, clock=ManualClock(1 / 30), stop_on_error=True) as app:
        script = played(backend, app, True)
        app.add(script)
        app.add(part("stage", "common").End(None, None, keys=("escape",)))
        app.run(frames=70)
        said = script.page.text
        assert "\nkeeper:" in said and not script._answer.done
        for letter in "Who arq":
            app.post(TextEvent(letter))
        app.post(KeyEvent("q", True))  # the key of the letter, which ends other demos
        app.loop_once()
        assert script._answer.done  # the keeper listens
        app.post(KeyEvent("backspace", True))
        app.post(KeyEvent("tab", True))
        for letter in "e you?" + "!" * 100:
            app.post(TextEvent(letter))
        app.loop_once()
        assert script.typed == ("who are you?" + "!" * 100)[: part("keeper").LONGEST]
        for _ in range(100):
            app.post(KeyEvent("backspace", True))
        app.loop_once()
        assert script.typed == "" and script.page.text.endswith("\nyou: ")
        for letter in "who are you?":
            app.post(TextEvent(letter))
        app.post(KeyEvent("enter", True))
        app.run(frames=200)
        asked, _, answer = script.page.text[len(said) :].rpartition("\nkeeper: ")
        assert asked.endswith("\nyou: who are you?") and answer.startswith("i am the keeper")
        assert script.weather == 1 and script._mixed[1] > 0.9
        before = script.page.text
        app.run(frames=60)
        assert script.page.text == before  # the demo asks no more


def test_words_that_do_not_fit_move_down(gl_context: Any) -> None:
    page_of = part("page")
    page = page_of.Page(gl_context, "abc ")
    page.begin()
    page.write("abc " * 30, 0.0, 1.0)
    records = page._records[: page._count]
    widths = np.array([page._widths[int(glyph)] for glyph in records[:, 2]])
    assert (records[:, 0] + widths)[records[:, 2] != 3].max() <= page_of.ACROSS
    starts = [records[records[:, 1] == line][0] for line in range(int(records[:, 1].max()) + 1)]
    assert len(starts) > 2 and all(start[0] == 0 and start[2] == 0 for start in starts)
    mark = page.mark
    page.begin()
    page.write("c" * 200, 0.0, 1.0)
    assert (page._records[: page._count, 0]).max() < page_of.ACROSS
    page.cut(mark)
    assert page._count == 120 and page.text == "\n" + "abc " * 30
    for _ in range(40):
        page.begin()
        page.write("ab " * 80, 0.0, 1.0)
    assert page._count <= page_of.MOST
    page.release()


@pytest.mark.slow  # on a cold cache
def test_it_writes_a_picture(backend: str, gl_context: Any, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "talk.png"
    argv = ["--headless", "--backend", backend, "--frames", "20", "--save", str(out)]
    assert load_demo("talk")(argv) == 0
    assert f"the picture is in {out}" in capsys.readouterr().out
    picture = np.asarray(Image.open(out).convert("RGB")).astype(int)
    assert picture.shape == (720, 1280, 3)
    assert (picture[370:420, 70:400].max(2) > 130).mean() > 0.03  # letters
    assert picture[600:, 900:1200].mean() < 40 < picture[300:500, 1040:1090].mean()  # the rock, the tower
    with pytest.raises(SystemExit):
        load_demo("talk")(["--budget", "-1"])
