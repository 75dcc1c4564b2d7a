"""Models are saved on the command line, with and without keys, and every command takes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import perframe as pf
from perframe.command_line import options
from perframe.command_line.cli import app
from perframe.command_line.contest import make_task
from perframe.files import encryption
from small import load, node

KEY = bytes(range(32))


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass phrase that is quickly derived, and an environment without keys, which is as it was afterwards."""
    monkeypatch.setattr(encryption, "_N", 1 << 10)
    for name in (options.KEY_FILE, options.PASSPHRASE_ENV):
        monkeypatch.setenv(name, "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a model, and a key in two forms."""
    model = load(
        [node("MatMul", "x w", "a"), node("Relu", "a", "y")], {"x": [1, 4]}, constants={"w": np.eye(4, dtype="f")}
    )
    pf.save(model, tmp_path / "m.onnx")
    (tmp_path / "raw.key").write_bytes(KEY)
    (tmp_path / "hex.key").write_text(KEY.hex() + "\n")
    return tmp_path


def perframe(*arguments: object) -> str:
    """What the command prints."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_a_model_becomes_another_file(folder: Path) -> None:
    said = perframe("save", folder / "m.onnx", folder / "m.perframe")
    assert said.startswith(f"{folder / 'm.perframe'}: ") and said.endswith(" bytes, 1 layer\n")
    assert len(pf.load(folder / "m.perframe", optimize=False).layers) == 1
    perframe("save", folder / "m.onnx", folder / "plain.perframe", "--no-optimize")
    assert len(pf.load(folder / "plain.perframe", optimize=False).layers) == 2
    perframe("save", folder / "m.perframe", folder / "back.onnx")
    assert [made.op_type for made in onnx.load(folder / "back.onnx").graph.node] == ["MatMul", "Relu"]


@pytest.mark.parametrize("name", ["raw.key", "hex.key"])
@pytest.mark.parametrize("command", ["run", "inspect", "compare", "optimize", "check", "warmup"])
def test_commands_take_a_key(folder: Path, name: str, command: str) -> None:
    out = folder / "e.perframe"
    assert "encrypted" in perframe("save", folder / "m.onnx", out, "--key-file", folder / name)
    perframe(command, out, "--key-file", folder / "raw.key", *(["--backend", "cpu"] if command == "check" else []))


def test_commands_take_a_pass_phrase(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHRASE", "correct horse")
    perframe("save", folder / "m.onnx", folder / "p.perframe", "--passphrase-env", "PHRASE")
    perframe("run", folder / "p.perframe", "--passphrase-env", "PHRASE")
    assert pf.load(folder / "p.perframe", key="correct horse").layers


def test_an_encrypted_model_is_saved_under_another_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "other.key").write_bytes(bytes(32))
    perframe("save", folder / "m.onnx", folder / "e.perframe", "--key-file", folder / "raw.key")
    monkeypatch.setenv(options.KEY_FILE, str(folder / "raw.key"))
    perframe("save", folder / "e.perframe", folder / "f.perframe", "--key-file", folder / "other.key")
    assert pf.load(folder / "f.perframe", key=bytes(32)).layers


def test_wrong_keys_are_named(folder: Path) -> None:
    (folder / "short.key").write_bytes(b"short")
    (folder / "long.key").write_bytes(bytes(100))
    for arguments, message in (
        (["--key-file", folder / "short.key"], "is not a key: a key is 32 bytes, or 64 hex digits"),
        (["--key-file", folder / "long.key"], "is not a key"),
        (["--key-file", folder / "none.key"], "the key file cannot be read"),
        (["--passphrase-env", "NOT_THERE"], "the environment has no passphrase in NOT_THERE"),
        (["--passphrase-env", "PATH", "--key-file", folder / "raw.key"], "-env, not both"),
    ):
        for command in (["run", folder / "m.onnx"], ["save", folder / "m.onnx", folder / "x.perframe"]):
            with pytest.raises(pf.InputError, match=message):
                perframe(*command, *arguments)
    assert not (folder / "x.perframe").exists()


def test_other_runtimes_get_an_onnx_file_but_not_of_an_encrypted_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perframe("save", folder / "m.onnx", folder / "m.perframe")
    perframe("save", folder / "m.onnx", folder / "e.perframe", "--key-file", folder / "raw.key")
    for name in ("plain", "secret"):
        (folder / name).mkdir()
    task = make_task(str(folder / "m.perframe"), folder / "plain", {}, 0)
    assert onnx.load(task.peers).graph.node and task.ours == folder / "m.perframe"
    monkeypatch.setenv(options.KEY_FILE, str(folder / "raw.key"))
    task = make_task(str(folder / "e.perframe"), folder / "secret", {}, 0)
    assert task.peers == task.ours
    assert not list((folder / "secret").glob("*.onnx"))
