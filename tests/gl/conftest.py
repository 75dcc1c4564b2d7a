"""The GL backends, one after the other."""

from __future__ import annotations

from typing import Any

import pytest

from support import GL_BACKENDS, unavailable


@pytest.fixture(params=GL_BACKENDS)
def where(request: pytest.FixtureRequest, gl_context: Any) -> str:
    """The name of a GL backend."""
    name: str = request.param
    if name == "gpu_compute" and gl_context.version_code < 430:
        unavailable("gpu_compute needs GL 4.3")
    return name
