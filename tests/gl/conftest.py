"""The GL backends, one after the other."""

from __future__ import annotations

import os
from typing import Any

import pytest

from support import unavailable

BOTH = ("gpu_compute", "gpu_pixel")
ASKED = [name for name in os.environ.get("PERFRAME_BACKENDS", ",".join(BOTH)).split(",") if name in BOTH]


@pytest.fixture(params=ASKED)
def where(request: pytest.FixtureRequest, gl_context: Any) -> str:
    """The name of a GL backend."""
    name: str = request.param
    if name == "gpu_compute" and gl_context.version_code < 430:
        unavailable("gpu_compute needs GL 4.3")
    return name
