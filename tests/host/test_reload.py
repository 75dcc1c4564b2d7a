"""Scripts and shaders that are edited while they run: the state is kept, and errors are shown until they are mended."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import perframe as pf
from importers.litert_files import File
from perframe.errors import InputError
from perframe.host import App, ManualClock
from perframe.host.reload import run_changes
from perframe.host.surface import BlankSurface

SCRIPT = """
    import perframe as pf

    FACTOR = 2
    log = []

    class Base(pf.Script):
        def speak(self):
            return "base"

    class Demo(Base):
        def start(self):
            self.count = 0

        def update(self, frame):
            self.count += 1
            log.append((self.count, FACTOR, self.speak()))

    def other(frame):
        log.append("other")
"""


@pytest.fixture
def edited(tmp_path: Path) -> Iterator[Callable[..., ModuleType]]:
    """Writes a module and imports it; or writes it anew."""
    path = tmp_path / "edited_script.py"

    def write(text: str, *replacements: tuple[str, str]) -> ModuleType:
        text = textwrap.dedent(text)
        for before, after in replacements:
            assert before in text
            text = text.replace(before, after)
        path.write_text(text, encoding="utf-8")
        if path.stem not in sys.modules:
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
        return sys.modules[path.stem]

    yield write
    sys.modules.pop(path.stem, None)


@pytest.fixture
def app() -> Iterator[App]:
    with App(surface=BlankSurface((64, 48)), clock=ManualClock(0.1), reload=True) as app:
        yield app


def loop_until(app: App, condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, list(map(str, app.failures))
        app.loop_once()
        time.sleep(0.01)


def test_a_script_runs_new_code_and_keeps_its_state(app: App, edited: Callable[..., Any]) -> None:
    module = edited(SCRIPT)
    demo, log = module.Demo(), module.log
    app.run(demo, module.other, frames=3)
    assert log[-2:] == [(3, 2, "base"), "other"]
    edited(SCRIPT, ('"base"', '"new"'), ("FACTOR = 2", "FACTOR = 7"), ('"other"', '"another"'))
    loop_until(app, lambda: "another" in log)
    count, factor, word = log[-2]
    assert count > 3 and factor == 7 and word == "new", "and a class whose base has changed is new too"
    assert module.log is log and isinstance(demo, module.Demo) and not list(app.failures)


def test_errors_are_shown_until_they_are_mended_and_the_old_code_goes_on(
    app: App, edited: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    module = edited(SCRIPT)
    app.run(module.Demo(), frames=1)
    edited(SCRIPT, ("self.count += 1", "self.count += += 1"))
    loop_until(app, lambda: list(app.failures))
    (failure,) = app.failures
    assert failure.where == "edited_script.py" and "SyntaxError" in failure.message and "line 16" in failure.message
    before = module.log[-1][0]
    app.run(frames=60)  # longer than errors of hooks are shown
    assert module.log[-1][0] == before + 60
    assert tuple(app.surface.read_pixels()[-1, 0]) == (96, 16, 24)
    edited(SCRIPT, ("self.count += 1", "self.count += 1000"))
    loop_until(app, lambda: module.log[-1][0] > 1000)
    assert not list(app.failures)
    app.loop_once()
    assert app.surface.read_pixels().max() == 0


def test_a_hook_that_loses_its_parameter_is_shown_and_the_old_code_goes_on(
    app: App, edited: Callable[..., Any]
) -> None:
    module = edited(SCRIPT)
    demo = module.Demo()
    app.run(demo, frames=1)
    edited(SCRIPT, ("def update(self, frame)", "def update(self)"))
    loop_until(app, lambda: list(app.failures))
    (failure,) = app.failures
    assert failure.where == "edited_script.py" and "Demo.update has the parameters self (" in failure.message
    before = module.log[-1][0]
    app.loop_once()
    assert module.log[-1][0] == before + 1
    edited(SCRIPT, ("self.count += 1", "self.count += 1000"))
    loop_until(app, lambda: module.log[-1][0] > 1000)
    assert not list(app.failures) and type(demo) is module.Demo


def test_a_file_that_fails_as_it_runs_leaves_the_module_as_it_was(app: App, edited: Callable[..., Any]) -> None:
    module = edited(SCRIPT)
    app.run(module.Demo(), frames=1)
    edited(SCRIPT, ("FACTOR = 2", "FACTOR = 3"), ("class Demo(Base)", "class Demo(Missing)"))
    loop_until(app, lambda: list(app.failures))
    assert module.FACTOR == 2 and "Missing" in next(iter(app.failures)).message


def test_a_script_that_could_not_start_starts_again_when_it_is_mended(app: App, edited: Callable[..., Any]) -> None:
    module = edited(SCRIPT, ("self.count = 0", "self.count = 1 / 0"))
    app.run(module.Demo(), lambda: None, frames=2)
    assert module.log == [] and next(iter(app.failures)).where == "Demo.start"
    edited(SCRIPT)
    loop_until(app, lambda: module.log)
    assert module.log[0] == (1, 2, "base") and not list(app.failures)


def test_a_class_that_is_gone_is_an_error_and_the_script_goes_on(app: App, edited: Callable[..., Any]) -> None:
    module = edited(SCRIPT)
    script = module.Demo()
    app.run(script, frames=1)
    run_only = textwrap.dedent(SCRIPT).replace("class Demo(", "class Renamed(")
    del module.Demo
    edited(run_only)
    loop_until(app, lambda: list(app.failures))
    assert "has no Demo any more" in next(iter(app.failures)).message
    count = script.count
    app.loop_once()
    assert script.count == count + 1


@pytest.mark.quick(cases=0)
def test_a_watched_file_calls_back_and_its_errors_are_shown(app: App, tmp_path: Path) -> None:
    shader, compiled = tmp_path / "sky.glsl", []
    shader.write_text("blue")

    def compile_shader(path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        if text == "wrong":
            raise ValueError("sky.glsl does not compile")
        compiled.append(text)

    script = pf.Script()
    app.add(script)
    app.watch(shader, compile_shader, script)
    assert compiled == ["blue"]
    shader.write_text("wrong")
    loop_until(app, lambda: list(app.failures))
    assert compiled == ["blue"] and "does not compile" in next(iter(app.failures)).message
    (tmp_path / "new").write_text("red")
    (tmp_path / "new").replace(shader)  # as editors do
    loop_until(app, lambda: len(compiled) == 2)
    assert compiled[1] == "red" and not list(app.failures)
    app.remove(script)
    shader.write_text("green")
    time.sleep(0.3)
    app.run(frames=3)
    assert len(compiled) == 2


def test_without_reload_a_watched_file_calls_back_once(tmp_path: Path) -> None:
    path, seen = tmp_path / "sky.glsl", []
    path.write_text("blue")
    with App(surface=BlankSurface((4, 3)), clock=ManualClock(0.1)) as app:
        app.watch(path, seen.append)
        path.write_text("red")
        app.run(frames=3)
    assert seen == [path]


@pytest.mark.quick(cases=0)
def test_a_worker_takes_the_model_of_a_changed_file(
    app: App, tmp_path: Path, backend: str, backend_context: Any
) -> None:
    """A half-written file, and one with other inputs, leave the old model where it is, and show the error."""
    path, other, x = tmp_path / "net.perframe", tmp_path / "other.perframe", np.ones((1, 4), np.float32)

    def save(factor: float, file: Path, width: int = 4) -> bytes:
        graph = pf.FunctionalGraph(f"times {factor}")
        pf.save(graph.compile(y=graph.add_input("float32", (1, width), "x") * factor), file)
        return file.read_bytes()

    save(2, path)
    with pf.Worker(path, backend, backend_context) as worker:  # type: ignore[arg-type]
        found = list[float]()

        def update() -> None:
            found.append(float(worker.schedule(x).peek_output().download_to_array()[0, 0]))

        script = app.add(update)
        app.watch(path, worker, script)
        app.run(frames=2)
        whole = save(3, other)
        with path.open("wb") as file:  # as a program writes it: a half, and later the rest
            file.write(whole[: len(whole) // 2])
            file.flush()
            loop_until(app, lambda: list(app.failures))
            (failure,) = app.failures
            assert failure.where == path.name and "ModelError" in failure.message and set(found) == {2}
            file.write(whole[len(whole) // 2 :])
        loop_until(app, lambda: found[-1] == 3)
        loop_until(app, lambda: not list(app.failures))
        save(4, path, width=5)
        loop_until(app, lambda: list(app.failures))
        (failure,) = app.failures
        assert "InputError" in failure.message and "x: float32 (1, 4)" in failure.message and found[-1] == 3
        save(5, path)
        loop_until(app, lambda: found[-1] == 5)
        loop_until(app, lambda: not list(app.failures))
        app.remove(script)
        save(6, path)
        time.sleep(0.3)
        app.run(frames=3)
        assert not app._reloader._swaps and found[-1] == 5  # type: ignore[union-attr]


@pytest.mark.parametrize("suffix", [".onnx", ".perframe", ".sentis", ".tflite"])
def test_a_watched_model_may_have_each_format(app: App, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"net{suffix}"

    def save(op: str) -> None:
        if suffix == ".tflite":
            file = File()
            path.write_bytes(file.data(file.graph.op(op, [file.graph.input("x", (1, 4))])))
            return
        graph = pf.FunctionalGraph("net")
        x = graph.add_input("float32", (1, 4), "x")
        pf.save(graph.compile(y=-x if op == "NEG" else pf.functional.abs(x)), path)

    save("ABS")
    with pf.Worker(path) as worker:
        found = list[float]()
        x = np.ones((1, 4), np.float32)
        script = app.add(lambda: found.append(float(worker.schedule(x).peek_output().numpy()[0, 0])))
        app.watch(path, worker, script)
        app.run(frames=2)
        save("NEG")
        loop_until(app, lambda: found[-1] == -1)
        assert found[0] == 1 and not list(app.failures)


def test_a_watched_file_needs_a_function_or_a_worker(app: App, tmp_path: Path) -> None:
    wrong: Any = object()
    with pytest.raises(InputError, match="a function of the path, or a worker"):
        app.watch(tmp_path / "net.onnx", wrong)


def test_a_script_within_a_function_says_that_it_is_not_loaded_anew(app: App, caplog: pytest.LogCaptureFixture) -> None:
    class Inner(pf.Script):
        pass

    with caplog.at_level(logging.WARNING):
        app.add(Inner())
    assert "Inner is not reloaded" in caplog.text


def test_nothing_watches_after_the_end(edited: Callable[..., Any]) -> None:
    module = edited(SCRIPT)
    app = App(surface=BlankSurface((4, 3)), clock=ManualClock(0.1), reload=True)
    app.run(module.Demo(), frames=2)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("perframe re")]


def test_without_watchfiles_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(pf.MissingExtraError, match=r"perframe\[reload\]"):
        App(surface=BlankSurface((4, 3)), reload=True)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("a = [1]\nb = 2", "a = [1]\nb = 3", {"a": "kept", "b": 3}),
        ("a = [1]", "\n\n# moved\na = [1]", {"a": "kept"}),
        ("a = 1\nb = a * 2", "a = 5\nb = a * 2", {"a": 5, "b": 10}),
        ("a = 1", "a = 1\ncalls.append('again')", {"calls": []}),
        ("a = [1]", "import math\nb = math.pi > 3", {"a": "kept", "b": True}),
        ("a = [1]\nb = len(a)", "b = len(a) + 1\na = [1]", {"a": "kept", "b": 2}),
        ("def f(): return 1", "def f(): return 2\na = f()", {"a": 2}),
        ("if True:\n    a = 1\nb = [0]", "if True:\n    a = 2\nb = [a]", {"a": 2, "b": [2]}),
        ("if True:\n    a = [1]\nb = 1", "if True:\n    a = [1]\nb = 2", {"a": "kept", "b": 2}),
        ("a = 1", "if __name__ != 'b':\n    a = 2", {"a": 1}),
        ("a = 1", "if True:\n    a = 2\n    calls.append(a)", {"a": 1, "calls": []}),
        ("a = 1", "try:\n    import nothing_like_it\nexcept ImportError:\n    a = 2", {"a": 2}),
        ("class C:\n    x: int = 1", "class C:\n    x: float = 1", {"C.__annotations__": {"x": float}}),
        (
            "class C: pass",
            "from __future__ import annotations\nclass C:\n    x: int",
            {"C.__annotations__": {"x": "int"}},
        ),
        (
            "from __future__ import annotations\nclass C:\n    x: int",
            "from __future__ import annotations\nclass C:\n    y: int",
            {"C.__annotations__": {"y": "int"}},
        ),
        (
            "from __future__ import annotations\nclass C:\n    x: int",
            "class C:\n    x: int",
            {"C.__annotations__": {"x": int}},
        ),
    ],
)
def test_what_runs_again(old: str, new: str, wanted: dict[str, Any]) -> None:
    module = ModuleType("edited")
    vars(module)["calls"] = []
    exec(old, vars(module))
    if "a" in vars(module):
        kept = vars(module)["a"]
    run_changes(module, Path("edited.py"), old, new)
    for name, value in wanted.items():
        found = attrgetter(name)(module)
        assert found is kept if value == "kept" else found == value, name


@pytest.mark.parametrize(
    ("first", "encodings"),
    [
        ("", ("utf-8-sig", "utf-8-sig")),
        ("", ("utf-8", "utf-8-sig")),
        ("", ("utf-8-sig", "utf-8")),
        ("# -*- coding: latin-1 -*-\n# \u00c4rger", ("latin-1", "latin-1")),
        ("# vim: set fileencoding=cp1252 :\n# \u20ac", ("cp1252", "cp1252")),
        ("# \u65e5\u672c", ("utf-8", "utf-8")),
    ],
)
def test_files_in_their_own_encoding(app: App, tmp_path: Path, first: str, encodings: tuple[str, str]) -> None:
    path, (before, after) = tmp_path / "encoded_script.py", encodings
    text = first + textwrap.dedent(SCRIPT)
    path.write_bytes(text.encode(before))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        app.run(module.Demo(), frames=1)
        path.write_bytes(text.replace("FACTOR = 2", "FACTOR = 7").replace("\n", "\r\n").encode(after))
        loop_until(app, lambda: module.log[-1][1] == 7)
        assert not list(app.failures)
    finally:
        del sys.modules[path.stem]


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps no time of the last change of any kind")
def test_a_change_of_the_same_size_and_time_is_seen(app: App, edited: Callable[..., Any], tmp_path: Path) -> None:
    module = edited(SCRIPT)
    app.run(module.Demo(), frames=1)
    path = Path(module.__file__)
    facts = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace("FACTOR = 2", "FACTOR = 7"), encoding="utf-8")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    loop_until(app, lambda: module.log[-1][1] == 7)
