"""Films through models and scripts: every picture, in order, whatever ended the run before."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import av
import numpy as np
import onnx
import pytest

import perframe as pf
from media.films import film, film_with_sound, grey, index_of, media_threads
from perframe.media import open_source
from perframe.media.picture import path_beside
from perframe.processing import processing
from perframe.tensor.frames import current_frame
from processing.scripts import INVERTER, ON_THE_GPU, save_inverter

Array = np.ndarray[Any, Any]


@pytest.fixture
def inverter(tmp_path: Path) -> Path:
    return save_inverter(tmp_path / "inverter.onnx")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(INVERTER)
    return path


def pictures(path: Path) -> list[Array]:
    with open_source(path) as source:
        return [picture.pixels for picture in source]


def inverted(found: list[Array]) -> list[int]:
    return [index_of(255 - pixels) for pixels in found]


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
def test_a_model_makes_a_picture_of_each_picture(backend: str, last: bool, gl_context: Any, tmp_path: Path) -> None:
    model = save_inverter(tmp_path / "m.onnx", last)
    done = pf.process(film(tmp_path / "in", 5), tmp_path / "out", model, backend=backend)
    assert (done.pictures, done.resumed, done.out) == (5, 0, tmp_path / "out")
    assert sorted(path.name for path in done.out.iterdir()) == [f"00000{index}.png" for index in range(5)]
    for index, pixels in enumerate(pictures(done.out)):
        assert np.array_equal(pixels, 255 - grey(index))
    assert not (tmp_path / "out.work").exists() and media_threads() == []


@pytest.mark.parametrize("name", ["out.png", "out.JPG", "out.npz"])
def test_one_picture_becomes_one_file(name: str, tmp_path: Path, inverter: Path) -> None:
    source = film(tmp_path / "in", 3) / "000002.png"
    done = pf.process(source, tmp_path / name, inverter)
    assert (done.pictures, done.out) == (1, tmp_path / name)
    if name.endswith("npz"):
        assert (np.load(done.out)["y"].shape) == (1, 3, *grey(2).shape[:2])
    else:
        assert np.abs(pictures(done.out)[0].astype(int) - (255 - grey(2))).max() <= 3 * name.endswith("JPG")
    assert sorted(path.name for path in tmp_path.iterdir() if path != inverter) == ["in", name]
    with pytest.raises(pf.InputError, match="already exists"):
        pf.process(source, tmp_path / name, inverter)


def test_one_picture_that_fails_leaves_nothing(tmp_path: Path) -> None:
    source = film(tmp_path / "in", 1) / "000000.png"
    with pytest.raises(pf.InputError, match="is not a picture"):
        pf.process(source, tmp_path / "out.png", "digits")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_script_draws_each_result_over_its_own_picture(
    backend: str, gl_context: Any, tmp_path: Path, inverter: Path, script: Path
) -> None:
    source = film(tmp_path / "in", 7)
    pf.process(source, tmp_path / "out", inverter, script=script, backend=backend, chunk=4)
    found = pictures(tmp_path / "out")
    assert inverted(found) == list(range(7))
    assert [int(pixels[0, 0, 0]) for pixels in found] == [0, 1, 2, 3, 0, 1, 2], "a chunk begins the script anew"
    assert not current_frame().waits

    pf.process(source, tmp_path / "led", inverter, script=script, backend=backend, chunk=4, lead=2)
    assert [int(pixels[0, 0, 0]) for pixels in pictures(tmp_path / "led")] == [0, 1, 2, 3, 2, 3, 4]


def test_a_run_with_a_budget_ends_in_its_frame(backend: str, gl_context: Any, tmp_path: Path, inverter: Path) -> None:
    (tmp_path / "s.py").write_text(
        INVERTER.replace("    def update", "    def before").replace("class Inverter", "class Base")
        + """
