"""Converts scikit-learn's estimators to ONNX: python sklearn_worker.py REQUEST.json REPLY.json."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import onnx
import skl2onnx
import sklearn
from skl2onnx.common import data_types
from sklearn.base import is_classifier, is_clusterer, is_outlier_detector, is_regressor
from sklearn.exceptions import InconsistentVersionWarning
from worker_shared import Refused, facts, name_dims, report, save_values, seeded, serve

ROWS = 16  # of the verification
WITHOUT = {"LinearClassifier", "LinearRegressor"}  # operators that skl2onnx replaces by products
TYPES = {
    "float32": data_types.FloatTensorType,
    "float64": data_types.DoubleTensorType,
    "int64": data_types.Int64TensorType,
    "int32": data_types.Int32TensorType,
    "bool": data_types.BooleanTensorType,
}


def load(request):
    """The estimator in the file. The user trusts it: the conversion asks before it begins this process."""
    if not request["trust"]:
        raise Refused("a pickle can run any code when it is loaded: if you trust where it comes from, pass --trust")
    sys.path.insert(0, request["folder"])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", InconsistentVersionWarning)
            found = joblib.load(request["path"])
    except InconsistentVersionWarning as warning:
        raise Refused(
            f"scikit-learn {warning.original_sklearn_version} saved it, and this Python has "
            f"{warning.current_sklearn_version}, which may compute something else: --python names a Python with "
            f"scikit-learn {warning.original_sklearn_version} and skl2onnx"
        ) from warning
    except (AttributeError, ImportError) as error:
        raise Refused(
            f"the pickle needs code that is not here: {error}. Run the command where the code lies, in a Python that "
            "has it (--python)"
        ) from error
    if not hasattr(found, "fit"):
        raise Refused(f"the pickle is {type(found).__name__}, and no estimator")
    return found


def inputs_of(request, estimator):
    """The inputs, as names, shapes with -1 for open dims, and dtypes: those of --input, or one for all features."""
    if request["inputs"]:
        return request["inputs"]
    features = getattr(estimator, "n_features_in_", None)
    if features is None:
        raise Refused("it does not say how many features it takes: pass --input NAME:SHAPE, such as --input x:?x4")
    return [{"name": "x", "shape": [-1, int(features)], "dtype": "float32"}]


def types_of(inputs):
    found = []
    for one in inputs:
        if one["dtype"] not in TYPES:
            raise Refused(f"--input {one['name']}: {one['dtype']} is not one of {', '.join(TYPES)}")
        shape = [None if size < 0 else size for size in one["shape"]]
        found.append((one["name"], TYPES[one["dtype"]](shape)))
    return found


def run(estimator, arrays):
    """The results of the estimator, in the order of the outputs that skl2onnx writes."""
    if len(arrays) != 1:
        raise Refused("it has several inputs, and values for their columns cannot be made: leave out --verify")
    (x,) = arrays
    predicts = is_classifier(estimator) or is_regressor(estimator) or is_clusterer(estimator)
    if is_outlier_detector(estimator):
        return [estimator.predict(x), estimator.decision_function(x)]
    if not predicts:
        made = estimator.transform(x)
        return [made.toarray() if hasattr(made, "toarray") else made]
    found = [estimator.predict(x)]
    if is_classifier(estimator):
        more = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
        found.append(getattr(estimator, more)(x))
    elif is_clusterer(estimator) and hasattr(estimator, "transform"):
        found.append(estimator.transform(x))
    return found


def like(value, output, name):
    """A value with the rank and the kind of an output of the ONNX model."""
    value, dims = np.asarray(value), output.type.tensor_type.shape.dim
    dtype = onnx.helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type)
    if value.dtype.kind not in "fiub" or dtype.kind not in "fiub":
        raise Refused(f"its output {name!r} has values of {value.dtype}, which are not compared: leave out --verify")
    return value.reshape(-1, 1).astype(dtype) if value.ndim < len(dims) else value.astype(dtype)


def convert(request):
    """Convert the file that a request names."""
    report("reading the file", 0.2)
    estimator = load(request)
    inputs = inputs_of(request, estimator)
    report("writing ONNX", 0.4)
    options = {"zipmap": False} if is_classifier(estimator) else None
    try:
        model = skl2onnx.to_onnx(
            estimator,
            initial_types=types_of(inputs),
            options=options,
            target_opset={"": request["opset"], "ai.onnx.ml": 3},
            black_op=WITHOUT,
        )
    except skl2onnx.common.exceptions.MissingShapeCalculator as error:
        raise Refused(f"skl2onnx cannot convert it: {str(error).strip()[:600]}") from error
    Path(request["out"]).write_bytes(model.SerializeToString())
    name_dims(request["out"], request["dynamic"])
    if request["values"]:
        report("running the estimator", 0.8)
        random = np.random.default_rng(request["seed"])
        arrays = [seeded([ROWS if size < 0 else size for size in one["shape"]], one["dtype"], random) for one in inputs]
        values = run(estimator, arrays)
        outputs = model.graph.output
        if len(values) != len(outputs):
            raise Refused(f"it has {len(outputs)} outputs, and {len(values)} can be computed: leave out --verify")
        values = [like(value, output, output.name) for value, output in zip(values, outputs, strict=True)]
        save_values(request["values"], arrays, values)
    return facts(request["out"], f"scikit-learn {sklearn.__version__}", f"skl2onnx {skl2onnx.__version__}")


if __name__ == "__main__":
    serve(convert)
