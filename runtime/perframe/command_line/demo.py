"""`perframe demo`: finds the shipped demos, and loads one by its path."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

from perframe.errors import PerframeError
from perframe.resources import resource

Main = Callable[[list[str]], int]


def demos() -> dict[str, Path]:
    """The demos by name: `demos/NAME.py`, or `demos/NAME/__main__.py`."""
    folder = resource("demos")
    files = {path.stem: path for path in folder.glob("*.py") if not path.stem.startswith("_")}
    packages = {path.parent.name: path for path in folder.glob("*/__main__.py")}
    return dict(sorted({**files, **packages}.items()))


def load_demo(name: str) -> Main:
    """Return a demo's `main(argv)`, which returns an exit status. Raises PerframeError if it has none."""
    path = demos()[name]
    is_package = path.name == "__main__.py"
    module_name = f"perframe_demo_{name}"
    spec = importlib.util.spec_from_file_location(
        module_name, path, submodule_search_locations=[str(path.parent)] if is_package else None
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.parent))  # like `python demos/NAME`
    spec.loader.exec_module(module)
    main: Main | None = getattr(module, "main", None)
    if main is None:
        raise PerframeError(f"the demo {name} ({path}) has no main(argv)")
    return main
