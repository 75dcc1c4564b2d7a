"""`perframe doctor`: the packages, drivers and backends of this machine, the missing ones, and how to get them.

Each driver and display is tried in a process of its own: a driver that crashes or hangs must not end the report.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from perframe.command_line.options import AsJson
from perframe.command_line.terminal import Console, console, say_json, table

Facts = Mapping[str, Any]
Status = Literal["ok", "note", "missing"]
PROBE_SECONDS = 60
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")  # Linux: packed weights lie in them, unless "never"
BACKEND_ADVICE = {
    "cpu": "pip install --force-reinstall numba llvmlite",
    "gpu_compute": "it needs OpenGL 4.3; a newer graphics driver may have it, and gpu_pixel works without it",
    "gpu_pixel": "it needs OpenGL 3.3: install or update the graphics driver",
}
DEVELOPERS = ("all", "dev", "release", "site", "torch", "zoo")  # extras that work on perframe itself needs
LIMITS = (
    "texture_size",
    "texture_buffer_size",
    "draw_buffers",
    "shader_storage_block_size",
    "compute_work_group_count",
    "compute_work_group_invocations",
)


def doctor(
    everything: Annotated[
        bool, typer.Option("--all", help="Also run a layer on each backend, open a window, and list all packages.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show whether this machine has what perframe needs, and how to get what is missing.

    Exit status 1 if something that perframe needs is missing.
    """
    checks = examine() if everything else glance()
    if as_json:
        say_json({"healthy": healthy(checks), "checks": [asdict(check) for check in checks]})
    else:
        show(checks, console())
        if not everything:
            typer.echo("perframe doctor --all tests each backend and lists packages and limits.")
    if not healthy(checks):
        raise typer.Exit(1)


@dataclass(frozen=True)
class Check:
    """The result of one check. Status "missing" means that perframe needs it, "note" that perframe works without it."""

    name: str
    status: Status
    found: str
    advice: str = ""
    facts: Facts = field(default_factory=dict)


def examine() -> list[Check]:
    """Run all checks, which takes a few seconds. Never raises for anything missing."""
    headless = _probe("describe_headless")
    has_gl = not isinstance(headless, str)
    return [
        Check("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        *_emulation(),
        *_packages(),
        _cache(),
        _headless(headless),
        _window(),
        _backend("cpu"),
        _kernels(),
        *(_backend(name) for name in ("gpu_compute", "gpu_pixel") if has_gl),
    ]


def glance() -> list[Check]:
    """Check what matters first, in less than a second: nothing is compiled, and no window opens."""
    from importlib import metadata

    headless = _probe("describe_driver")
    packages = [check for check in _packages() if check.status == "missing"]
    here = f"on Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return [
        Check("perframe", "ok", f"{metadata.version('perframe')} {here}"),
        *_emulation(),
        *packages,
        *(check for check in [_cache()] if check.status != "ok"),
        _headless(headless),
        _display(),
        Check("cpu", "ok", f"numba {metadata.version('numba')}") if not packages else Check("cpu", "note", "see above"),
        *([] if isinstance(headless, str) else _expected(headless)),
    ]


def _expected(driver: Facts) -> Iterator[Check]:
    """The GPU backends that a driver's version of OpenGL allows. A software driver computes on the processor."""
    from perframe.graphics.software import is_software

    major, minor = (int(part) for part in re.findall(r"\d+", driver["version"])[:2])
    by = ", by a software driver: cpu is faster" if is_software(driver["renderer"]) else ""
    for name, wanted in (("gpu_compute", (4, 3)), ("gpu_pixel", (3, 3))):
        if (major, minor) >= wanted:
            yield Check(name, "note" if by else "ok", f"OpenGL {major}.{minor} has it{by}")
        else:
            status: Status = "note" if name == "gpu_compute" else "missing"
            yield Check(name, status, f"the driver has OpenGL {major}.{minor}", _advice(name))


