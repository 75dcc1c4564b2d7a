"""Writes TensorFlow's files for the tests: python write_tensorflow_files.py FOLDER. It runs in a Python that has it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"], os.environ["CUDA_VISIBLE_DEVICES"] = "2", "-1"

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

v1, layers = tf.compat.v1, tf.keras.layers


def network() -> tf.keras.Model:
    image = tf.keras.Input((8, 8, 3), name="image")
    found = layers.Conv2D(4, 3, padding="same", activation="relu")(image)
    found = layers.BatchNormalization()(found)
    found = layers.GlobalAveragePooling2D()(found)
    return tf.keras.Model(image, layers.Dense(5, name="scores")(found))


NETWORKS = """
import tensorflow as tf
from tensorflow.keras import layers


def make(classes=5):
    image = tf.keras.Input((8, 8, 3), name="image")
    found = layers.Conv2D(4, 3, padding="same", activation="relu")(image)
    found = layers.BatchNormalization()(found)
    found = layers.GlobalAveragePooling2D()(found)
    return tf.keras.Model(image, layers.Dense(classes, name="scores")(found))


def make_wrong():
    return make(6)


def make_less():
    image = tf.keras.Input((8, 8, 3), name="image")
    return tf.keras.Model(image, layers.Conv2D(4, 3, padding="same", activation="relu")(image))


def make_nothing():
    return "a text"


class Product(tf.Module):
    def __init__(self):
        self.w = tf.Variable(tf.zeros((4, 3)), name="w")

    def __call__(self, x):
        return x @ self.w


def make_module():
    return Product()


def make_with_inputs():
    return Product(), (tf.zeros((2, 4)),)
"""


def write_weights(folder: Path, model: tf.keras.Model) -> None:
    """Checkpoints of objects under several names, and one by the names of variables, as TensorFlow 1 wrote."""
    (folder / "networks.py").write_text(NETWORKS)
    tf.train.Checkpoint(model).write(str(folder / "root"))
    tf.train.Checkpoint(net=model, step=tf.Variable(3), optimizer=model.optimizer).save(str(folder / "trained"))
    module = tf.Module()
    module.w = tf.Variable(np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32), name="w")
    tf.train.Checkpoint(module=module).write(str(folder / "product"))
    with tf.Graph().as_default(), v1.Session() as session:
        variable = v1.get_variable("w", initializer=np.ones((4, 3), np.float32))
        session.run(v1.global_variables_initializer())
        v1.train.Saver([variable]).save(session, str(folder / "named"), write_meta_graph=False)


def write_tensorflow_1(folder: Path) -> None:
    """A graph with its checkpoint, and the same graph with constants in place of variables."""
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, (None, 4), "x")
        weights = v1.get_variable("w", initializer=np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32))
        tf.nn.relu(x @ weights + 1, name="y")
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, str(folder / "model.ckpt"))
            frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
    (folder / "frozen.pb").write_bytes(frozen.SerializeToString())
    write_graph_of_tfjs(folder / "tfjs_graph", frozen)


def write_weights_of_tfjs(folder: Path, arrays: dict[str, np.ndarray]) -> list[dict]:
    """Two files of weights, as TensorFlow.js cuts them, and their manifest."""
    data = b"".join(array.tobytes() for array in arrays.values())
    folder.mkdir()
    half = len(data) // 2
    names = ["group1-shard1of2.bin", "group1-shard2of2.bin"]
    for name, part in zip(names, (data[:half], data[half:]), strict=True):
        (folder / name).write_bytes(part)
    entries = [{"name": name, "shape": [*one.shape], "dtype": one.dtype.name} for name, one in arrays.items()]
    return [{"paths": names, "weights": entries}]


def write_graph_of_tfjs(folder: Path, frozen: v1.GraphDef) -> None:
    """A graph model: constants lie in the files of weights."""
    graph = v1.GraphDef()
    graph.CopyFrom(frozen)
    arrays = {}
    for node in graph.node:
        if node.op == "Const":
            arrays[node.name] = tf.make_ndarray(node.attr["value"].tensor)
            del node.attr["value"]
    found = {
        "format": "graph-model",
        "modelTopology": json_format.MessageToDict(graph),
        "signature": {"inputs": {"x": {"name": "x:0"}}, "outputs": {"result": {"name": "y:0"}}},
        "weightsManifest": write_weights_of_tfjs(folder, arrays),
    }
    (folder / "model.json").write_text(json.dumps(found))


def write_layers_of_tfjs(folder: Path, model: tf.keras.Model) -> None:
    """A layers model: Keras' own configuration, and weights by the names of layers."""
    arrays = {f"{layer.name}/{one.name}": one.numpy() for layer in model.layers for one in layer.weights}
    found = {
        "format": "layers-model",
        "modelTopology": {
            "keras_version": tf.keras.__version__,
            "backend": "tensorflow",
            "model_config": json.loads(model.to_json()),
        },
        "weightsManifest": write_weights_of_tfjs(folder, arrays),
    }
    (folder / "model.json").write_text(json.dumps(found))


def main(folder: Path) -> None:
    """Write all files."""
    tf.keras.utils.set_random_seed(0)
    model = network()
    model.compile(loss="mse")
    model.fit(np.random.rand(32, 8, 8, 3), np.random.rand(32, 5), verbose=0)  # statistics of their own
    model.save(folder / "model.keras")
    model.save(folder / "model.h5")
    model.save_weights(folder / "only.weights.h5")
    model.export(str(folder / "exported"), verbose=False)
    tf.saved_model.save(model, str(folder / "saved"))
    lambda_layer = tf.keras.Sequential([tf.keras.Input((3,)), layers.Lambda(lambda x: x * 2)])
    lambda_layer.save(folder / "lambda.keras")
    (folder / "model.tflite").write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())
    write_weights(folder, model)
    write_tensorflow_1(folder)
    write_layers_of_tfjs(folder / "tfjs_layers", model)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
