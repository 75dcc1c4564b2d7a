"""What the prompt shows of public objects: what they are, and not where they lie in memory."""

from __future__ import annotations

import inspect
from typing import Any

import perframe as pf


def test_each_public_class_says_what_its_objects_are() -> None:
    classes = [each for each in (getattr(pf, name) for name in pf.__all__) if inspect.isclass(each)]
    assert len(classes) > 20
    assert [each.__name__ for each in classes if each.__repr__ is object.__repr__] == []


def test_objects_say_their_state() -> None:
    buffer = pf.CommandBuffer()
    assert repr(buffer) == "CommandBuffer(0 commands)"
    converter = pf.TextureConverter()
    assert repr(converter) == "TextureConverter(without GL)"
    limit = pf.MemoryLimit(100_000)
    assert repr(limit).startswith("MemoryLimit(100,000.0 MiB, ") and repr(limit).endswith(" MiB used)")
    for each in (buffer, converter, limit):
        each.release()
        assert repr(each).endswith("released)")


def test_scripts_and_converters_name_what_they_belong_to(gl_context: Any) -> None:
    assert repr(pf.TextureConverter(gl_context)) == "TextureConverter(on GL)"
    script = pf.Script()
    assert repr(script) == "Script(of no app yet)"
    with pf.App(headless=True, size=(8, 8)) as app:
        app.add(script)
        assert repr(script) == "Script(App(8×8))"
