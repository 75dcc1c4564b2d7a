"""Which families of layers have GL kernels is read from their files."""

from __future__ import annotations

from perframe.backends.gl.families import names


def test_files_that_lower_layers_are_families() -> None:
    found = names()
    assert found > {"conv", "conv_transpose", "nms"} and not found & {"backend", "compute", "steps", "text"}
