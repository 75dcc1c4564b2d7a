"""The GL backends, one after the other."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from gl.cuda_stand_in import Runtime
from support import GL_BACKENDS, unavailable


@pytest.fixture(params=GL_BACKENDS)
def where(request: pytest.FixtureRequest, gl_context: Any) -> str:
    """The name of a GL backend."""
    name: str = request.param
    if name == "gpu_compute" and gl_context.version_code < 430:
        unavailable("gpu_compute needs GL 4.3")
    return name


@pytest.fixture
def cuda(gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """The stand-in, installed as the package's module."""
    runtime = Runtime(gl_context)
    bindings = ModuleType("cuda.bindings")
    bindings.runtime = runtime  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    return runtime
