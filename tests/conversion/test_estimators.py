"""Estimators of scikit-learn: their pickles are read and not run, and the converted files agree."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from conversion.handmade import ESTIMATOR, mapping, name, number, sizes, text, whole, written
from perframe.conversion import environments, estimators
from perframe.conversion.converting import Conversion
from perframe.conversion.detection import detect
from perframe.errors import ConversionError


def array(shape: tuple[int, ...], dtype: str, content: bytes, padding: bytes = b"", elsize: int = -1) -> bytes:
    """An array as joblib writes it: an object that stands for it, and its bytes behind it."""
    state = b"(" + number(3) + text("|") + b"NNN" + number(elsize) + number(-1) + number(0) + b"t"
    kind = name("numpy", "dtype") + b"(" + text(dtype) + b"\x89\x88tR" + state + b"b"
    items = {"shape": sizes(*shape), "dtype": kind, "order": text("C")}
    if padding:
        items["numpy_array_alignment_bytes"] = number(16)
    made = name("joblib.numpy_pickle", "NumpyArrayWrapper") + b")\x81" + mapping(items) + b"b"
    return made + padding + content


def estimator(**fields: bytes) -> bytes:
    made = name("sklearn.linear_model._base", "LinearRegression") + b")\x81"
    return whole(made + mapping(fields) + b"b")


def test_arrays_behind_their_objects_are_passed_over(tmp_path: Path) -> None:
    objects = whole(name("thing", "Inside") + b")\x81")
    content = estimator(
        coef_=array((2, 3), "f8", b"." * 48),
        padded=array((3,), "f4", b"R" * 12, padding=b"\x02\xff\xff"),
        texts=array((2,), "U3", b"x" * 24, elsize=12),
        objects=array((2,), "O8", objects),
        last=name("thing", "Behind") + b")\x81",
    )
    found = detect(written(tmp_path, "estimator", content))
    assert found.kind.name == "estimator" and {"thing.Inside", "thing.Behind"} <= set(found.calls)


@pytest.mark.parametrize(
    "pack",
    [zlib.compress, gzip.compress, bz2.compress, lzma.compress, lambda data: lzma.compress(data, lzma.FORMAT_ALONE)],
)
def test_compressed_files(tmp_path: Path, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    content = estimator(coef_=array((100,), "f8", bytes(800)))
    path = written(tmp_path, "estimator", pack(content))
    assert detect(path).kind.name == "estimator"
    path.write_bytes(pack(content)[:40])
    with pytest.raises(ConversionError, match="copy it again"):
        detect(path)
    path.write_bytes(pack(b"some text"))
    with pytest.raises(ConversionError, match="cannot be converted"):
        detect(path)
    monkeypatch.setattr(estimators, "MAX_ESTIMATOR", 100)
    path.write_bytes(pack(content))
    with pytest.raises(ConversionError, match="would unpack to more than 100 bytes"):
        detect(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (estimator(coef_=array((2, 3), "f8", bytes(20))), "an array that is cut"),
        (estimator(coef_=array((1 << 30, 1 << 30), "f8", b"")), "an array that is cut"),
        (estimator(coef_=array((2,), "?!", b"")), "an array without a dtype"),
        (whole(ESTIMATOR)[:-8], "its pickle cannot be read"),
        (whole(name("joblib.numpy_pickle", "ZNDArrayWrapper") + b")\x81" + mapping({}) + b"b"), "joblib before 0.10"),
        (estimators.LZ4 + bytes(20), "is compressed by LZ4: save it with"),
        (whole(name("other", "Thing") + b")\x81"), "PyTorch did not write"),
    ],
)
def test_wrong_files(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(ConversionError, match=said):
        detect(written(tmp_path, "estimator", content))


def test_nothing_runs_without_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "made_environment", lambda *_: pytest.fail("an environment is made"))
    touched = tmp_path / "touched"
    call = name("builtins", "exec") + b"(" + text(f"open({str(touched)!r}, 'w')") + b"tR"
    path = written(tmp_path, "estimator", estimator(note=call))
    with pytest.raises(ConversionError, match=r"imports builtins\.exec, sklearn\.(.|\n)*pass --trust$"):
        pf.convert(path, tmp_path / "made.onnx")
    assert not touched.exists()


AGREE = ["logistic.joblib", "linear.joblib", "pipeline.joblib", "network.joblib", "clusters.joblib", "scaler.joblib"]
AGREE += ["neighbors.joblib"]


@pytest.fixture(scope="session")
def converted(sklearn_python: Path, sklearn_files: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Conversion]:
    """All files that agree, converted and verified."""
    folder, options = tmp_path_factory.mktemp("converted"), {"trust": True, "verify": True, "python": sklearn_python}
    dims = {"x": {0: "rows"}}
    return [pf.convert(sklearn_files / file, folder / f"{file}.onnx", dynamic=dims, **options) for file in AGREE]


def test_conversions_agree(converted: list[Conversion], backend: str) -> None:
    for made in converted:
        assert made.agrees and made.errors and made.inputs == ["x"] and "skl2onnx" in made.made_with, made
        x = np.random.default_rng(3).standard_normal((5, 4)).astype(np.float32)
        on_cpu, here = pf.run(made.target, {"x": x}), pf.run(made.target, {"x": x}, backend=backend)
        for output in made.outputs:
            np.testing.assert_allclose(here[output], on_cpu[output], rtol=1e-4, atol=1e-5, err_msg=made.source.name)


def test_all_ways_to_save_are_told(sklearn_python: Path, sklearn_files: Path) -> None:
    files = sorted(path for path in sklearn_files.iterdir())
    assert len(files) > 15 and {detect(path).kind.name for path in files} == {"estimator"}


@pytest.mark.parametrize(
    ("file", "options", "said"),
    [
        ("old.joblib", {}, r"scikit-learn 1\.0\.2 saved it, and this Python has .* --python names a Python"),
        ("mapping.joblib", {}, "the pickle is dict, and no estimator"),
        ("texts.joblib", {"verify": True}, "has values of <U4, which are not compared: leave out --verify"),
        ("function.joblib", {}, "FunctionTransformer is not supported"),
        ("linear.joblib", {"inputs": ["x:?x4:uint8"]}, "--input x: uint8 is not one of float32"),
        ("forest.z", {"target": "made.perframe"}, "TreeEnsembleClassifier × 1"),
    ],
)
def test_what_cannot_be_converted(
    sklearn_python: Path, sklearn_files: Path, tmp_path: Path, file: str, options: dict[str, Any], said: str
) -> None:
    target = tmp_path / options.pop("target", "made.onnx")
    with pytest.raises(pf.ModelError, match=said):
        pf.convert(sklearn_files / file, target, trust=True, python=sklearn_python, **options)
    assert not target.exists()
