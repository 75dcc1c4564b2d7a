"""Which products of bytes an arm64 processor has, as each system says it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from perframe.backends.cpu.lowering import arm_features, byte_product

DOTS, MIXED = 1 << 20, 1 << 13


class Function:
    """A function of C, on which types may be set."""

    def __init__(self, called: Callable[..., int]) -> None:
        self._called = called

    def __call__(self, *arguments: Any) -> int:
        return self._called(*arguments)


def standing_in(monkeypatch: pytest.MonkeyPatch, system: str, **functions: Callable[..., int]) -> None:
    library = SimpleNamespace(**{name: Function(called) for name, called in functions.items()})
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: library)


@pytest.mark.parametrize(
    ("first", "second", "kinds"), [(0, 0, []), (DOTS, 0, ["sdot"]), (DOTS | 1, MIXED | 1, ["sudot", "sdot"])]
)
def test_on_linux(first: int, second: int, kinds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    standing_in(monkeypatch, "linux", getauxval=lambda which: {16: first, 26: second}[which])
    assert arm_features.byte_products() == kinds


@pytest.mark.parametrize("kinds", [[], ["sdot"], ["sudot", "sdot"]])
def test_on_macos(kinds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"sudot": b"hw.optional.arm.FEAT_I8MM", "sdot": b"hw.optional.arm.FEAT_DotProd"}
    known = {names[kind] for kind in kinds}

    def ask(name: bytes, value: Any, *_rest: Any) -> int:
        value._obj.value = 1
        return 0 if name in known else -1

    standing_in(monkeypatch, "darwin", sysctlbyname=ask)
    assert arm_features.byte_products() == kinds


def test_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    standing_in(monkeypatch, "win32", IsProcessorFeaturePresent=lambda which: int(which == 43))
    assert arm_features.byte_products() == ["sdot"]


@pytest.mark.parametrize("name", ["linux", "darwin", "win32"])
def test_older_systems(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    standing_in(monkeypatch, name)
    assert arm_features.byte_products() == []


def test_on_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "freebsd14")
    assert arm_features.byte_products() == []


def test_arm64_takes_its_best_kind_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_product, "architecture", lambda: "aarch64")
    monkeypatch.setattr(byte_product, "LANES", 4)
    monkeypatch.setattr(byte_product, "byte_products", lambda: ["sudot", "sdot"])
    assert byte_product.instructions.__wrapped__() == ("sudot", "sdot", "plain")
