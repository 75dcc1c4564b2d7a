"""Damaged and hostile model files end in errors that name the file and the place."""

from __future__ import annotations

import base64
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from files.rewriting import Parts, saved
from files.test_model_files import small

Change = Callable[[Parts], None]
WHOLE = saved(small())


def layer(**members: Any) -> Change:
    """Give the first layer other members."""
    return lambda parts: parts.layers[0].update(members)


def model(**members: Any) -> Change:
    return lambda parts: parts.graph["model"].update(members)


def entry(**members: Any) -> Change:
    """Give the first tensor of the header other members."""
    return lambda parts: next(iter(parts.entries.values())).update(members)


def tensor(said: Any) -> Change:
    """Let the graph say something else of the first tensor."""
    return lambda parts: parts.graph["tensors"].update({next(iter(parts.entries)): said})


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def bodies(depth: int) -> Any:
    value: Any = {"name": "b", "inputs": [], "outputs": [], "constants": {}, "layers": []}
    for _ in range(depth):
        inner = {
            "op": "If",
            "name": "if",
            "inputs": [],
            "outputs": [],
            "attributes": {"bodies": {"bodies": {"a": value}}},
        }
        value = {"name": "b", "inputs": [], "outputs": [], "constants": {}, "layers": [inner]}
    return value


