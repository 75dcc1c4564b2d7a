"""Converts TensorFlow's and Keras' files to ONNX: python tensorflow_worker.py REQUEST.json REPLY.json."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow as tf
import tf2onnx
from tensorflow_weights import built, weights_of
from worker_shared import Refused, facts, name_dims, report, save_values, seeded, serve, without_pickles

v1 = tf.compat.v1
OPEN = 2  # the size that an open dim gets in the verification
FEEDS = ("Placeholder", "PlaceholderV2")
NO_OUTPUTS = (  # operators whose values are no results of a network
    *("Const", "NoOp", "Assert", "Print", "PrintV2", "SaveV2", "RestoreV2", "MergeV2Checkpoints", "ShardedFilename"),
    *("Assign", "AssignVariableOp", "AssignAdd", "AssignSub", "IsVariableInitialized", "VarIsInitializedOp"),
)
MAX_PROTO = (1 << 31) - 1  # bytes of a protobuf message
WAY = "tf2onnx"


class Loaded:
    """A model that TensorFlow has read.

    `names`, `shapes` and `dtypes` are those of its inputs, `write(opset, overrides)` returns the ONNX model, and
    `run(arrays)` the outputs.
    """

    def __init__(self, names, shapes, dtypes, write, run):
        self.names, self.shapes, self.dtypes, self.write, self.run = names, shapes, dtypes, write, run


def dims_of(shape):
    """The sizes of a shape, -1 for open ones; None if the rank is unknown."""
    return None if shape.rank is None else [-1 if size is None else size for size in shape.as_list()]


# --- functions: SavedModels and Keras models ---


def load_saved_model(request):
    found = tf.saved_model.load(request["path"])
    signatures = {name: one for name, one in found.signatures.items() if not name.startswith("_")}
    if not signatures:
        raise Refused(
            "it has no signatures: save it with tf.saved_model.save(..., signatures=...) or model.export(...)"
        )
    chosen = request["signature"]
    if chosen is None:
        chosen = "serving_default" if "serving_default" in signatures else next(iter(signatures))
    if chosen not in signatures:
        raise Refused(f"it has no signature {chosen!r}; its signatures are {', '.join(signatures)}")
    signature = signatures[chosen]
    specs = signature.structured_input_signature[1]
    names = [*specs]

    def call(*values):
        return signature(**dict(zip(names, values, strict=True)))

    loaded = of_function(request, call, [(name, specs[name].shape, specs[name].dtype) for name in names])
    loaded.keep = found  # its variables live as long as it does
    return loaded


def load_keras(request):
    if request["builder"] is not None:
        return of_model(request, built(request))
    return of_keras(request, request["path"])


def load_checkpoint(request):
    return of_model(request, built(request))


def of_keras(request, path):
    try:
        with without_pickles(request["trust"]):
            model = tf.keras.models.load_model(path, compile=False, safe_mode=not request["trust"])
    except ValueError as error:
        text = str(error)
        if "No model config" in text or "model_config" in text:
            raise Refused(
                f"it has weights and no network: {weights_of(path)}. Save the whole model, with model.save('m.keras'), "
                "or name the function that makes the network: --builder module:function"
            ) from error
        if "safe_mode" in text or "unsafe" in text.lower():
            raise Refused(
                "it holds Python code (a Lambda layer), which could do anything: if you trust where it comes from, say "
                f"--trust ({text:.300})"
            ) from error
        raise
    return of_model(request, model)


def of_model(request, model):
    """A model that is in memory, of Keras or a tf.Module."""
    if not getattr(model, "inputs", None):
        shapes = request["inputs"]
        if not shapes:
            raise Refused("its inputs have no shapes: pass --input NAME:SHAPE, such as --input x:1x224x224x3")
        specs = [
            (
                one["name"],
                tf.TensorShape([size if size > 0 else None for size in one["shape"]]),
                tf.as_dtype(one["dtype"]),
            )
            for one in shapes
        ]
    else:
        specs = [(one.name, tf.TensorShape(one.shape), tf.as_dtype(one.dtype)) for one in model.inputs]
    outputs = list(getattr(model, "output_names", None) or ())

    def call(*values):
        if isinstance(model, tf.keras.Model):
            made = tf.nest.flatten(model(values[0] if len(values) == 1 else list(values), training=False))
        else:
            made = tf.nest.flatten(model(*values))
        named = len(set(outputs)) == len(made) == len(outputs)
        return dict(zip(outputs, made, strict=True)) if named else made

    loaded = of_function(request, call, specs)
    loaded.keep = model
    return loaded


def of_function(request, call, specs):
    """A model that is a function of tensors. --input may give it sizes."""
    given = {one["name"]: one["shape"] for one in request["inputs"]}
    names = [name for name, _, _ in specs]
    check_given(request, names)
    specs = [
        tf.TensorSpec(
            [size if size > 0 else None for size in given[name]] if name in given else shape, dtype, name=name
        )
        for name, shape, dtype in specs
    ]
    function = tf.function(call)

    def write(opset, _overrides):
        return tf2onnx.convert.from_function(function, input_signature=specs, opset=opset)[0]

    def run(arrays):
        return tf.nest.flatten(function(*[tf.constant(one) for one in arrays]))

    shapes, dtypes = [dims_of(one.shape) for one in specs], [one.dtype.as_numpy_dtype for one in specs]
    return Loaded(names, shapes, dtypes, write, run)


def check_given(request, names):
    for one in request["inputs"]:
        if one["name"] not in names:
            raise Refused(f"--input: there is no input {one['name']!r}; there are {', '.join(names)}")


# --- graphs: frozen ones, those of TensorFlow 1 and of TensorFlow.js ---


def load_graph(request):
    graph = v1.GraphDef()
    graph.ParseFromString(Path(request["path"]).read_bytes())
    return of_graph(request, graph, {})


def of_graph(request, graph_def, renamed):
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    inputs, outputs = ends(request, graph, renamed)
    session = v1.Session(graph=graph)
    return of_session(request, session, graph_def, inputs, outputs, renamed)


def load_meta_graph(request):
    path, graph = request["path"], tf.Graph()
    with graph.as_default():
        session = v1.Session(graph=graph)
        v1.train.import_meta_graph(path, clear_devices=True).restore(session, path.removesuffix(".meta"))
    inputs, outputs = ends(request, graph, {})
    needed = [name.partition(":")[0] for name in outputs]
    frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), needed)
    return of_session(request, session, frozen, inputs, outputs, {})


def ends(request, graph, renamed):
    """The names of a graph's inputs and outputs: the given ones, else placeholders and values without a reader."""
    operations = graph.get_operations()
    feeds = [one for one in operations if one.type in FEEDS]
    inputs = [tensor_name(graph, one["name"], renamed) for one in request["inputs"]]
    inputs = inputs or [one.outputs[0].name for one in feeds]
    outputs = [tensor_name(graph, name, renamed) for name in request["outputs"]]
    if not outputs and renamed:
        outputs = [name for name in renamed if name not in inputs]
    if not outputs:
        depends, begins = set(), {name.partition(":")[0] for name in inputs}
        for one in operations:  # a graph lists operators behind their inputs, but for loops
            if one.name in begins or any(value.op.name in depends for value in one.inputs):
                depends.add(one.name)
        outputs = [
            one.outputs[0].name
            for one in operations
            if one.outputs
            and one.name in depends
            and one.type not in (*NO_OUTPUTS, *FEEDS)
            and not any(value.consumers() for value in one.outputs)
            and not one.type.endswith("Summary")
            and not one.type.startswith("Apply")
        ]
    if not inputs or not outputs:
        what = "no placeholder" if not inputs else "no operator that ends a computation"
        raise Refused(f"it has {what}: name them with --input NAME:SHAPE and --output NAME")
    feeds_needed = needed_feeds(graph, outputs, {name.partition(":")[0] for name in inputs})
    if request["inputs"]:
        missing = [one for one in feeds_needed if f"{one}:0" not in inputs]
        if missing:
            raise Refused(f"its outputs also need the placeholders {', '.join(missing)}: name them with --input")
        return inputs, outputs
    return [name for name in inputs if name.partition(":")[0] in feeds_needed], outputs


