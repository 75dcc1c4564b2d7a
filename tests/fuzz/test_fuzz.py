"""A short campaign, and the cases that once failed. Long ones: `make fuzz N=100000`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from fuzz import cases, seeds
from fuzz.campaign import Settings, campaign, results
from fuzz.outcome import FAILURES, Outcome, difference, explained, known_differences, run
from fuzz.own_files import FORMATS

COUNT = 1000
FILES = 150  # of each form
CASES = sorted(path for path in (Path(__file__).parent / "cases").iterdir() if path.suffix in (".onnx", ".perframe"))


@pytest.mark.slow
def test_mutated_models_run_or_are_refused() -> None:
    """Nothing but errors of ours, in time, and results that are onnxruntime's."""
    report = campaign(COUNT, Settings(campaign=12))
    assert report.counts.total() == COUNT and report.counts["agrees"] > COUNT // 5
    told = [f"{outcome.kind} {case.name}: {outcome.detail} {case.done}" for case, outcome in report.failures]
    assert not told, "\n".join(told)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_mutated_files_of_our_own_run_or_are_refused(format: str) -> None:
    report = campaign(FILES, Settings(campaign=4, format=format))
    assert report.counts.total() == FILES and report.counts["ran"] > FILES // 20 and report.counts["typed"] > FILES // 3
    told = [f"{outcome.kind} {case.name}: {outcome.detail} {case.done}" for case, outcome in report.failures]
    assert not told, "\n".join(told)


@pytest.mark.slow
def test_mutated_litert_files_run_or_are_refused() -> None:
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert, which writes the files")
    report = campaign(COUNT // 2, Settings(campaign=12, format="litert"))
    assert report.counts.total() == COUNT // 2 and report.counts["ran"] > COUNT // 20
    told = [f"{outcome.kind} {case.name}: {outcome.detail} {case.done}" for case, outcome in report.failures]
    assert not told, "\n".join(told)


@pytest.mark.slow
def test_mutated_sentis_files_run_or_are_refused() -> None:
    report = campaign(5 * COUNT, Settings(campaign=3, format="sentis"))
    assert report.counts.total() == 5 * COUNT and report.counts["ran"] > COUNT // 2 and report.counts["typed"] > COUNT
    told = [f"{outcome.kind} {case.name}: {outcome.detail} {case.done}" for case, outcome in report.failures]
    assert not told, "\n".join(told)


def test_mutated_sentis_files_load_or_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the test above that takes no time: the files are not run."""
    from fuzz.sentis import sentis_seeds

    monkeypatch.setenv("PERFRAME_MAX_TENSOR_BYTES", str(1 << 24))
    known, loaded, refused = list(sentis_seeds()), 0, 0
    for number in range(FILES):
        try:
            pf.load(cases.make(known, 3, number).data, optimize=False)
            loaded += 1
        except pf.PerframeError:
            refused += 1
    assert loaded > FILES // 10 and refused > FILES // 4


@pytest.mark.slow
def test_mutated_files_of_other_frameworks_are_told_apart_or_refused() -> None:
    from fuzz.foreign_files import SEEDS, campaign

    counts = campaign(60, seed=5)
    assert counts.keys() == SEEDS.keys()
    for kind, found in counts.items():
        assert found.total() == 60, kind
    taken = sum(found.total() - found["refused"] for found in counts.values())
    assert taken > 60  # they come further than the first bytes


@pytest.mark.slow
def test_what_once_failed(tmp_path: Path) -> None:
    (tmp_path / "seeds").write_bytes(b"\x80\x04].")  # an empty list, pickled
    ended = dict(results(map(str, CASES), Settings(), tmp_path / "seeds"))
    assert len(ended) == len(CASES) > 0
    failed = {Path(path).name: outcome for path, outcome in ended.items() if outcome.kind in FAILURES}
    assert not failed, failed


def test_a_case_is_its_number() -> None:
    from fuzz.graphs import graphs

    known = list(graphs())
    for number in range(50):
        one, other = (cases.make(known, 3, number) for _ in range(2))
        assert one.data == other.data and one.done == other.done and one.inputs.keys() == other.inputs.keys()


def test_a_case_is_read_as_it_was_saved(tmp_path: Path) -> None:
    from fuzz.graphs import graphs

    case = cases.make(list(graphs()), 3, 1)
    again = cases.saved(case.save(tmp_path))
    assert again.data == case.data and again.inputs.keys() == case.inputs.keys()


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["signal", "hang"])
def test_a_child_that_dies_or_hangs_is_seen(ends: str, tmp_path: Path) -> None:
    """A child whose case ends so is replaced, and the next case runs."""
    (tmp_path / "seeds").write_bytes(b"\x80\x04].")
    words = {"signal": "os.kill(os.getpid(), 11)", "hang": "__import__('time').sleep(60)"}
    patch = tmp_path / "sitecustomize.py"
    patch.write_text(
        "import os, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'onnxruntime':\n"
        "            return None\n"
        f"        if name == 'perframe.execution.worker' and not os.path.exists({str(tmp_path / 'done')!r}):\n"
        f"            open({str(tmp_path / 'done')!r}, 'w').close()\n"
        f"            {words[ends]}\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    settings = Settings(seconds=20, environment={"PYTHONPATH": str(tmp_path)})
    kinds = [outcome.kind for _, outcome in results([str(CASES[0]), f"{CASES[0]}"], settings, tmp_path / "seeds")]
    assert kinds[0] == ends and kinds[1] not in FAILURES


def test_halves_are_compared_as_halves() -> None:
    """Floats need to be near, whole numbers need not, and what no half holds counts for nothing."""
    want = {"y": np.array([100.0, 2.0], np.float32), "i": np.array([3])}
    made = {"y": np.array([101.0, 2.1], np.float32), "i": np.array([4])}
    assert not difference(made, want, rounded=True) and difference(made, want).startswith("y values")
    assert difference({"y": made["y"] * 1.1}, want, rounded=True).startswith("y values")
    assert difference({"y": made["y"][:1]}, want, rounded=True).startswith("y shape")
    assert not difference({"y": np.array([np.inf, 2], np.float32)}, {"y": np.array([7e4, 2], np.float32)}, rounded=True)


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("where", ["gpu_compute", "gpu_pixel"])
def test_cases_run_with_halves(where: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from fuzz.graphs import graphs

    known, asked, worker = list(graphs()), list[dict[str, Any]](), pf.Worker
    monkeypatch.setattr(pf, "Worker", lambda *given, **options: (asked.append(options), worker(*given, **options))[1])
    kinds = {run(cases.make(known, 3, number), where, gl_context, "float16")[0].kind for number in range(12)}
    assert "ran" in kinds and all(options == {"weights": "float16", "activations": "float16"} for options in asked)


def test_known_differences_have_reasons() -> None:
    assert known_differences() and all(reason for _, reason in known_differences())
    assert explained(Outcome("differs", "Cast: y dtype float8_e5m2 for uint8")).kind == "explained"
    assert explained(Outcome("differs", "Relu: y values float32")).kind == "differs"


@pytest.mark.slow
def test_seeds_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert seeds.write(tmp_path / "seeds") == len(seeds.read(tmp_path / "seeds")) > 1000
