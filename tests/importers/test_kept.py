"""Models that were loaded before: the next load of the same file reads them, and no other does."""

from __future__ import annotations

import ast
import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import convert_model_to_external_data

import perframe as pf
from perframe import passes
from perframe.importers import kept
from perframe.importers import onnx as importer
from perframe.ir.declaration import REGISTRY

RUNTIME = Path(pf.__file__).parent
RNG = np.random.default_rng(7)


class Loads:
    """Loads models, and counts those that were imported."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        monkeypatch.setenv("PERFRAME_CACHE", str(folder / "cache"))
        monkeypatch.delenv("PERFRAME_KEEP_MODELS")
        monkeypatch.setattr(kept, "SETTLED", float("-inf"))  # files of tests are young
        own = {name: found for name, found in REGISTRY.items() if found.origin.startswith("perframe.")}
        monkeypatch.setattr(kept, "REGISTRY", own)  # without the layers that other tests have declared
        monkeypatch.setattr(importer, "_imported", self._counting(importer._imported))
        self.folder, self.imports = folder / "cache" / "models", 0

    def _counting(self, imported: Callable[..., pf.Model]) -> Callable[..., pf.Model]:
        def count(*given: Any) -> pf.Model:
            self.imports += 1
            return imported(*given)

        return count

    def __call__(self, *given: Any, **options: Any) -> tuple[pf.Model, bool]:
        """The model, and whether its file was imported."""
        before = self.imports
        model = pf.load(*given, **options)
        return model, self.imports > before

    @property
    def files(self) -> list[Path]:
        """The kept models."""
        return sorted(self.folder.iterdir()) if self.folder.exists() else []


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Loads]:
    yield Loads(monkeypatch, tmp_path)


def write(path: Path, external: bool = False) -> Path:
    """A product whose weights the passes leave alone, and a sum that they fold."""
    weights = {"w": RNG.standard_normal((64, 512), np.float32), "a": np.float32(2), "b": RNG.random(512, np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Mul", ["a", "b"], ["c"]),
        helper.make_node("Add", ["m", "c"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 512])
    known = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", [x, helper.make_tensor_value_info("a", TensorProto.FLOAT, [])], [y], known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="tests")
    model.metadata_props.add(key="names", value="cat, dog")
    if external:
        convert_model_to_external_data(model, location=f"{path.name}.data", size_threshold=0, convert_attribute=False)
    onnx.save(model, path)
    return path


def facts(model: pf.Model) -> list[Any]:
    """All that a model says of itself."""
    values = [*model.inputs, *model.outputs]
    return [
        model.name,
        [(value.name, value.dtype, value.shape) for value in values],
        [(layer.op, layer.name, layer.input_names, layer.output_names, repr(layer.epilogue)) for layer in model.layers],
        {name: (array.dtype, array.tobytes()) for name, array in model.constants.items()},
        (model.producer, model.opsets, model.metadata, model.fixed_inputs, model.optimized, model.report),
    ]


@pytest.mark.parametrize("external", [False, True])
def test_a_second_load_reads_what_the_first_kept(load: Loads, tmp_path: Path, external: bool) -> None:
    path = write(tmp_path / "m.onnx", external)
    first, second = load(path), load(str(path))
    assert (first[1], second[1]) == (True, False)
    assert facts(first[0]) == facts(second[0])
    assert second[0].fixed_inputs == {"a"}
    assert len(load.files) == 1 and load.files[0].stat().st_size < 20_000  # the weights stay in their file
    assert not any(array.flags.writeable for array in second[0].constants.values())
    x = RNG.standard_normal((3, 64), np.float32)
    assert np.array_equal(pf.run(first[0], x)["y"], pf.run(second[0], x)["y"])


@pytest.mark.parametrize("name", ["digits", "faces", "voice", "talk", "painter"])
def test_models_that_ship_are_kept_whole(load: Loads, name: str) -> None:
    first, second = load(name), load(name)
    assert (first[1], second[1]) == (True, False)
    assert facts(first[0]) == facts(second[0])


def test_another_file_is_imported(load: Loads, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx")
    before, _ = load(path)
    times = path.stat()
    write(path)  # other weights, in as many bytes
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    after, imported = load(path)
    assert imported
    assert facts(before) != facts(after)
    assert facts(load(path)[0]) == facts(after)
    assert len(load.files) == 1


def test_another_file_of_weights_is_noticed(load: Loads, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", external=True)
    before, _ = load(path)
    data = tmp_path / "m.onnx.data"
    content = bytearray(data.read_bytes())
    content[0:4] = np.float32(5).tobytes()
    data.write_bytes(content)
    after, imported = load(path)
    assert imported
    assert facts(before) != facts(after)
    data.unlink()
    with pytest.raises(pf.ModelError, match="not a file beside the model"):
        load(path)


def test_options_have_their_own(load: Loads, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx")
    options: list[dict[str, Any]] = [{}, {"dims": {"batch": 2}}, {"outputs": ["s"]}, {"narrow_doubles": True}]
    for given in options:
        assert load(path, **given)[1]
    for given in options:
        model, imported = load(path, **given)
        assert not imported
        assert facts(model) == facts(load(path, stop_after=1000, **given)[0])
    assert load(path, optimize=False)[1] and load(path, optimize=False)[1]
    with pytest.raises(pf.PerframeError, match="bach"):
        load(path, dims={"bach": 2})


def test_young_and_large_files_are_not_kept(load: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "m.onnx")
    monkeypatch.setattr(kept, "SETTLED", 3600.0)
    load(path)
    monkeypatch.setattr(kept, "SETTLED", float("-inf"))
    monkeypatch.setattr(kept, "MOST_BYTES", 100)
    assert load(path)[1]
    assert not load.files


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "json", "folder"])
def test_a_damaged_file_is_made_again(load: Loads, tmp_path: Path, damage: str) -> None:
    path = write(tmp_path / "m.onnx")
    first, _ = load(path)
    file = load.files[0]
    content = bytearray(file.read_bytes())
    if damage == "flipped":
        content[-3] ^= 1
    damaged = {"cut": content[:-9], "flipped": content, "empty": b"", "json": b"\x40".ljust(8, b"\0") + b"[" * 99}
    file.unlink()
    if damage == "folder":
        file.mkdir()
    else:
        file.write_bytes(damaged[damage])
    again, imported = load(path)
    assert imported
    assert facts(again) == facts(first)
    assert load(path)[1] == (damage == "folder")


def test_code_from_outside_is_not_kept(load: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "m.onnx")
    load(path)
    monkeypatch.setattr(passes, "_added", {"mine": (lambda _model, _evaluate: 0, "fold_constants")})
    assert load(path)[1]


def test_layers_from_outside_are_not_kept(load: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "m.onnx")

    @pf.layers.layer(domain="tests.kept")
    def Twice(x: Any) -> list[Any]:
        return [x]

    with monkeypatch.context() as all_layers:
        all_layers.setattr(kept, "REGISTRY", REGISTRY)
        load(path)
        assert load(path)[1]
        assert not load.files
    load(path)
    assert not load(path)[1]


def test_the_environment_and_a_shared_folder_prevent_it(
    load: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "m.onnx")
    monkeypatch.setenv("PERFRAME_KEEP_MODELS", "0")
    load(path)
    assert not load.files
    monkeypatch.delenv("PERFRAME_KEEP_MODELS")
    load.folder.mkdir(parents=True)
    load.folder.chmod(0o777)
    load(path)
    assert not load.files


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only where there are such pipes")
def test_a_pipe_in_the_place_of_the_file_is_not_opened(load: Loads, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx")
    load(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(pf.ModelError, match="a device or a pipe"):
        load(path)


def test_wrong_options_are_said_as_without_it(load: Loads, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx")
    load(path)
    for options in ({"dims": 3}, {"dims": ["batch"]}, {"outputs": 3}, {"outputs": "y"}):
        with pytest.raises(Exception) as kept_error:
            load(path, **options)
        with pytest.raises(Exception) as plain_error:
            load(path.read_bytes(), **options)
        assert type(kept_error.value) is type(plain_error.value)


def test_threads_keep_one_model(load: Loads, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx")
    with ThreadPoolExecutor(8) as threads:
        models = [found for found, _ in threads.map(load, [path] * 24)]
    assert len(load.files) == 1
    assert all(facts(model) == facts(models[0]) for model in models)


def test_bytes_are_imported_each_time(load: Loads, tmp_path: Path) -> None:
    data = write(tmp_path / "m.onnx").read_bytes()
    assert load(data)[1] and load(data)[1]
    assert not load.files


@pytest.mark.parametrize("place", ["/nowhere/perframe/__init__.pyc", "empty"])
def test_a_frozen_program_keeps_none(load: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    path = write(tmp_path / "m.onnx")
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(pf, "__file__", str(tmp_path / place / "__init__.pyc"))
    kept._installation.cache_clear()
    try:
        assert load(path)[1] and load(path)[1]
    finally:
        kept._installation.cache_clear()
    assert not load.files


def test_a_changed_file_of_perframe_is_another_perframe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "perframe" / "passes" / "fuse.py"
    source.parent.mkdir(parents=True)
    monkeypatch.setattr(pf, "__file__", str(tmp_path / "perframe" / "__init__.py"))
    found = set()
    for text in ("a = 1", "a = 10"):
        source.write_text(text)
        kept._installation.cache_clear()
        found.add(kept._installation())
    kept._installation.cache_clear()
    assert len(found) == 2 and "" not in found


def test_beside_frames_it_is_read_and_not_written(load: Loads, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx")

    async def loads() -> pf.Model:
        return await pf.load_async(path)

    asyncio.run(loads())
    assert not load.files
    first, _ = load(path)
    before = load.imports
    assert facts(asyncio.run(loads())) == facts(first)
    assert load.imports == before


def test_another_perframe_imports_again(load: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "m.onnx")
    load(path)
    monkeypatch.setattr(kept, "_installation", lambda: "another")
    assert load(path)[1]


@pytest.mark.quick(cases=0)
def test_no_package_that_does_not_count_loads_models() -> None:
    """A model is kept for this perframe: for the files of the packages that load, fold and optimize."""
    names = {f"perframe.{name}" for name in kept.NOT_LOADING}
    loading = [path for path in RUNTIME.iterdir() if path.is_dir() and path.name not in kept.NOT_LOADING]
    assert {"importers", "ir", "layers", "passes"} <= {path.name for path in loading}
    wrong = []
    for path in (path for folder in loading if folder.name != "backends" for path in folder.rglob("*.py")):
        tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        modules = {node.module or "" for node in tree if isinstance(node, ast.ImportFrom)}
        wrong += [(path, module) for module in modules if ".".join(module.split(".")[:2]) in names]
    assert not wrong