def needed_feeds(graph, outputs, stops):
    """The names of the placeholders that outputs need, in the graph's order."""
    waiting, seen = [graph.get_tensor_by_name(name).op for name in outputs], set()
    while waiting:
        one = waiting.pop()
        if one.name not in seen:
            seen.add(one.name)
            waiting += [] if one.name in stops else [value.op for value in one.inputs]
    return [one.name for one in graph.get_operations() if one.name in seen and (one.type in FEEDS or one.name in stops)]


def tensor_name(graph, name, renamed):
    """The name of a tensor in the graph, from what a person calls it."""
    wanted = next((own for own, other in renamed.items() if other == name), name)
    wanted = wanted if ":" in wanted else f"{wanted}:0"
    try:
        return graph.get_tensor_by_name(wanted).name
    except (KeyError, ValueError):
        feeds = [one.name for one in graph.get_operations() if one.type in FEEDS]
        raise Refused(f"its graph has no {name!r}; its placeholders are {', '.join(feeds) or 'none'}") from None


def of_session(request, session, graph_def, inputs, outputs, renamed):
    given = {one["name"]: one["shape"] for one in request["inputs"]}
    called = {name: renamed.get(name, name.removesuffix(":0")) for name in (*inputs, *outputs)}
    overrides = {name: given[called[name]] for name in inputs if called[name] in given}
    overrides |= {name: given[name] for name in inputs if name in given}
    tensors = [session.graph.get_tensor_by_name(name) for name in inputs]

    def write(opset, _overrides):
        return tf2onnx.convert.from_graph_def(
            graph_def,
            input_names=inputs,
            output_names=outputs,
            opset=opset,
            shape_override=overrides or None,
            tensors_to_rename=called,
        )[0]

    def run(arrays):
        return session.run(outputs, dict(zip(inputs, arrays, strict=True)))

    shapes = [overrides.get(one.name, dims_of(one.shape)) for one in tensors]
    return Loaded([called[name] for name in inputs], shapes, [one.dtype.as_numpy_dtype for one in tensors], write, run)


