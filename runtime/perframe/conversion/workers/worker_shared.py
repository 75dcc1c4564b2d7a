"""Parts that the scripts share: requests, replies, inputs, and the names of dims."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path

import numpy as np

PROGRESS = "perframe-progress "  # begins a line with the progress


class Refused(Exception):
    """The conversion is not possible; the message says why and what to do."""


TENSORS = (
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
    ("collections", "OrderedDict"),
)
_guarded = [False]  # whether pickles may import nothing now


def _refuse_imports(event, arguments):
    if _guarded[0] and event == "pickle.find_class":
        module, name = arguments[:2]
        if (module, name) in TENSORS or (module == "torch" and name.endswith("Storage")):
            return
        raise Refused(
            f"a pickle in it imports {module}.{name}, and a pickle can run any code: if you trust where the file comes "
            "from, pass --trust"
        )


@contextmanager
def without_pickles(trust):
    """Refuse pickles that import more than tensors, which libraries load without asking; with `trust` refuse nothing.

    Python reports each import of a pickle as an event to the hook. A hook cannot be removed again.
    """
    if trust:
        yield
        return
    sys.addaudithook(_refuse_imports)
    _guarded[0] = True
    try:
        yield
    finally:
        _guarded[0] = False


def report(what: str, done: float) -> None:
    """Report the current activity, and the fraction of the conversion that is done."""
    print(f"{PROGRESS}{done:.2f} {what}", flush=True)


def serve(convert) -> None:
    """Read the request, convert, and write the reply beside its place before it gets its name."""
    request, reply = json.loads(Path(sys.argv[1]).read_bytes()), Path(sys.argv[2])
    try:
        found = convert(request)
    except Refused as refused:
        found = {"refused": str(refused)}
    except Exception as error:
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {error}"}
    beside = reply.with_suffix(".part")
    beside.write_text(json.dumps(found))
    os.replace(beside, reply)


def function_of(text: str, folder: str):
    """The function that "module:function" names; the module is looked for in the folder first."""
    module, _, name = text.partition(":")
    sys.path.insert(0, folder)
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise Refused(f"--builder {text}: the module {module!r} cannot be imported from {folder}: {error}") from error
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise Refused(f"--builder {text}: the module {module!r} has no {name!r}") from None
    if not callable(found):
        raise Refused(f"--builder {text}: it is {type(found).__name__}, not a function")
    return found


def seeded(shape, dtype, random):
    """Random values: normal for floats, and 0 and 1 for other numbers, because they are safe as indices too."""
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        return np.asarray(random.standard_normal(shape), dtype)
    if dtype.kind in "iub":
        return np.asarray(random.integers(0, 2, shape), dtype)
    raise Refused(f"it has an input of {dtype}, and values for that cannot be made: leave out --verify")


def save_values(path: str, inputs, outputs) -> None:
    """Write the values of a run, in the order of the model's inputs and outputs."""
    values = {f"input {at}": np.asarray(value) for at, value in enumerate(inputs)}
    values |= {f"output {at}": np.asarray(value) for at, value in enumerate(outputs)}
    for name, value in values.items():
        if value.dtype.kind not in "fiubc":
            raise Refused(f"its {name} has values of {value.dtype}, which cannot be compared: leave out --verify")
    np.savez(path, **values)


def name_dims(path: str, dynamic) -> None:
    """Give names to dims of the inputs of an ONNX model, and to equal dims of other values.

    Raises Refused if there is no such input or dim.
    """
    if not dynamic:
        return
    import onnx

    model = onnx.load(path, load_external_data=False)
    names = {}  # of the exporter, and what they become
    inputs = {value.name: value.type.tensor_type.shape.dim for value in model.graph.input}
    for wanted in dynamic:
        dims = inputs.get(wanted["input"])
        if dims is None:
            raise Refused(f"--dynamic: there is no input {wanted['input']!r}; there are {', '.join(inputs)}")
        if not -len(dims) <= wanted["axis"] < len(dims):
            raise Refused(
                f"--dynamic: {wanted['input']!r} has {len(dims)} dims, and none with the index {wanted['axis']}"
            )
        dim = dims[wanted["axis"]]
        if dim.HasField("dim_value"):
            raise Refused(
                f"--dynamic: dim {wanted['axis']} of {wanted['input']!r} is {dim.dim_value} in the file: "
                "export the network with that dim left open"
            )
        if dim.dim_param:
            names[dim.dim_param] = wanted["name"]
        dim.dim_param = wanted["name"]
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in names:
                dim.dim_param = names[dim.dim_param]
    onnx.save(model, path)


def facts(path: str, framework: str, way: str):
    """The reply for a model that was written."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    return {
        "inputs": [value.name for value in model.graph.input],
        "outputs": [value.name for value in model.graph.output],
        "opset": versions[0] if versions else 0,
        "with": f"{framework}, {way}",
    }
