"""Fixtures of the conversions: Pythons with a framework, and files that it wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import perframe as pf
from conversion.pythons import python_with, write_files
from perframe.conversion.converting import Conversion
from support import unavailable

Convert = Callable[..., Conversion]


@pytest.fixture(scope="session")
def torch_python() -> Path:
    python = python_with("torch")
    if python is None:
        unavailable("no Python has PyTorch: pip install -e '.[torch]', or set PERFRAME_TORCH_PYTHON")
    return python


@pytest.fixture(scope="session")
def torch_files(torch_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of files that PyTorch wrote."""
    folder = tmp_path_factory.mktemp("torch_files")
    write_files("torch", torch_python, folder)
    return folder


@pytest.fixture(scope="session")
def tensorflow_python() -> Path:
    python = python_with("tensorflow")
    if python is None:
        pytest.skip("no Python has TensorFlow and tf2onnx: set PERFRAME_TENSORFLOW_PYTHON to one that has")
    return python


@pytest.fixture(scope="session")
def tensorflow_files(tensorflow_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of files that TensorFlow wrote."""
    folder = tmp_path_factory.mktemp("tensorflow_files")
    write_files("tensorflow", tensorflow_python, folder)
    return folder


@pytest.fixture(scope="session")
def sklearn_python() -> Path:
    python = python_with("sklearn")
    if python is None:
        pytest.skip("no Python has scikit-learn and skl2onnx: set PERFRAME_SKLEARN_PYTHON to one that has")
    return python


@pytest.fixture(scope="session")
def sklearn_files(sklearn_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of files that scikit-learn wrote."""
    folder = tmp_path_factory.mktemp("sklearn_files")
    write_files("sklearn", sklearn_python, folder)
    return folder


@pytest.fixture
def by_torch(torch_python: Path, torch_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Convert:
    """Converts a file that PyTorch wrote, with verification. The current folder has the code of the networks."""
    monkeypatch.chdir(torch_files)

    def convert(name: str, target: str = "made.onnx", **options: Any) -> Conversion:
        return pf.convert(torch_files / name, tmp_path / target, verify=True, python=torch_python, **options)

    return convert


@pytest.fixture
def by_tensorflow(tensorflow_python: Path, tensorflow_files: Path, tmp_path: Path) -> Convert:
    """Converts a file that TensorFlow wrote, with verification."""

    def convert(name: str, target: str = "made.onnx", **options: Any) -> Conversion:
        python = tensorflow_python
        return pf.convert(tensorflow_files / name, tmp_path / target, verify=True, python=python, **options)

    return convert
