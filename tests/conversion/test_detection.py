"""Files are told apart by their content; harmful and damaged ones end in errors that say what they are."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest

from conversion.handmade import (
    BUNDLE,
    FILES,
    GRAPH,
    KERAS,
    META_GRAPH,
    MODULE,
    ONNX,
    SAVED_MODEL,
    TFJS,
    WEIGHTS,
    bundle,
    legacy,
    mapping,
    name,
    number,
    part,
    program,
    safetensors,
    tarred,
    tensor,
    text,
    torch_archive,
    whole,
    written,
    zipped,
)
from perframe.conversion.bundles import bundle_content
from perframe.conversion.checkpoints import listing, pickled_tensors, torch_pickle
from perframe.conversion.detection import detect
from perframe.errors import ConversionError, MissingFileError


@pytest.mark.parametrize("kind", FILES)
def test_content_tells_the_kind(tmp_path: Path, kind: str) -> None:
    assert detect(written(tmp_path, kind)).kind.name == kind


@pytest.mark.parametrize("kind", sorted(FILES.keys() - {"saved_model", "meta_graph", "tf_checkpoint"}))
def test_the_name_does_not_matter(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind)
    assert detect(path.rename(tmp_path / "model.bin")).kind.name == kind


def test_folders(tmp_path: Path) -> None:
    for kind in ("saved_model", "meta_graph", "tfjs_graph"):
        folder = tmp_path / kind
        folder.mkdir()
        (folder / "m.ckpt.index").touch(), (folder / "a.bin").touch()
        (folder / FILES[kind][0]).write_bytes(FILES[kind][1])
        assert detect(folder).kind.name == kind
    assert detect(tmp_path / "saved_model" / "saved_model.pb").path == tmp_path / "saved_model"
    with pytest.raises(ConversionError, match="no model that can be converted: meta_graph, saved_model"):
        detect(tmp_path)


def test_layers_models_of_tensorflow_js(tmp_path: Path) -> None:
    path = written(tmp_path, "tfjs_graph", json.dumps(TFJS | {"modelTopology": {"model_config": {}}}).encode())
    assert detect(path).kind.name == "tfjs_layers"


def test_files_before_archives(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    path.write_bytes(legacy(WEIGHTS))
    assert detect(path).kind.name == "checkpoint"
    path.write_bytes(legacy(MODULE))
    found = detect(path)
    assert (found.kind.name, found.calls) == ("module", ("shapes.Net",))


def test_what_a_checkpoint_holds(tmp_path: Path) -> None:
    path = written(tmp_path, "checkpoint")
    tensors = pickled_tensors(torch_pickle(path, "m/data.pkl").value, path)
    assert listing(tensors) == (
        "It holds 2 tensors with 112 numbers:\n"
        "  state_dict/conv.weight: float32 4×3×3×3\n"
        "  state_dict/conv.bias: float16 4"
    )
    assert listing(tensors, most=1).endswith("\n  and 1 more")


def test_a_pickle_is_read_and_not_run(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    call = name("builtins", "exec") + b"(" + text(f"open({str(touched)!r}, 'w')") + b"tR"
    path = written(tmp_path, "checkpoint", torch_archive(mapping({"w": tensor(2), "note": call})))
    assert "builtins.exec" in detect(path).calls
    assert not touched.exists()


def test_a_mapping_within_itself_ends(tmp_path: Path) -> None:
    circle = b"}q\x01(" + text("w") + tensor(2) + text("again") + b"h\x01u"
    path = written(tmp_path, "checkpoint", torch_archive(circle))
    assert detect(path).kind.name == "checkpoint"


def test_mappings_that_multiply_are_looked_at_once(tmp_path: Path) -> None:
    content = mapping({"w": tensor(2)}) + b"q\x00"
    for level in range(1, 8):
        items = b"".join(text(f"{at}") + b"h" + bytes([level - 1]) for at in range(200))
        content += b"0}(" + items + b"uq" + bytes([level])
    path = written(tmp_path, "checkpoint", torch_archive(content))
    assert len(pickled_tensors(torch_pickle(path, "m/data.pkl").value, path)) == 1


WRONG = {
    "folder/../up": (zipped({"m/../../up": b""}), "leads out of its folder"),
    "absolute": (zipped({"/etc/x": b""}), "leads out of its folder"),
    "drive": (zipped({"C:\\x": b""}), "leads out of its folder"),
    "tar": (tarred({"../x": b"1"}), "leads out of its folder"),
    "tar of a model": (tarred({"saved_model.pb": b"1"}), "unpack it"),
    "tar of PyTorch": (tarred({"pickle": b"", "storages": b"", "tensors": b""}), "before 2017"),
    "arrays": (zipped({"a.npy": b""}), "NumPy arrays"),
    "zip of a model": (zipped({"a/saved_model.pb": b""}), "unpack it"),
    "zip of nothing": (zipped({"readme": b""}), "holds no model"),
    "cut zip": (torch_archive(WEIGHTS)[:-40], "damaged zip"),
    "a tensor alone": (torch_archive(tensor(2)), "without a network or named weights"),
    "no tensors": (torch_archive(number(3)), "without a network or named weights"),
    "another pickle": (whole(number(3)), "PyTorch did not write"),
    "cut pickle": (legacy(WEIGHTS)[:120], "cannot be read"),
    "long text": (whole(b"\x8d" + struct.pack("<Q", 1 << 60) + b"abc"), "cannot be read"),
    "negative shape": (torch_archive(mapping({"w": tensor(-4)})), "an invalid shape"),
    "code": (program("__import__('os').system('x')"), "not a formula"),
    "call": (program("exec(s0)"), "not a formula"),
    "attribute": (program("s0.free_symbols"), "not a formula"),
    "escape": (program("Symbol('s0' if open('x') else '')"), "not a formula"),
    "machine code": (program(**{"m/data/aotinductor/model/a.so": b""}), "AOTInductor"),
    "broken graph": (program(**{"m/models/other.json": b"{"}), "is damaged"),
    "cut safetensors": (safetensors()[:-4], "damaged safetensors"),
    "cut HDF5": (FILES["hdf5"][1][:300], "should have 2,044 bytes, and has 300"),
    "unknown HDF5": (b"\x89HDF\r\n\x1a\n" + bytes([9]) + bytes(80), "superblock"),
    "json": (b'{"a": 1}', "not the model.json"),
    "cut json": (b'{"modelTopology": {', "text"),
    "nested json": (b'{"a":' * 100_000, "text"),
    "page": (b"<html>", "failed download"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1", "git lfs pull"),
    "weights": (bytes(40) + bytes.fromhex("57fb808b247547db"), "put model.bin.index and its .data files beside it"),
    "text graph": (b'node {\n name: "x"\n}', "text form"),
    "picture": (b"\x89PNG\r\n\x1a\n", "PNG"),
    "empty": (b"", "truncated"),
    "noise": (bytes(range(255, 0, -1)), "truncated or of another format"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files(tmp_path: Path, case: str) -> None:
    check_refusal(tmp_path, *WRONG[case])


def test_an_archive_that_would_fill_the_disk(tmp_path: Path) -> None:
    bomb = zipped({"m/data.pkl": bytes(300 << 20)}, zipfile.ZIP_DEFLATED)
    check_refusal(tmp_path, bomb, "would become 314,572,800")


def check_refusal(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(ConversionError) as error:
        detect(path)
    assert said in str(error.value) and str(path) in str(error.value)


def test_an_archive_with_a_name_twice(tmp_path: Path) -> None:
    made = io.BytesIO()
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(made, "w") as archive:
        for _ in range(2):
            archive.writestr("m/data.pkl", whole(WEIGHTS))
    path = tmp_path / "m.pt"
    path.write_bytes(made.getvalue())
    with pytest.raises(ConversionError, match="two entries"):
        detect(path)


def test_weights_of_tensorflow_js_stay_in_the_folder(tmp_path: Path) -> None:
    for paths, said in (
        (["../a.bin"], "leads out"),
        (["b.bin"], "are missing"),
        ([3], "not text"),
        (["link.bin"], "lie outside"),
    ):
        path = written(tmp_path, "tfjs_graph", json.dumps(TFJS | {"weightsManifest": [{"paths": paths}]}).encode())
        link = tmp_path / "link.bin"
        link.unlink(missing_ok=True)
        link.symlink_to("/etc/passwd")
        with pytest.raises(ConversionError, match=said):
            detect(path)


def test_a_graph_needs_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "m.ckpt.meta"
    path.write_bytes(META_GRAPH)
    with pytest.raises(ConversionError, match=r"put m\.ckpt\.index and m\.ckpt\.data-00000-of-00001 beside it"):
        detect(path)


def test_messages_that_resemble_each_other(tmp_path: Path) -> None:
    path = tmp_path / "m"
    for content, kind in ((GRAPH, "graph"), (ONNX, "onnx"), (GRAPH * 200, "graph")):
        path.write_bytes(content)
        assert detect(path).kind.name == kind
    path.write_bytes(SAVED_MODEL)
    with pytest.raises(ConversionError, match=r"call it saved_model\.pb"):
        detect(path)
    path.write_bytes(part(1, b"x") + part(4, b"y"))
    with pytest.raises(ConversionError, match="cannot be converted"):
        detect(path)


def test_keras_needs_all_entries(tmp_path: Path) -> None:
    path = written(tmp_path, "keras", zipped({name: KERAS[name] for name in ("config.json", "metadata.json")}))
    with pytest.raises(ConversionError, match="holds no model"):
        detect(path)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="there is no file 'painter'; `perframe save painter OUT` writes the"):
        detect("painter")
    with pytest.raises(MissingFileError, match="there is no file"):
        detect(tmp_path / "m.pt")
    with pytest.raises((ConversionError, MissingFileError)):
        detect("a\0b")


def test_what_the_index_of_a_checkpoint_lists(tmp_path: Path) -> None:
    path = written(tmp_path, "tf_checkpoint")
    found = detect(path)
    assert found.path == tmp_path / "w" and detect(tmp_path / "w.data-00000-of-00001").path == found.path
    assert listing(bundle_content(found.path)) == (
        "It holds 2 tensors with 13 numbers:\n  net/a: float32 3×4\n  net/b: int64 scalar"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (BUNDLE[:-60] + BUNDLE[-48:], "is damaged"),
        (BUNDLE[:4] + b"\xff" * 8 + BUNDLE[12:], "is damaged"),
        (bundle({"net/a": b"\x12\xff"}), "is damaged: it is cut"),
        (bytes(20) + BUNDLE[-8:], "is damaged"),
    ],
)
def test_damaged_indexes(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(ConversionError, match=said):
        detect(written(tmp_path, "tf_checkpoint", content))


def test_a_checkpoint_needs_all_its_files(tmp_path: Path) -> None:
    path = written(tmp_path, "tf_checkpoint")
    (tmp_path / "w.data-00000-of-00001").unlink()
    with pytest.raises(ConversionError, match=r"put w\.index and its \.data files beside it"):
        detect(path)