# --- TensorFlow.js ---


def tfjs_weights(folder, manifest):
    """The arrays of a TensorFlow.js model by name. Raises Refused where the files are too short."""
    arrays = {}
    for group in manifest:
        data, at = b"".join((folder / name).read_bytes() for name in group["paths"]), 0
        for one in group["weights"]:
            stored = one.get("quantization", {})
            dtype = np.dtype(stored.get("dtype", one["dtype"]))
            count = int(np.prod(one["shape"], dtype=np.int64))
            if not 0 <= count * dtype.itemsize <= len(data) - at:
                raise Refused(
                    f"its weight {one['name']!r} needs {count * dtype.itemsize} bytes, and {len(data) - at} are left"
                )
            array = np.frombuffer(data, dtype, count, at).reshape(one["shape"])
            at += count * dtype.itemsize
            if "scale" in stored:
                array = array.astype(np.float32) * np.float32(stored["scale"]) + np.float32(stored["min"])
            arrays[one["name"]] = array.astype(one["dtype"])
        if at != len(data):
            raise Refused(f"its weights take {at} bytes, and the files have {len(data)}")
    return arrays


def load_tfjs_graph(request):
    """Put the weights of a graph model back into its graph, whose JSON is that of a GraphDef."""
    from google.protobuf import json_format

    path = Path(request["path"])
    model = json.loads(path.read_bytes())
    arrays = tfjs_weights(path.parent, model["weightsManifest"])
    graph = json_format.ParseDict(model["modelTopology"], v1.GraphDef(), ignore_unknown_fields=True)
    for node in graph.node:
        if node.op == "Const" and node.name in arrays:
            dtype = tf.as_dtype(node.attr["dtype"].type)
            node.attr["value"].tensor.CopyFrom(
                tf.make_tensor_proto(arrays[node.name].astype(dtype.as_numpy_dtype), dtype)
            )
        elif node.op == "FusedDepthwiseConv2dNative":
            node.op = "_FusedDepthwiseConv2dNative"
    signature = model.get("signature") or model.get("userDefinedMetadata", {}).get("signature") or {}
    renamed = {}
    for side in ("inputs", "outputs"):
        for name, one in signature.get(side, {}).items():
            tensor = one.get("name", name)
            renamed[tensor if ":" in tensor else f"{tensor}:0"] = name
    return of_graph(request, graph, renamed)