class Budget(Base):
    def update(self, frame):
        self.picture = self.source.picture_at(frame.time)
        x = self.picture.pixels.astype(np.float32).transpose(2, 0, 1)[None] / 255
        self.app.schedule(self.worker, x, budget_ms=0, on_done=self.show)

    def show(self, run):
        inverted = self.worker.peek_output().readback_request()
        assert inverted.done
        self.app.surface.present((inverted.result()[0].transpose(1, 2, 0) * 255).round().astype(np.uint8))
"""
    )
    with pytest.raises(pf.InputError, match=r"s\.py has several scripts, Base, Budget: name one, as s\.py:Base"):
        pf.process(film(tmp_path / "in", 3), tmp_path / "out", inverter, script=tmp_path / "s.py", backend=backend)
    pf.process(
        tmp_path / "in", tmp_path / "out", inverter, script=f"{tmp_path}/s.py:Budget", backend=backend, overwrite=True
    )
    assert inverted(pictures(tmp_path / "out")) == [0, 1, 2]


def test_a_script_of_textures_draws_each_picture(backend: str, gl_context: Any, tmp_path: Path, inverter: Path) -> None:
    (tmp_path / "s.py").write_text(ON_THE_GPU)
    pf.process(film(tmp_path / "in", 5), tmp_path / "out", inverter, script=tmp_path / "s.py", backend=backend, chunk=2)
    assert all(np.array_equal(pixels, 255 - grey(index)) for index, pixels in enumerate(pictures(tmp_path / "out")))


def test_a_video_keeps_its_times_and_its_sound(tmp_path: Path, inverter: Path, script: Path) -> None:
    source = film_with_sound(tmp_path / "in.mp4")
    done = pf.process(source, tmp_path / "out.mp4", inverter, script=script, chunk=11)
    with open_source(done.out) as found:
        assert found.feed.count == 30 and found.rate == 25
        taken = list(found)
    assert np.allclose([picture.time for picture in taken], np.arange(30) / 25)
    assert inverted([picture.pixels for picture in taken]) == list(range(30))
    with av.open(str(source)) as before, av.open(str(done.out)) as after:
        sounds = [[bytes(p) for p in container.demux(audio=0) if p.size] for container in (before, after)]
    assert len(sounds[0]) > 8 and sounds[0] == sounds[1], "the sound is copied"


@pytest.mark.slow
def test_several_processes_make_the_same_video(tmp_path: Path, inverter: Path, script: Path) -> None:
    source = film(tmp_path / "in.mp4", 24)
    told: list[float] = []

    def tell(_what: str, share: float) -> None:
        told.append(share)

    pf.process(source, tmp_path / "one.mp4", inverter, script=script, chunk=6)
    pf.process(
        source,
        tmp_path / "two.mp4",
        inverter,
        script=script,
        chunk=6,
        jobs=2,
        progress=tell,
    )
    assert all(map(np.array_equal, pictures(tmp_path / "one.mp4"), pictures(tmp_path / "two.mp4")))
    assert told == sorted(told) and told[-1] == 1.0 and len(told) >= 24


def test_outputs_that_are_no_pictures_become_files_of_arrays(tmp_path: Path) -> None:
    model = save_inverter(tmp_path / "m.onnx", outputs=2)
    source = film(tmp_path / "in", 2)
    pf.process(source, tmp_path / "out", model, suffix=".npz")
    with np.load(tmp_path / "out" / "000001.npz") as arrays:
        assert sorted(arrays) == ["mean", "y"] and arrays["y"].shape == (1, 3, 36, 64)
        assert np.allclose(arrays["mean"], grey(1).mean((0, 1)) / 255, atol=1e-6)


def test_values_are_normalised_and_drawn_back(tmp_path: Path) -> None:
    seen = save_inverter(tmp_path / "m.onnx")
    source = film(tmp_path / "in", 1)
    pf.process(source, tmp_path / "arrays", seen, suffix=".npz", scale=255, mean=(10, 20, 30), std=(2,))
    with np.load(tmp_path / "arrays" / "000000.npz") as arrays:
        assert np.allclose(arrays["y"][0, :, 0, 0], 1 - (20 - np.array([10, 20, 30])) / 2, atol=1e-4)
    pf.process(source, tmp_path / "out", seen, scale=255, mean=(10, 20, 30), std=(2,))
    drawn = pictures(tmp_path / "out")[0]
    assert np.abs(drawn[0, 0] - ((1 - (20 - np.array([10.0, 20, 30])) / 2) * 2 + [10, 20, 30])).max() <= 1


RUN = """
import sys, perframe as pf
pf.process("in.mp4", sys.argv[1], "inverter.onnx", script="slow.py", chunk=3, jobs=int(sys.argv[2]))
"""
SLOW = "\n    def late_update(self, frame):\n        import time\n        time.sleep(0.05)\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize(("out", "jobs"), [("out.mp4", 1), ("out", 2)])
def test_a_killed_run_goes_on(out: str, jobs: int, tmp_path: Path, inverter: Path) -> None:
    source = film(tmp_path / "in.mp4", 30)
    slow = tmp_path / "slow.py"
    slow.write_text(INVERTER.replace("\n    def destroy", SLOW + "\n    def destroy"))
    child = subprocess.Popen([sys.executable, "-c", RUN, out, str(jobs)], cwd=tmp_path)
    work = tmp_path / f"{out}.work"
    end = time.monotonic() + 60
    while len(list(work.glob("chunk-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    before = {path: path.stat().st_mtime_ns for path in work.glob("chunk-*")}
    assert 2 <= len(before) < 10, "it was killed in the middle"
    assert out == "out" or not (tmp_path / out).exists()
    time.sleep(0.3)
    assert {path: path.stat().st_mtime_ns for path in work.glob("chunk-*")} == before, "no process is left"
    if out == "out":  # as if it had been killed while it wrote
        path_beside(tmp_path / out / "000029.png").write_bytes(b"half")

    with pytest.raises(pf.InputError, match="of a run with another chunk: end that run with its own arguments"):
        pf.process(source, tmp_path / out, inverter, script=slow, chunk=4)
    done = pf.process(source, tmp_path / out, inverter, script=slow, chunk=3, jobs=jobs)
    assert done.pictures == 30 and done.resumed == 3 * len(before)
    found = pictures(tmp_path / out)
    assert inverted(found) == list(range(30))
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")] and not work.exists()


def test_a_work_folder_that_cannot_be_is_an_error(tmp_path: Path, inverter: Path) -> None:
    source = film(tmp_path / "in", 2)
    (tmp_path / "out.work").write_text("a file of the user's")
    with pytest.raises(pf.InputError, match=r"out\.work' cannot be written .*choose another OUT"):
        pf.process(source, tmp_path / "out", inverter)
    assert (tmp_path / "out.work").read_text() == "a file of the user's"


def test_a_run_that_made_nothing_leaves_the_name_to_others(tmp_path: Path, inverter: Path) -> None:
    source = film(tmp_path / "in", 2)
    with pytest.raises(pf.InputError, match="is not a picture"):
        pf.process(source, tmp_path / "out.mp4", "digits")
    work = tmp_path / "out.mp4.work"
    assert not work.exists()
    work.mkdir()
    (work / "plan.json").write_text('{"model": "of a process that was killed"}', encoding="utf-8")
    assert pf.process(source, tmp_path / "out.mp4", inverter).pictures == 2 and not work.exists()


@pytest.mark.parametrize("chunk", [2, 4])
def test_an_interrupted_run_says_how_to_resume(
    chunk: int, tmp_path: Path, inverter: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupt(what: str, _done: float) -> None:
        if what.startswith("picture 3"):
            raise KeyboardInterrupt

    out, arguments = tmp_path / "out.mp4", {"chunk": chunk}
    source = film(tmp_path / "in.mp4", 4)
    with pytest.raises(KeyboardInterrupt):
        pf.process(source, out, inverter, progress=interrupt, **arguments)
    assert ("run the same command again to resume" in caplog.text) is (chunk == 2)
    assert pf.process(source, out, inverter, **arguments).resumed == (2 if chunk == 2 else 0)


@pytest.mark.slow
def test_two_runs_do_not_make_one_result(tmp_path: Path, inverter: Path) -> None:
    source = film(tmp_path / "in.mp4", 12)
    slow = tmp_path / "slow.py"
    slow.write_text(INVERTER.replace("\n    def destroy", SLOW + "\n    def destroy"))
    first = subprocess.Popen([sys.executable, "-c", RUN, "out.mp4", "1"], cwd=tmp_path)
    work = tmp_path / "out.mp4.work"
    end = time.monotonic() + 60
    while not list(work.glob("chunk-*")) and time.monotonic() < end:
        time.sleep(0.01)
    for overwrite in (False, True):
        with pytest.raises(pf.InputError, match=r"another run is making '.*out\.mp4' right now"):
            pf.process(source, tmp_path / "out.mp4", inverter, script=slow, chunk=3, overwrite=overwrite)
    assert first.wait(60) == 0
    assert inverted(pictures(tmp_path / "out.mp4")) == list(range(12)) and not work.exists()


def test_a_file_that_is_another_since_is_told(tmp_path: Path, inverter: Path, script: Path) -> None:
    source = film(tmp_path / "in", 4)
    (source / "000003.png").write_text("broken")
    arguments: Any = {"script": script, "chunk": 2}
    with pytest.raises(pf.InputError, match=r"000003\.png' is not a picture"):
        pf.process(source, tmp_path / "out", inverter, **arguments)
    script.write_text(INVERTER + "\n", encoding="utf-8")
    with pytest.raises(pf.InputError, match=r"another script file: .*overwrite"):
        pf.process(source, tmp_path / "out", inverter, **arguments)
    film(source, 4)
    assert pf.process(source, tmp_path / "out", inverter, **arguments, overwrite=True).resumed == 0
    with pytest.raises(pf.InputError, match="out' already exists"):
        pf.process(source, tmp_path / "out", inverter, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "line", "message"),
    [
        (1, "raise KeyError('lost')", "script.py failed at picture 0: KeyError: 'lost' in Inverter.update"),
        (2, "raise KeyError('lost')", "script.py failed at picture 0: KeyError: 'lost' in Inverter.update"),
        (
            2,
            "import os; os._exit(7)",
            "perframe ended with status 7; run the same command again to resume",
        ),
    ],
)
def test_a_script_that_fails_is_named(
    jobs: int, line: str, message: str, tmp_path: Path, inverter: Path, script: Path
) -> None:
    script.write_text(
        INVERTER.replace("        if self.asked.done:", f"        {line}\n        if self.asked.done:"),
        encoding="utf-8",
    )
    with pytest.raises(pf.InputError) as caught:
        pf.process(film(tmp_path / "in", 4), tmp_path / "out", inverter, script=script, chunk=2, jobs=jobs)
    said = str(caught.value).replace("at picture 2", "at picture 0")  # two processes begin at once
    assert message in said
    assert list((tmp_path / "out").iterdir()) == [] and media_threads() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "nothing.mp4"}, r"nothing\.mp4' does not exist"),
        ({"model": None}, "process needs a model, a script, or both"),
        ({"source": "camera"}, "camera 0 .* cannot be opened|has no beginning and no end"),
        ({"source": "scene:8x8"}, r"Scene has no end: say how many pictures .*--count"),
        ({"out": "a.txt"}, r"a\.txt' is not a video .*, a picture .* or a folder"),
        ({"out": "a.png"}, r"^'[^']*a\.png' is one file, and .* has 2 pictures: name a folder or a video"),
        ({"out": Path("a.png")}, r"^'[^']*a\.png' is one file"),
        ({"out": "a.png", "source": "in/000001.png", "suffix": ".jpg"}, r"a\.png is a file: `suffix` is for"),
        ({"out": "nowhere/out"}, "there is no folder"),
        ({"out": "in"}, "is the source itself"),
        ({"jobs": 0}, "jobs is an integer of at least 1"),
        ({"chunk": 0}, "chunk is an integer of at least 1"),
        ({"count": 0}, "count is a number of pictures"),
        ({"suffix": ".gif"}, "suffix is .npz or one of"),
        ({"script": "none.py"}, r"there is no script '.*none\.py'"),
        ({"script": "empty.py"}, r"empty\.py has no class derived from perframe\.Script"),
        ({"script": "wrong.py"}, r"the script '.*wrong\.py' cannot be run: SyntaxError"),
        ({"script": "wants.py"}, "Wants has the parameter colour"),
        ({"script": "plain.py"}, "Plain has no parameter `model`, so the model would not run"),
        ({"script": "bare.py"}, "update has no parameter `model`, so the model would not run"),
        ({"model": "half.onnx"}, r"x \(1, 3, 4, 4\) of float16 is not one picture of float32 or uint8, \(1, channels"),
        ({"model": "life"}, r"life\.onnx: the input state .* is not one picture"),
        ({"model": "two.onnx"}, r"two\.onnx has 2 inputs \(a .*\): give them to it in a script"),
        ({"model": "two.onnx", "backend": "gpu"}, "gpu"),
    ],
)
def test_what_cannot_be_is_an_error_before_anything_is_written(
    arguments: dict[str, Any], message: str, tmp_path: Path, inverter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnx import TensorProto, helper

    monkeypatch.chdir(tmp_path)
    film(tmp_path / "in", 2)
    Path("empty.py").write_text("", encoding="utf-8")
    Path("wrong.py").write_text("def", encoding="utf-8")
    Path("plain.py").write_text("import perframe as pf\nclass Plain(pf.Script): ...\n", encoding="utf-8")
    Path("bare.py").write_text("def update(frame): ...\n", encoding="utf-8")
    Path("wants.py").write_text(
        "import perframe as pf\nclass Wants(pf.Script):\n    def __init__(self, colour): ...\n", encoding="utf-8"
    )
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, 4, 4]) for name in "aby"]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "adder", infos[:2], infos[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), "two.onnx")
    halves = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1, 3, 4, 4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "half", halves[:1], halves[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), "half.onnx")
    given: dict[str, Any] = {"source": "in", "out": "out", "model": inverter, **arguments}
    with pytest.raises(pf.PerframeError, match=message):
        pf.process(given.pop("source"), given.pop("out"), given.pop("model"), **given)
    assert not Path("out").exists() or not list(Path("out").iterdir())
    assert not Path("out.work").exists(), "there is nothing to resume"


@pytest.mark.slow
def test_the_command(tmp_path: Path, inverter: Path, script: Path) -> None:
    film(tmp_path / "in.mp4", 6)
    command = [sys.executable, "-m", "perframe.command_line.cli", "process", "in.mp4", "--out", "out.mp4"]
    command += ["--model", str(inverter), "--script", str(script), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["pictures"] == 6 and report["out"] == str(tmp_path / "out.mp4")
    assert inverted(pictures(tmp_path / "out.mp4")) == list(range(6))
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 1 and "--overwrite" in again.stderr


def test_a_crash_while_joining_loses_nothing(tmp_path: Path, inverter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = film(tmp_path / "in.mp4", 6)

    def full(*_: object) -> None:
        raise pf.InputError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(processing, "join", full)
        with pytest.raises(pf.InputError, match="the disk is full"):
            pf.process(source, tmp_path / "out.mp4", inverter)
    assert pf.process(source, tmp_path / "out.mp4", inverter).resumed == 6
    assert inverted(pictures(tmp_path / "out.mp4")) == list(range(6))
