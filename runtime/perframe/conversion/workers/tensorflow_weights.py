"""TensorFlow's files of weights: a builder makes the network, and gets the weights of the file."""

from __future__ import annotations

import inspect

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2 as object_graph_pb2
from worker_shared import Refused, function_of

OBJECTS, VALUE = "_CHECKPOINTABLE_OBJECT_GRAPH", "/.ATTRIBUTES/VARIABLE_VALUE"
TRAINING = ("optimizer", "save_counter", "keras_api")  # names beside the network
SHOWN = 12  # names in a message


def built(request):
    """The network with its weights. Inputs of the builder replace --input. Raises Refused where they do not fit."""
    builder = request["builder"]
    made = function_of(builder, request["folder"])()
    model, example = made if isinstance(made, tuple) else (made, None)
    if not isinstance(model, (tf.Module, tf.keras.Model)):
        raise Refused(f"--builder {builder} returned {type(model).__name__}, not a Keras model or a tf.Module")
    if example is not None and not request["inputs"]:
        function = model.call if isinstance(model, tf.keras.Model) else model.__call__
        names = [*inspect.signature(function).parameters]
        arrays = [np.asarray(one) for one in example]
        request["inputs"] = [
            {"name": name, "shape": [*one.shape], "dtype": one.dtype.name}
            for name, one in zip(names, arrays, strict=False)
        ]
    if not getattr(model, "inputs", None):  # its variables exist after the first call
        if not request["inputs"]:
            raise Refused("its inputs have no shapes: pass --input NAME:SHAPE, such as --input x:1x224x224x3")
        values = [tf.zeros([abs(size) for size in one["shape"]], one["dtype"]) for one in request["inputs"]]
        model(*values)
    if request["kind"] == "tf_checkpoint":
        restore(model, request["path"], builder)
    else:
        load_keras_weights(model, request["path"], builder)
    return model


def load_keras_weights(model, path, builder):
    if not hasattr(model, "load_weights"):
        raise Refused(f"--builder {builder} returned no Keras model, and the file has weights of one")
    try:
        model.load_weights(path)
    except (ValueError, KeyError) as error:
        raise Refused(f"its weights do not fit the network of --builder {builder}: {error!s:.600}") from error


def weights_of(path):
    """The content of an HDF5 file of weights, as text."""
    import h5py

    found = []

    def add(name, one):
        if isinstance(one, h5py.Dataset):
            found.append(f"{name} {one.dtype} {one.shape}")

    with h5py.File(path, "r") as file:
        file.visititems(add)
    return f"{len(found)} tensors, {', '.join(found[:6])}{', ...' if len(found) > 6 else ''}"


def restore(model, path, builder):
    """Give a model all its variables from a checkpoint: by the graph of objects, or by names where there is none."""
    names = [name for name, _ in tf.train.list_variables(path)]
    if OBJECTS not in names:
        return assign(model, path, set(names), builder)
    objects = object_graph_pb2.TrackableObjectGraph()
    objects.ParseFromString(tf.train.load_checkpoint(path).get_tensor(OBJECTS))
    children = {child.local_name: child.node_id for child in objects.nodes[0].children}
    problem, stored = "", []
    for root, node in {"": 0, **children}.items():
        checkpoint = tf.train.Checkpoint(**{root: model}) if root else tf.train.Checkpoint(model)
        own = keys_below(objects, node)
        stored = stored or own
        try:
            checkpoint.read(path).assert_existing_objects_matched().expect_partial()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            problem = problem or str(error).strip()
            continue
        if len(own) == len(model.variables):
            return None
        problem = f"it has {len(own)} weights, and the network {len(model.variables)} variables"
    raise Refused(f"its weights do not fit the network of --builder {builder}: {problem:.400}. {listed(stored)}")


def keys_below(objects, node):
    """The keys of all variables that belong to an object of a checkpoint, but for those of training."""
    waiting, seen, found = [node], set(), {}
    while waiting:
        at = waiting.pop()
        if at not in seen:
            seen.add(at)
            found.update((attribute.checkpoint_key, None) for attribute in objects.nodes[at].attributes)
            waiting += [one.node_id for one in objects.nodes[at].children if one.local_name not in TRAINING]
    return [key.removesuffix(VALUE) for key in found]


def assign(model, path, names, builder):
    reader = tf.train.load_checkpoint(path)
    wanted = {getattr(one, "path", one.name).removesuffix(":0"): one for one in model.variables}
    own = {name for name in names if name.partition("/")[0] not in TRAINING}
    if own != wanted.keys():
        missing, more = sorted(wanted.keys() - own), sorted(own - wanted.keys())
        raise Refused(
            f"its weights do not fit the network of --builder {builder}: it lacks "
            f"{', '.join(missing[:SHOWN]) or 'none'}, and has {', '.join(more[:SHOWN]) or 'none'} beside"
        )
    for name, variable in wanted.items():
        value = reader.get_tensor(name)
        if tuple(value.shape) != tuple(variable.shape):
            raise Refused(f"its weight {name} is {value.shape}, and that of --builder {builder} {variable.shape}")
        variable.assign(value)


def listed(names):
    return f"It holds {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}"