def load_tfjs_layers(request):
    """Write a layers model as the HDF5 file of Keras that it was made of, and load that."""
    import h5py

    path = Path(request["path"])
    model = json.loads(path.read_bytes())
    arrays = tfjs_weights(path.parent, model["weightsManifest"])
    config = model["modelTopology"].get("model_config", model["modelTopology"])
    inner = config["config"]
    layers = [one["config"]["name"] for one in (inner if isinstance(inner, list) else inner["layers"])]
    known = {name: [full for full in arrays if full.partition("/")[0] == name] for name in layers}
    lost = set(arrays) - {full for names in known.values() for full in names}
    if lost:
        raise Refused(f"its weights {', '.join(sorted(lost)[:8])} belong to no layer")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "model.h5"
        with h5py.File(made, "w") as file:
            file.attrs["model_config"] = json.dumps(config)
            file.attrs["keras_version"] = model["modelTopology"].get("keras_version", "2.15.0")
            file.attrs["backend"] = "tensorflow"
            group = file.create_group("model_weights")
            group.attrs["layer_names"] = [name.encode() for name in layers]
            for name, weights in known.items():
                one = group.create_group(name)
                one.attrs["weight_names"] = [full.encode() for full in weights]
                for full in weights:
                    one.create_dataset(full, data=arrays[full])
        return of_keras(request, str(made))


LOADERS = {
    "saved_model": load_saved_model,
    "keras": load_keras,
    "hdf5": load_keras,
    "graph": load_graph,
    "meta_graph": load_meta_graph,
    "tf_checkpoint": load_checkpoint,
    "tfjs_graph": load_tfjs_graph,
    "tfjs_layers": load_tfjs_layers,
}


def convert(request):
    """Convert the file that a request names."""
    tf.keras.utils.set_random_seed(request["seed"])
    report("reading the file", 0.2)
    loaded = LOADERS[request["kind"]](request)
    report("writing ONNX", 0.5)
    model = loaded.write(request["opset"], {})
    if model.ByteSize() > MAX_PROTO:
        raise Refused("it becomes more than 2 GB, which tf2onnx writes in a form that is not ONNX")
    Path(request["out"]).write_bytes(model.SerializeToString())
    name_dims(request["out"], request["dynamic"])
    if request["values"]:
        report("running the network", 0.8)
        random = np.random.default_rng(request["seed"])
        unknown = [name for name, shape in zip(loaded.names, loaded.shapes, strict=True) if shape is None]
        if unknown:
            raise Refused(f"its inputs {', '.join(unknown)} have no rank: give them shapes with --input")
        arrays = [
            seeded([OPEN if size < 0 else size for size in shape], dtype, random)
            for shape, dtype in zip(loaded.shapes, loaded.dtypes, strict=True)
        ]
        order = [one.name for one in model.graph.input]  # tf2onnx keeps the names and may change the order
        at = [loaded.names.index(name) if name in loaded.names else place for place, name in enumerate(order)]
        save_values(request["values"], [arrays[one] for one in at], loaded.run(arrays))
    return facts(request["out"], f"TensorFlow {tf.__version__}", f"{WAY} {tf2onnx.__version__}")


if __name__ == "__main__":
    serve(convert)
