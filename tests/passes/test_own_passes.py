"""Passes from outside of perframe: where they run, and whose fault an error is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import perframe as pf
from perframe import passes
from perframe.errors import InputError
from perframe.ir import Evaluate, Model
from perframe.passes import PASSES, add_pass, pass_names
from small import load, node


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = dict(passes._added)
    yield
    passes._added.clear()
    passes._added.update(before)


def nothing(model: Model, evaluate: Evaluate) -> int:
    return 0


def test_a_pass_runs_after_the_pass_that_it_names() -> None:
    add_pass("mine", nothing, after="fuse_bias")
    add_pass("mine_too", nothing, after="mine")
    add_pass("mine", nothing, after="fuse_gate")  # as in a notebook
    names = pass_names()
    assert names[names.index("fuse_gate") + 1 :][:2] == ["mine", "mine_too"]
    assert [name for name in names if name in PASSES] == list(PASSES)
    report = load([node("Neg", "x", "y")], {"x": [2]}, "y").report
    assert report is not None and {"mine", "mine_too"} <= {one.name for one in report.passes}


def test_a_replaced_pass_may_follow_one_that_was_added_later() -> None:
    add_pass("mine", nothing, after="fuse_bias")
    add_pass("mine_too", nothing, after="fuse_bias")
    add_pass("mine", nothing, after="mine_too")
    names = pass_names()
    assert names[names.index("fuse_bias") + 1 :][:2] == ["mine_too", "mine"]


@pytest.mark.parametrize(("name", "run"), [("mine", 5), (7, nothing), (None, None)])
def test_a_pass_is_a_name_and_a_function(name: Any, run: Any) -> None:
    with pytest.raises(InputError, match="a pass has a name and a function"):
        add_pass(name, run, after="fuse_bias")
    assert pass_names() == list(PASSES)


@pytest.mark.parametrize(
    ("name", "after", "message"),
    [
        ("fuse_bias", "fuse_gate", "perframe has a pass 'fuse_bias'"),
        ("mine", "nothing_of_this_name", "no pass 'nothing_of_this_name' for 'mine' to run after"),
        ("mine", "mine", "no pass 'mine'"),
    ],
)
def test_names_are_checked(name: str, after: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        add_pass(name, nothing, after=after)


def test_two_passes_cannot_follow_each_other() -> None:
    add_pass("mine", nothing, after="fuse_bias")
    add_pass("mine_too", nothing, after="mine")
    with pytest.raises(InputError, match="no pass 'mine_too' for 'mine' to run after"):
        add_pass("mine", nothing, after="mine_too")


def test_an_error_after_a_pass_of_ones_own_does_not_blame_perframe() -> None:
    def spoil(model: Model, evaluate: Evaluate) -> int:
        model.layers[0].op = "Add"
        return 1

    add_pass("spoil", spoil, after="remove_noops")
    with pytest.raises(pf.errors.PassError, match="The fault may be in your pass 'spoil'"):
        load([node("Neg", "x", "y")], {"x": [2]}, "y")
