"""Arguments that cannot be meant: what commands say, before they do anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Command = Callable[..., tuple[int, str, str]]


def test_run_writes_arrays_and_no_picture(perframe: Command, tmp_path: Path) -> None:
    status, _, err = perframe("run", "digits", "--save", tmp_path / "out.png")
    assert status == 2 and "'out.png' is not an .npz" in err
    assert not list(tmp_path.iterdir())


def test_an_input_file_that_is_missing_is_named(perframe: Command) -> None:
    for file in ("none.png", "none.npy"):
        status, _, err = perframe("run", "digits", "--input", file)
        assert status == 1 and f"error: input 'ink': there is no file '{file}'" in err


def test_close_operators_are_named_as_onnx_writes_them(perframe: Command) -> None:
    assert "no operator 'softmaks'; did you mean Softmax?" in perframe("operators", "softmaks")[2]
    assert "no operator 'Xyz'; `perframe operators` lists" in perframe("operators", "Xyz")[2]
