"""Frame loops that go on for long leave nothing behind. PERFRAME_SOAK=full runs them for as long as make soak does."""

from __future__ import annotations

import os

import pytest

from fresh import run_fresh
from soak import host_scenarios as host_scenarios  # it adds its own
from soak import state_scenarios as state_scenarios
from soak.scenarios import ALL, SCENARIOS, SILERO
from soak.watch import SAMPLES, Report
from support import unavailable

ASKED = os.environ.get("PERFRAME_BACKENDS", ",".join(ALL)).split(",")
FULL = os.environ.get("PERFRAME_SOAK") == "full"
RUN = "import sys; from soak.__main__ import main; main(*sys.argv[1:])"
CASES = [
    pytest.param(name, backend, id=f"{name}-{backend}")
    for name, scenario in SCENARIOS.items()
    for backend in scenario.backends
    if backend in ASKED
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "backend"), CASES)
def test_nothing_grows(name: str, backend: str, request: pytest.FixtureRequest) -> None:
    if name == "voice" and not SILERO.is_file():
        pytest.skip(f"{SILERO} is not here")
    version = 0 if backend == "cpu" else request.getfixturevalue("gl_context").version_code
    if backend == "gpu_compute" and version < 430:
        unavailable("gpu_compute needs GL 4.3")
    scenario = SCENARIOS[name]
    count = scenario.full if FULL else scenario.short
    print(run_fresh(RUN, name, backend, str(count), seconds=3600 if FULL else 300))


FRAMES = """
import sys
from collections import Counter
import moderngl
from soak.host_scenarios import painter

frames, seen = painter(sys.argv[1], moderngl.create_context(standalone=True, backend="egl")), []

def note(frame, event, argument):
    if event in ("call", "c_call"):
        seen[-1][frame.f_code.co_qualname if event == "call" else argument.__qualname__] += 1

for index in range(100):
    if index == 40:  # it is warm
        sys.setprofile(note)
    seen.append(Counter())
    next(frames)
sys.setprofile(None)
for index, others in enumerate(seen[41:-1], 41):  # the last one ends the notes
    assert others == seen[40], (index, others - seen[40], seen[40] - others)
assert sum(seen[40].values()) > 100
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", [backend for backend in ASKED if backend != "cpu"])
def test_each_frame_makes_the_same_calls(backend: str, request: pytest.FixtureRequest) -> None:
    """No frame of the painter tidies up for the others, so that none takes longer for what we do."""
    if backend == "gpu_compute" and request.getfixturevalue("gl_context").version_code < 430:
        unavailable("gpu_compute needs GL 4.3")
    run_fresh(FRAMES, backend)


LEAKS = """
import os, threading
import moderngl, numpy as np, perframe as pf
from perframe.backends.gl.context.device import Device
from perframe.backends.gl.context.devices import device_for
from soak.watch import watch

ctx = moderngl.create_context(standalone=True, backend="egl")
device, kept, ended = device_for(ctx), [], threading.Event()
device.gl  # fences are counted from the first sample on
leaks = {
    "descriptors": lambda: os.open("/dev/null", os.O_RDONLY),
    "threads": lambda: threading.Thread(target=ended.wait, daemon=True).start(),
    "GL Buffers": lambda: ctx.buffer(reserve=16),
    "GL Framebuffers": lambda: ctx.framebuffer([ctx.texture((1, 1), 4)]),
    "GL fences": lambda: device.gl.glFenceSync(0x9117, 0),
    "Python's blocks": lambda: [[] for _ in range(20)],
    "memory": lambda: np.ones(1 << 20, np.uint8),
    "tensor.storage.HostStorage": lambda: pf.Tensor(np.ones(4, np.float32)),
}

def rounds(leak, keep):
    while True:
        made = leak() if keep else None
        kept.append(made)
        if not keep:
            kept.pop()
        yield

for what, leak in leaks.items():
    found = [line.split(" grew")[0] for line in watch(rounds(leak, True), 54).too_much()]
    assert what in found, (what, found)
assert not watch(rounds(leak, False), 54).too_much()
ended.set()
"""


@pytest.mark.slow
def test_what_grows_is_seen(gl_context: object) -> None:
    run_fresh(LEAKS)


@pytest.mark.parametrize(
    ("counts", "grows"),
    [
        ([5] * SAMPLES, False),
        ([5, 9, 5, 9, 5, 9, 5, 9, 5], False),  # up and down
        ([9, 5, 9, 5, 5, 5, 5, 5, 5], False),
        (list(range(SAMPLES)), True),
        ([0, 0, 0, 0, 1, 1, 1, 1, 1], True),
    ],
)
def test_only_lasting_growth_counts(counts: list[int], grows: bool) -> None:
    report = Report([{"descriptors": count} for count in counts], 10)
    assert bool(report.too_much()) is grows
