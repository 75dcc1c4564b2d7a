"""The fixtures of all tests: the backends, one OpenGL context a process, and the files beside the checkout.

PERFRAME_BACKENDS=cpu,gpu_pixel restricts the backends. One that cannot be had here fails in CI and skips elsewhere.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import glfw
import moderngl
import pytest
from hypothesis import settings

import quick
from fresh import virtual_screen
from perframe.backends.cpu.compile import compile_process, compilers
from support import unavailable

ROOT = Path(__file__).resolve().parents[1]
ALL_BACKENDS = ("cpu", "gpu_compute", "gpu_pixel")
BACKENDS = tuple(name for name in os.environ.get("PERFRAME_BACKENDS", ",".join(ALL_BACKENDS)).split(",") if name)
INSTALL_GL = "apt-get install libegl1 libgl1 libgl1-mesa-dri"

if unknown := set(BACKENDS) - set(ALL_BACKENDS):
    raise pytest.UsageError(f"PERFRAME_BACKENDS names {', '.join(unknown)}; there are {', '.join(ALL_BACKENDS)}")


# tests are of kernels: no run computes with NumPy until they are compiled, except where a test wants that
os.environ.setdefault("PERFRAME_INTERPRET", "0")
# and of importers and passes: no load finds a model that an earlier one has kept, except in the tests of that
os.environ.setdefault("PERFRAME_KEEP_MODELS", "0")

# each of pytest's processes keeps one that compiles: a further one imports Numba, and lowers again what kernels share
os.environ.setdefault("PERFRAME_COMPILERS", "1")
compilers.IDLE = compile_process.ORPHANED - 10

# CI draws the same examples every time, so that it fails for a change and not for a draw
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

# exports are made with PyTorch and with libraries on it, extras of their own because they are large; CI has them
WITHOUT_TORCH = find_spec("torch") is None and not os.environ.get("CI")
WITHOUT_ZOO = any(find_spec(name) is None for name in ("timm", "torchvision", "transformers")) and not os.environ.get(
    "CI"
)
OF_TORCH = [
    "functional/test_with_torch.py",
    "models/test_static_caches.py",
    "models/test_torch.py",
    "layers/test_contrib_models.py",
    "tensor/test_torch_memory.py",
]
OF_THE_ZOO = ["models/test_architectures.py", "models/test_decoders.py"]
OF_ONNX = ["conformance/test_conformance.py", "conformance/test_exports.py"]  # cases that onnx computes for seconds
SLOW_FIXTURES = {"torch_python", "tensorflow_python", "sklearn_python"}
collect_ignore = [*(OF_TORCH if WITHOUT_TORCH else []), *(OF_THE_ZOO if WITHOUT_ZOO else [])]


def pytest_report_header() -> list[str]:
    """Report tests that are left out, and how to run them."""
    left_out = {"PyTorch's exports": ("torch", WITHOUT_TORCH), "architectures of libraries": ("zoo", WITHOUT_ZOO)}
    return [
        f"{what} are left out: pip install -e '.[{extra}]'" for what, (extra, without) in left_out.items() if without
    ]


def pytest_configure(config: pytest.Config) -> None:
    """Lets Ctrl-C interrupt this process and those that it starts: a shell has its background jobs ignore SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("quick"):
        # importing the libraries, and the cases, takes longer than most tests
        collect_ignore.extend(OF_TORCH + OF_THE_ZOO + OF_ONNX)
        # small shaders that run a few times: llvmpipe's optimizations take longer than what they save
        os.environ.setdefault("GALLIVM_PERF", "nopt")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --quick."""
    parser.addoption("--quick", action="store_true", help="a part of the tests that covers each function and backend")


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests by what they use, so that `-m backend` and `-m "not gl"` need no decorators; chooses quick ones."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "backend" in fixtures:
            item.add_marker("backend")
        if "gl_context" in fixtures:
            item.add_marker("gl")
        if not SLOW_FIXTURES.isdisjoint(fixtures):
            item.add_marker("slow")
    if config.getoption("quick"):
        items[:], left_out = quick.chosen(items)
        if not hasattr(config, "workerinput"):  # in a worker process the terminal's reporter would keep them
            config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Leaves the tests themselves out of all later searches for garbage: they are most of a process's objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No object is frozen, as in a program that doesn't care."""
    from perframe.safety import collection

    monkeypatch.setattr(collection, "_caller_froze", False)
    gc.unfreeze()
    yield
    gc.freeze()


@cache
def create_gl_context() -> Any:
    """The process's only context, GL 4.3 or else 3.3; the exception if none can be made."""
    import moderngl

    for version in (430, 330):
        try:
            return moderngl.create_context(standalone=True, backend="egl", require=version)
        except Exception as error:  # moderngl raises Exception itself
            failure = error
    return failure


@pytest.fixture(scope="session")
def gl_session() -> Iterator[Any]:
    """The context of `gl_context`, for fixtures that live as long."""
    context = create_gl_context()
    if isinstance(context, Exception):
        unavailable(f"no OpenGL context: {context}; try: {INSTALL_GL}")
    yield context
    context.release()


@pytest.fixture
def gl_context(gl_session: Any) -> Iterator[Any]:
    """A headless OpenGL context, shared by all tests of the process, and current. A test leaves no error in it."""
    gl_session.__enter__()  # an earlier test may have made another one current
    yield gl_session
    gl_session.__enter__()
    assert gl_session.error == "GL_NO_ERROR"
    if isinstance(getattr(gl_session.fbo, "mglo", None), moderngl.InvalidObject):  # the bound one was released
        gl_session.simple_framebuffer((1, 1)).use()
        assert gl_session.error == "GL_INVALID_OPERATION"  # moderngl binds the released one once more


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """The name of a backend; the test runs once for each."""
    name: str = request.param
    if name != "cpu":
        context = request.getfixturevalue("gl_context")
        if name == "gpu_compute" and context.version_code < 430:
            unavailable(f"gpu_compute needs GL 4.3; this is {context.version_code / 100:.1f}")
    return name


@pytest.fixture(scope="session")
def screen() -> Iterator[str]:
    """A virtual screen for windows."""
    if sys.platform != "linux":
        pytest.skip("Xvfb is for Linux")
    with virtual_screen() as name:
        yield name


@pytest.fixture
def display(screen: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """DISPLAY names a virtual screen. Later tests may have none, and glfw forgets this one."""
    monkeypatch.setenv("DISPLAY", screen)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    yield
    glfw.terminate()


@pytest.fixture
def backend_context(request: pytest.FixtureRequest, backend: str) -> Any:
    """The `ctx` for a worker on `backend`: the shared OpenGL context, or None for the CPU."""
    return None if backend == "cpu" else request.getfixturevalue("gl_context")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of models and pictures beside the checkout, which are not the project's own."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip(f"{path} is not here: real models and pictures to test with")
    return path


@pytest.fixture(scope="module")  # Playwright has an event loop run in this thread as long as it is there
def browser() -> Iterator[Any]:
    """Chromium without a window, for pages."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        unavailable("no Chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()
