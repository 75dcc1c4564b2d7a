"""Names in files are shown as they are, obey nothing, and lead nowhere, whatever command reads them."""

from __future__ import annotations

import io
import logging
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import perframe as pf
from perframe.command_line.cli import main
from perframe.errors import UnsupportedOperatorError
from perframe.safety.archives import read_feed, write_feed, write_npz
from perframe.safety.console import SafeConsole
from perframe.safety.names import member_names, shown

WILD = {
    "a closing tag": "[/]",
    "a style": "[red]x[/red]",
    "a colour": "\x1b[31mEVIL\x1b[0m",
    "a title": "\x1b]0;EVIL\x07",
    "an 8-bit sequence": "\x9b31mEVIL",
    "a carriage return": "fine\rEVIL",
    "another direction": "\u202eLIVE",
}
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
COMMANDS = {
    "inspect": ["inspect"],
    "its memory": ["inspect", "--memory"],
    "run": ["run"],
    "check": ["check", "--backend", "cpu"],
    "compare": ["compare"],
    "optimize": ["optimize", "--explain"],
    "profile": ["profile", "--backend", "cpu", "--frames", "2"],
    "quantize": ["quantize", "MODEL", "q.perframe"],
    "convert": ["convert", "MODEL", "c.onnx", "--verify"],
    "save": ["save", "MODEL", "s.perframe"],
    "warmup": ["warmup", "--backend", "cpu"],
    "inspect as JSON": ["inspect", "--json"],
}


