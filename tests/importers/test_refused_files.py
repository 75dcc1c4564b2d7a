"""Files that are no models: the message follows from the name that they have."""

from __future__ import annotations

from pathlib import Path

import pytest

import perframe as pf

PNG = b"\x89PNG\r\n\x1a\n" + bytes(99)
OLD_SENTIS = bytes(8) + b"\0\1\0\0\0\xff\xff\xff\xff\1" + bytes(100)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("text.tflite", b"abc", "not a LiteRT file, despite its name: it is text"),
        ("text.sentis", b"abc", "not a Sentis file, despite its name: it is text"),
        ("text.perframe", b"abc", "not a perframe file, despite its name: it is text"),
        ("EMPTY.TFLITE", b"", "not a LiteRT file, despite its name: it is empty"),
        ("parsed.tflite", b"\x08\x07", "not a LiteRT file, despite its name: it is truncated or of another format"),
        ("old.sentis", OLD_SENTIS, "it is a .sentis file of Sentis 1.0 to 1.3"),
        ("pic.png", PNG, "not a file that load() reads (.onnx, .tflite, .sentis, .perframe): it is a PNG picture"),
        ("text.png", b"abc", "not a file that load() reads (.onnx, .tflite, .sentis, .perframe): it is text"),
        ("text.onnx", b"abc", "not an ONNX file (3 bytes do not parse): it is text"),
        ("cut.onnx", b"\x08\x07", "not a complete ONNX file (it has no graph, opset or IR version): it is truncated"),
        ("model", PNG, "not an ONNX file (107 bytes do not parse): it is a PNG picture"),
    ],
)
def test_the_message_follows_from_the_name(name: str, data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(pf.ModelError) as caught:
        pf.load(tmp_path / name)
    assert str(caught.value).startswith(f"{name}: {said}")
