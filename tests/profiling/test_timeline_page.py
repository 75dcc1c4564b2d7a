"""The page of a profile, in a real browser, and the command that writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import perframe as pf
from perframe.command_line.cli import app
from perframe.profiling import timeline as pages
from small import load, node


def profiled(frames: int = 5) -> pf.profiling.profile.Profile:  # type: ignore[name-defined]
    model = load([node("Exp", "x", "a"), node("Softmax", "a", "</script><b>y")], {"x": [64, 64]}, "</script><b>y")
    with pf.Worker(model) as worker, pf.profile() as profile:
        for _ in range(frames):
            profile.frame()
            worker.schedule(np.ones((64, 64), np.float32)).peek_output().download_to_array()
    return profile


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 420])
def test_the_page_shows_what_was_measured(browser: Any, tmp_path: Path, width: int) -> None:
    path = tmp_path / "profile.html"
    profile = profiled()
    profile.save(path)
    errors: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda one: None if one.url.startswith("file:") else errors.append(one.url))
    page.goto(path.as_uri())
    rows = page.locator("#layers tbody tr")
    assert rows.count() == len(profile.layers)
    assert page.locator("#times tbody tr").count() == 2
    page.fill("#search", "softmax")
    assert page.locator("#layers tr.match").count() == 1
    for button in ("#in", "#out", "#fit", "#theme"):
        page.click(button)
    page.get_by_role("button", name="operator").click()
    assert "↓" in page.locator("#layers th").nth(1).inner_text()
    page.evaluate("[view.begin, view.length] = tracks.at(-1).events[0]; draw()")  # the first step fills the window
    box = page.locator("#timeline").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 20)
    assert "Exp" in page.inner_text("#tip") and "from" in page.inner_text("#tip")
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "no scrolling sideways"
    page.close()
    assert errors == []


@pytest.mark.slow
def test_a_long_profile_keeps_its_last_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_EVENTS", 10)
    text = pages.page_text(profiled(20))
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert data["since"] > 0 and sum(len(track["events"]) for track in data["tracks"]) <= 11
    assert data["facts"]["workers"][0]["schedules"]["count"] == 20, "figures are of all"


@pytest.mark.slow
def test_the_command_profiles_a_model(backend: str, tmp_path: Path) -> None:
    if backend != "cpu":
        pytest.importorskip("moderngl")
    model = load([node("MatMul", "x w", "a"), node("Relu", "a", "y")], {"x": [8, 8]}, "y", {"w": np.eye(8, dtype="f4")})
    filed = tmp_path / "m.perframe"
    pf.save(model, filed)
    options = [str(filed), "--backend", backend, "--frames", "4"]
    found = CliRunner().invoke(app, ["profile", *options, "--json", "--trace", str(tmp_path / "t.json")])
    assert found.exit_code == 0, found.output
    facts = json.loads(found.stdout)
    assert facts["frames"]["count"] == 4 and facts["layers"][0]["seconds"] > 0
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    found = CliRunner().invoke(app, ["profile", *options, "--html", str(tmp_path / "p.html")])
    assert found.exit_code == 0 and "MatMul" in found.output and (tmp_path / "p.html").is_file()
    found = CliRunner().invoke(app, ["profile", *options, "--html", str(tmp_path / "no" / "p.html")])
    assert found.exit_code == 1 and "there is no folder" in str(found.exception)


def test_the_command_carries_states(tmp_path: Path) -> None:
    graph = pf.FunctionalGraph()
    x, state = graph.add_input("float32", (2,), "x"), graph.add_input("float32", (2,), "state")
    pf.save(graph.compile(y=x * state, next=x + state), tmp_path / "m.perframe")
    command = ["profile", str(tmp_path / "m.perframe"), "--backend", "cpu", "--frames", "3", "--json"]
    found = CliRunner().invoke(app, [*command, "--carry", "next=state"])
    assert found.exit_code == 0 and json.loads(found.stdout)["frames"]["count"] == 3
    found = CliRunner().invoke(app, [*command, "--carry", "y=x,next=none"])
    assert found.exit_code == 1 and "'none', which is not an input" in str(found.exception)