def write(path: Path, name: str, output: str | None = None) -> None:
    """A model whose layers, values and dims have this name."""
    weights = numpy_helper.from_array(np.ones((4, 3), np.float32), f"{name} w")
    nodes = [
        helper.make_node("MatMul", ["x", f"{name} w"], ["m"], name=name),
        helper.make_node("Det", ["q"], [output or name], name=f"{name} det"),
        helper.make_node("Softmax", ["m"], [f"{name} 2"], name=f"{name} softmax"),
    ]
    values = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [name, 4]),
        helper.make_tensor_value_info("q", TensorProto.FLOAT, [3, 3]),
    ]
    results = [
        helper.make_tensor_value_info(result, TensorProto.FLOAT, None) for result in (output or name, f"{name} 2")
    ]
    graph = helper.make_graph(nodes, name, values, results, [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def said(arguments: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command prints, on both streams, where it ends with 0 or 1 and no traceback."""
    monkeypatch.setattr(sys, "argv", ["perframe", *arguments])
    monkeypatch.setattr("perframe.command_line.cli.end_in_order", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, 1, None)
    return "".join(capsys.readouterr())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", WILD)
def test_a_command_obeys_no_name(
    kind: str, command: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write(tmp_path / "m.onnx", WILD[kind])
    first, *rest = COMMANDS[command]
    rest = ["m.onnx" if part == "MODEL" else part for part in rest]
    text = said([first, *([] if "m.onnx" in rest else ["m.onnx"]), *rest], capsys, monkeypatch)
    assert not OBEYED.search(text) and "Traceback" not in text
    if kind in ("a closing tag", "a style") and command in ("inspect", "run", "compare"):
        assert WILD[kind] in text, "a name is shown as it is"


@pytest.mark.parametrize("command", ["inspect", "run", "save"])
def test_a_files_name_is_shown_as_it_is(
    command: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "[bold]m[").mkdir()
    for name in ("[bold]m[/].onnx", "\x1b[31m.onnx"):
        write(tmp_path / name, "n")
        given = [name, f"{name}.perframe"] if command == "save" else [name]
        text = said([command, *given], capsys, monkeypatch)
        assert not OBEYED.search(text) and (command == "run" or "[bold]" not in name or "].onnx" in text)
        said([command, f"no {name}", *given[1:]], capsys, monkeypatch)


def test_errors_and_logs_obey_nothing(caplog: Any) -> None:
    for text in WILD.values():
        for error in (pf.ModelError(text), UnsupportedOperatorError(text, [])):
            assert not OBEYED.search(str(error))
        logging.getLogger("perframe").warning("layer %s of\n%s", text, "two lines")
        assert "[/]" in str(pf.ModelError("[/]")) and "\n" in str(pf.ModelError("a\nb"))
    assert not OBEYED.search(caplog.text) and "of\ntwo lines" in caplog.text


def test_a_console_shows_what_it_is_given() -> None:
    stream = io.StringIO()
    console = SafeConsole(file=stream, force_terminal=True, color_system="standard")
    for text in WILD.values():
        console.print(text, style="red")
    written = re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())  # its own colours
    assert not OBEYED.search(written) and "[red]x[/red]" in written and "␛[31mEVIL" in written


@pytest.mark.parametrize("name", ["file", "allow_pickle", "../../evil", "/root/evil", "C:/evil", "..\\evil", "a/b:0"])
def test_every_output_can_be_written(name: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "m.onnx", "n", name)
    said(["run", "m.onnx", "--save", "o.npz"], capsys, monkeypatch)
    with np.load("o.npz") as found:
        (stored, _) = found.files
        assert found[stored].shape == () and (stored == name) == (name in ("file", "allow_pickle", "a/b:0"))
    assert ".." not in Path(stored).parts and not Path(stored).is_absolute() and "\\" not in stored


def test_outputs_of_pictures_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "in" / "a.png")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    y = helper.make_tensor_value_info("file", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("ReduceMax", ["x"], ["file"], keepdims=0)], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    pf.process(tmp_path / "in", tmp_path / "out", tmp_path / "m.onnx")
    assert np.load(tmp_path / "out" / "a.npz")["file"].shape == ()


@pytest.mark.quick(cases=0)
def test_inputs_of_every_name_can_be_timed(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["file", "../x", "perframe names"]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in names]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Sum", names, ["y"])], "g", values, [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "m.onnx")
    text = said(["bench", "m.onnx", "--backend", "cpu", "--rounds", "1"], capsys, monkeypatch)
    assert "Error" not in text and "m.onnx" in text
    feed = {name: np.full((2,), index, np.float32) for index, name in enumerate(names)}
    write_feed(tmp_path / "feed.npz", feed)
    again = read_feed(tmp_path / "feed.npz")
    assert list(again) == names and all(np.array_equal(again[name], feed[name]) for name in names)


def test_names_become_safe_and_stay_apart() -> None:
    names = ["a", "../a", "_/a", "./a", "a\\b", "a_b", "", "x\0y", "\ud800"]
    members = member_names(names)
    assert members["a"] == "a" and len(set(members.values())) == len(names)
    stream = io.BytesIO()
    write_npz(stream, {name: np.float32(index) for index, name in enumerate(names)})
    stream.seek(0)
    assert sorted(float(np.load(stream)[key]) for key in np.load(stream).files) == list(range(len(names)))
    assert shown("a\tb\nc") == "a␉b␊c" and shown("a\tb\nc", lines=True) == "a\tb\nc" and shown("é→😀") == "é→😀"


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such terminals and signals")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_leaves_the_cursor_visible(number: str) -> None:
    import pty
    import select

    code = (
        "import time; from perframe.command_line import cli; from perframe.command_line.terminal import progress_bar\n"
        "def work():\n    with progress_bar() as step:\n        while True: step('works', 0.5); time.sleep(0.01)\n"
        "cli.app = work; cli.main()"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        for ignored in (signal.SIGINT, signal.SIGHUP):  # as nohup and background jobs have them
            signal.signal(ignored, signal.SIG_DFL)
        os.execv(sys.executable, [sys.executable, "-c", code])
    written, sent, end = b"", False, time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # Linux' end of a terminal
                break
            if not part:
                break
            written += part
        if b"\x1b[?25l" in written and not sent:
            os.kill(child, getattr(signal, number))
            sent = True
    else:
        os.kill(child, signal.SIGKILL)
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert sent and written.rfind(b"\x1b[?25h") > written.rfind(b"\x1b[?25l")
    assert os.waitstatus_to_exitcode(status) == 128 + getattr(signal, number)