def _display() -> Check:
    """Whether there is a display for windows. None is opened."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return Check("window", "note", "no display: apps draw off screen", "xvfb-run -a makes a virtual one")
    return Check("window", "ok", "there is a display")


def _kernels() -> Check:
    """Which kernels of the CPU came compiled."""
    from perframe.backends import shipped_kernels

    try:
        return Check("kernels", "ok", shipped_kernels())
    except (ImportError, OSError, ValueError) as error:
        return Check("kernels", "note", str(error), "pip install --force-reinstall perframe")


def healthy(checks: list[Check]) -> bool:
    """Whether no check has the status "missing"."""
    return all(check.status != "missing" for check in checks)


def show(checks: list[Check], console: Console) -> None:
    """Print the report for a person."""
    from rich.text import Text

    signs = {"ok": Text("✓", "green"), "note": Text("–", "yellow"), "missing": Text("✗", "red")}
    rows = table(show_header=False)
    for check in checks:
        rows.add_row(signs[check.status], Text(check.name, "bold"), Text(check.found))
        if check.facts:
            facts = ", ".join(f"{name.replace('_', ' ')} {_readable(value)}" for name, value in check.facts.items())
            rows.add_row("", "", Text(facts, "dim"))
        if check.advice:
            rows.add_row("", "", Text(f"→ {check.advice}", "yellow"))
    console.print(rows)
    missing = [check.name for check in checks if check.status == "missing"]
    said = ("\nMissing:", "red") if missing else ("\nEverything needed is here.", "green")
    console.print(Text.assemble(said, f" {', '.join(missing)}" * bool(missing)))


def _emulation() -> Iterator[Check]:
    """Tell where an emulator runs this process."""
    if is_translated():
        advice = "install a Python for arm64: this one has neither the wide vectors of x86 nor those of this processor"
        yield Check("processor", "note", "x86-64, which Rosetta emulates", advice)


def is_translated() -> bool:
    """Whether this is a program for x86-64 that macOS runs on arm64."""
    from perframe.c_functions import sysctl

    return sys.platform == "darwin" and sysctl("sysctl.proc_translated") == 1


def _packages() -> Iterator[Check]:
    """Check the packages that perframe's metadata requires here. An absent one is "missing"; those of an extra are one
    "note" together.
    """
    from importlib import metadata

    versions: dict[str, str] = {}
    missing: list[str] = []
    extras: dict[str, list[str]] = {}
    others = {*DEVELOPERS}  # extras, and those that begin with a package of another system
    for requirement in metadata.requires("perframe") or ():
        matched = re.match(r"[\w.-]+", requirement)
        assert matched, requirement
        name, of = matched.group(), re.search(r"extra == ['\"](\w+)['\"]", requirement)
        system = re.search(r"sys_platform == ['\"](\w+)['\"]", requirement)
        if of and system and system.group(1) != sys.platform:
            others.add(of.group(1))
        if of and of.group(1) in others:
            continue
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            if of:
                extras.setdefault(of.group(1), []).append(name)
            else:
                missing.append(requirement)
    yield Check("packages", "ok", f"{len(versions)} installed", facts=versions)
    for requirement in missing:
        name = re.split(r"[^\w.-]", requirement)[0]
        yield Check(name, "missing", "not installed", f"pip install '{requirement}'")
    for extra, names in sorted(extras.items()):
        yield Check(f"extra {extra}", "note", f"not installed: {', '.join(names)}", f"pip install 'perframe[{extra}]'")


def _cache() -> Check:
    """Whether compiled kernels can be kept in the cache folder. Nothing stays in it."""
    import tempfile

    from perframe.resources import cache_folder

    folder = place = cache_folder().absolute()
    while not place.exists():
        place = place.parent
    try:
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        found = f"{folder} cannot be written ({error.strerror}): each start compiles kernels again"
        return Check("cache", "note", found, "PERFRAME_CACHE names another folder")
    return Check("cache", "ok", str(folder))


def _headless(probed: Facts | str) -> Check:
    from perframe.graphics.headless_context import install_advice

    if isinstance(probed, str):
        advice = install_advice()  # the error has it too
        return Check("OpenGL, headless", "missing", probed.replace(f": {advice}", ""), advice)
    limits = {name: value for name, value in probed.items() if name.startswith("max_")}
    return Check("OpenGL, headless", "ok", _driver(probed), facts=limits)


def _window() -> Check:
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return Check("OpenGL, window", "note", "no display: demos run headless", "xvfb-run -a makes a virtual one")
    probed = _probe("describe_window")
    if isinstance(probed, str):
        return Check("OpenGL, window", "note", probed, "demos run headless; a graphics driver brings windows")
    return Check("OpenGL, window", "ok", _driver(probed))


def _backend(name: str) -> Check:
    """Check whether a backend computes. For gpu_compute a failure is only a note: macOS has none, but has gpu_pixel."""
    probed = _probe("try_backend", name)
    if isinstance(probed, str):
        return Check(name, "note" if name == "gpu_compute" else "missing", probed, _advice(name))
    return Check(name, "ok", "computes", facts=probed)


def _advice(backend: str) -> str:
    if backend == "gpu_compute" and sys.platform == "darwin":
        return "macOS ends at OpenGL 4.1: use gpu_pixel"
    return BACKEND_ADVICE[backend]


def describe_headless() -> Facts:
    """Return the facts of the driver of headless contexts. Raises BackendError; may crash with the driver."""
    from perframe.host.headless import HeadlessSurface

    return _describe(HeadlessSurface((16, 16)).ctx)


def describe_driver() -> Facts:
    """Return the version and the name of the driver of headless contexts. Raises BackendError; may crash with it."""
    from perframe.graphics.headless_context import headless_information

    info = headless_information()
    return {"vendor": info["GL_VENDOR"], "renderer": info["GL_RENDERER"], "version": info["GL_VERSION"]}


def describe_window() -> Facts:
    """Return the facts of the driver of windows. It shows a window for a moment. Raises BackendError; may crash with
    the driver.
    """
    from perframe.host.window import Window

    return _describe(Window((64, 64), "perframe doctor").ctx)


def try_backend(name: str) -> Facts:
    """Run one layer on a backend, and return its facts. Raises BackendError; may crash with the driver."""
    import numpy as np

    import perframe as pf
    from perframe.ir import Value

    shape = pf.DynamicTensorShape((4,))
    values = [Value(value, pf.DataType.FLOAT32, shape) for value in ("x", "y")]
    model = pf.Model(values[:1], values[1:], [pf.Layer("Relu", "relu", ["x"], ["y"])], {})
    y = pf.run(model, {"x": np.array([-2, -1, 1, 2], np.float32)}, backend=pf.BackendType(name), strict=True)["y"]
    if y.tolist() != [0, 0, 1, 2]:
        raise pf.BackendError(f"wrong result: Relu gave {y.tolist()} where [0, 0, 1, 2] is right")
    if name != "cpu":
        return {}
    extensions = np.show_config(mode="dicts")["SIMD Extensions"]
    found = [*extensions["baseline"], *extensions.get("found", ())]
    facts: dict[str, Any] = {"threads": os.cpu_count(), "vector_extensions": found}
    if HUGE_PAGES.is_file():
        facts["huge_pages"] = HUGE_PAGES.read_text(encoding="ascii").partition("[")[2].partition("]")[0]
    return facts


def _describe(context: Any) -> Facts:
    """The driver of a GL context, and the limits that matter to kernels."""
    names = {f"max_{name}": f"GL_MAX_{name.upper()}" for name in LIMITS}
    names |= {"vendor": "GL_VENDOR", "renderer": "GL_RENDERER", "version": "GL_VERSION"}
    return {name: context.info[key] for name, key in names.items() if context.info.get(key)}


def _probe(function: str, *arguments: str) -> Facts | str:
    """Call a function of this module in another process. Return its result, or the reason of its failure as text."""
    from perframe.conversion.processes import is_crash, status_text

    call = f"doctor.{function}(*{arguments})"
    code = f"import json; from perframe.command_line.commands import doctor; print(json.dumps({call}))"
    try:
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        command = [sys.executable, "-c", code]
        run = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=PROBE_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        return f"gave no answer within {PROBE_SECONDS} s"
    if is_crash(run.returncode):
        return f"crashed with {status_text(run.returncode)}"
    if run.returncode > 0:
        last = (run.stderr.strip().splitlines() or ["failed without a message"])[-1]
        return re.sub(r"^perframe\.errors\.\w+: ", "", last)
    facts: Facts = json.loads(run.stdout.splitlines()[-1])
    return facts


def _driver(probed: Facts) -> str:
    return f"{probed['version']}, {probed['renderer']} ({probed['vendor']})"


def _readable(value: Any) -> str:
    if isinstance(value, list):
        return (
            "×".join(str(item) for item in value) if all(isinstance(item, int) for item in value) else " ".join(value)
        )
    return f"{value >> 20} Mi" if isinstance(value, int) and value and value % (1 << 20) == 0 else str(value)
