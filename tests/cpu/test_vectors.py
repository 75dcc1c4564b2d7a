"""The kernels for the vectors of other CPUs, if this CPU can run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = ("conv_kernels", "matmul", "packed", "pool", "quantized", "rounded_products")
TESTS = (*(f"tests/layers/test_{family}.py" for family in FAMILIES), "tests/cpu/test_bfloat.py")


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["8x16", "4x32"])
def test_kernels_of_other_vectors(vectors: str, tmp_path: Path) -> None:
    """AVX2 and NEON. Transforms that need wide vectors stay out with narrow ones, and say so."""
    environment = {**os.environ, "PERFRAME_VECTORS": vectors, "PERFRAME_CACHE": str(tmp_path)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    chosen = "not gpu and not pay" if vectors.startswith("4") else "not gpu"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", "-k", chosen]
    run = [*command, *TESTS]
    done = subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
