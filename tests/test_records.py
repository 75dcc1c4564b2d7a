"""Our dataclasses behave as the standard ones, and compile nothing when they are declared."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import field
from functools import cached_property
from typing import Any

import pytest

from perframe.safety import records


@records.dataclass(frozen=True)
class Point:
    x: int
    y: float = 2.0
    notes: list[str] = field(default_factory=list, compare=False)
    hidden: str = field(default="h", repr=False)

    @cached_property
    def sum(self) -> float:
        return self.x + self.y


@records.dataclass(frozen=True)
class Named(Point):
    name: str = ""


def both(**options: Any) -> list[Any]:
    """One class twice: by the standard decorator, and by ours."""

    def made(decorator: Any) -> Any:
        class Record:
            x: int
            y: Any = 1
            z: list[int] = field(default_factory=list)
            made: int = field(init=False, default=7)
            own: list[int] = field(init=False, default_factory=list)
            last: int = field(default=3, kw_only=True)

            def __post_init__(self) -> None:
                object.__setattr__(self, "made", self.x + 1)

        return decorator(**options)(Record)

    return [made(dataclasses.dataclass), made(records.dataclass)]


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False}])
def test_records_are_as_the_standard_ones(options: dict[str, Any]) -> None:
    facts: list[Any] = []
    for made in both(**options):
        a, b, c = made(1), made(1, z=[], last=3), made(2, 5, [1], last=4)
        assert a.z is not b.z and a.own is not b.own
        fact: dict[str, Any] = {"equal": (a == b, a == c, a == 1), "text": repr(c), "values": dataclasses.asdict(c)}
        fact["fields"] = [(f.name, f.init, f.kw_only) for f in dataclasses.fields(made)]
        fact["replaced"] = repr(dataclasses.replace(b, x=9))
        fact["match"] = made.__match_args__
        for name, act in (("hash", lambda one: hash(one) and 0), ("set", lambda one: setattr(one, "x", 5))):
            try:
                fact[name] = act(a)
            except Exception as error:
                fact[name] = (type(error), str(error))
        for wrong in (lambda made=made: made(), lambda made=made: made(1, 2, [], 3), lambda made=made: made(1, q=2)):
            with pytest.raises(TypeError) as caught:
                wrong()
            fact[str(caught.value)] = True
        facts.append(fact)
    assert facts[0] == facts[1]


def test_equal_frozen_records_have_one_hash() -> None:
    one, other = Point(1, 2.0, ["a"]), Point(1, 2.0, ["b"])
    assert one == other and hash(one) == hash(other) and {one: 1}[other] == 1
    assert Named(1) != Point(1) and Named(1, name="n").name == "n" and Named(1) == Named(1)


def test_frozen_records_refuse_changes_and_keep_what_they_compute() -> None:
    point = Named(1)
    for change in (lambda: setattr(point, "x", 2), lambda: delattr(point, "name"), lambda: setattr(point, "new", 2)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    assert point.sum == 3.0 and "sum" in vars(point)


def test_records_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps(Named(3, name="n"))) == Named(3, name="n")


def test_a_class_keeps_its_own_methods() -> None:
    @records.dataclass(frozen=True)
    class Own:
        x: Any

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    assert Own(1) == Own(2) and hash(Own(1)) == 5 and repr(Own(1)) == "own"


def test_the_first_record_compiles_the_method_that_makes_it() -> None:
    @records.dataclass
    class Late:
        x: int = 4

    before = Late.__init__
    assert Late().x == 4 and Late.__init__ is not before and Late(x=5).x == 5 and Late.__init__.__name__ == "__init__"