X = {"name": "x", "dtype": "float32", "shape": [1]}
STAGE = {"op": "Relu", "attributes": {}, "operands": [None]}
CHANGES: dict[str, tuple[Change, str]] = {
    "version": (lambda parts: parts.metadata.update(perframe="9"), "version '9' of the format"),
    "no graph": (lambda parts: parts.graph.clear(), "list different tensors"),
    "unknown op": (layer(op="Frobnicate"), "Frobnicate .* perframe has no such layer"),
    "unknown attribute": (layer(attributes={"steps": 1}), "has no attribute steps"),
    "wrong attribute": (layer(attributes={"group": -1}), "group of Conv is an integer of at least 1"),
    "attribute without meaning": (layer(attributes={"group": {"what": 1}}), "which has no meaning"),
    "missing value": (layer(inputs=["nothing", "w"]), "reads 'nothing', which no earlier layer makes"),
    "made twice": (layer(outputs=["x"]), "made twice"),
    "names that are numbers": (layer(inputs=[1]), "should be names"),
    "cycle": (layer(inputs=["y", "w"]), "reads 'y', which no earlier layer makes"),
    "two inputs of a name": (model(inputs=[X, X]), "two values are called 'x'"),
    "an input like a constant": (model(inputs=[X | {"name": "w"}]), "two values are called"),
    "a negative dim": (model(inputs=[X | {"shape": [-1]}]), "has a dim of -1"),
    "no such dtype": (model(inputs=[X | {"dtype": "float7"}]), "there is no dtype 'float7'"),
    "a wrong output": (model(outputs=[X | {"name": "y", "dtype": "int8"}]), "would be"),
    "no such output": (model(outputs=[X | {"name": "z"}]), "no layer makes the output 'z'"),
    "constant without tensor": (model(constants={"w": "gone"}), "the tensor 'gone', which the file does not have"),
    "an epilogue where none is": (
        lambda parts: parts.layers[1].update(epilogue=[STAGE]),
        "has an epilogue, and its kernels apply none",
    ),
    "operands": (layer(epilogue=[STAGE | {"operands": []}]), "'Relu' with 0 operands"),
    "a stage that is no formula": (layer(epilogue=[STAGE | {"op": "Conv"}]), "cannot be in an epilogue"),
    "an operand that is text": (layer(epilogue=[STAGE | {"operands": ["x"]}]), "an operand of Relu"),
    "channels last": (lambda parts: parts.layers[1].update(channels_last=True), "channels last, and its kernels"),
    "deep lists": (layer(attributes={"pads": nested(80)}), "nests too deeply"),
    "very deep lists": (layer(attributes={"pads": nested(900)}), "nests? too deep"),
    "deep bodies": (model(**bodies(80)), "bodies are nested more than 64 deep"),
    "a negative range": (entry(data_offsets=[-4, 0]), "has no dtype, shape and range"),
    "a range beyond the file": (entry(data_offsets=[0, 1 << 40]), "its tensors take|should begin at"),
    "overlapping ranges": (
        lambda parts: [e.update(data_offsets=[0, 4]) for e in parts.entries.values()],
        "should begin",
    ),
    "a huge shape": (entry(shape=[1 << 62, 1 << 62]), "in the graph, not in the header"),
    "a huge shape on both sides": (tensor(["float32", [1 << 40, 1 << 40], 0]), "too large"),
    "many dims": (tensor(["float32", [1] * 100, 0]), "100 dims"),
    "another dtype": (tensor(["int32", [4, 3, 3, 3], 0]), "in the graph, not in the header"),
    "bytes after the tensors": (lambda parts: parts.body.extend(b"1234"), "follow its header"),
    "bytes missing": (lambda parts: parts.body.__delitem__(slice(-4, None)), "follow its header"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_wrong_is_said(name: str, tmp_path: Path) -> None:
    change, message = CHANGES[name]
    parts = Parts.of(WHOLE)
    change(parts)
    path = tmp_path / "m.perframe"
    path.write_bytes(parts.sealed())
    with pytest.raises(pf.ModelError, match=rf"(?s)m\.perframe.*({message})"):
        pf.load(path)


def test_the_same_file_unchanged_is_loaded() -> None:
    assert pf.load(Parts.of(WHOLE).sealed()).layers


def small_text(text: bytes) -> str:
    return base64.b64encode(zlib.compress(text, 9)).decode()


PACKED = {
    "no base64": ('""', "cannot be unpacked: "),
    "not deflated": (base64.b64encode(b"nothing that zlib made").decode(), "cannot be unpacked: Error -3"),
    "nothing": ("", "does not end with its 0 bytes"),
    "cut": (small_text(b"{}" * 99)[:-8], "does not end"),
    "two texts": (base64.b64encode(2 * zlib.compress(b"{}")).decode(), "does not end"),
    "a text that is too large": (small_text(b"[" * 10_000_000), "too large"),
    "no JSON": (small_text(b"{"), "its graph is not JSON"),
    "no text": (small_text(b'{"\xff": 1}'), "its graph is not JSON"),
}


@pytest.mark.parametrize("name", PACKED)
def test_a_graph_that_cannot_be_unpacked_is_an_error(name: str) -> None:
    text, message = PACKED[name]
    with pytest.raises(pf.ModelError, match=message):
        pf.load(Parts.of(WHOLE).with_graph(text))


def test_a_changed_byte_is_found_wherever_it_is() -> None:
    """In the length, the header, the graph, and each tensor. Spaces of the header may change their kind."""
    header = 8 + int.from_bytes(WHOLE[:8], "little")
    random = np.random.default_rng(1)
    for at in [*random.integers(0, header, 60), *random.integers(header, len(WHOLE), 60)]:
        data = bytearray(WHOLE)
        data[at] ^= 1 << int(random.integers(7))
        if WHOLE[at] == ord(" "):
            continue
        with pytest.raises(pf.ModelError):
            pf.load(bytes(data))


def test_every_cut_is_found() -> None:
    for length in [*range(40), *range(40, len(WHOLE), 97), len(WHOLE) - 1]:
        with pytest.raises(pf.ModelError):
            pf.load(WHOLE[:length])


def test_a_name_twice_is_found() -> None:
    header = int.from_bytes(WHOLE[:8], "little")
    text = WHOLE[8 : 8 + header].rstrip()
    name = next(iter(Parts.of(WHOLE).entries))
    doubled = text[:-1] + f',"{name}":{{}}}}'.encode()
    with pytest.raises(pf.ModelError, match=f"has the name '{name}' twice"):
        pf.load(len(doubled).to_bytes(8, "little") + doubled + WHOLE[8 + header :])


def test_a_header_that_nests_deeply_is_found() -> None:
    text = b'{"perframe":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    with pytest.raises(pf.ModelError, match="nests too deeply"):
        pf.load(len(text).to_bytes(8, "little") + text)


def test_a_header_of_a_huge_length_allocates_nothing() -> None:
    """In a process that may not have more than 2 GB of addresses."""
    code = (
        "import resource, perframe as pf\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "for length in (1 << 62, 99_000_000):\n"
        "    try:\n"
        "        pf.load(length.to_bytes(8, 'little') + b'{\"perframe\"')\n"
        "    except pf.ModelError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 2


def test_weights_alone_are_no_model() -> None:
    from safetensors.numpy import save

    with pytest.raises(pf.ModelError, match="a safetensors file, which has weights and no network"):
        pf.load(save({"w": np.ones(3, np.float32)}))


def test_very_many_inputs_take_no_time() -> None:
    """Each is compared with a set, and not with all others."""
    parts = Parts.of(WHOLE)
    many = [X | {"name": f"x{index}"} for index in range(30_000)]
    parts.graph["model"]["inputs"] += [*many, many[-1]]
    with pytest.raises(pf.ModelError, match="two values are called 'x29999'"):
        pf.load(parts.sealed())
