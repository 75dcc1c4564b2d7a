"""The GL backends, one after the other."""

from __future__ import annotations

import os
from typing import Any

import pytest

BOTH = ("gpu_compute", "gpu_pixel")
ASKED = [name for name in os.environ.get("PERFRAME_BACKENDS", ",".join(BOTH)).split(",") if name in BOTH]


@pytest.fixture(params=ASKED)
def where(request: pytest.FixtureRequest, gl_context: Any) -> str:
    """The name of a GL backend; in CI each that is asked for must be there."""
    name: str = request.param
    if name == "gpu_compute" and gl_context.version_code < 430:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("gpu_compute needs GL 4.3")
    return name
