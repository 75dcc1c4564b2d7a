"""Runs a LiteRT file in LiteRT's own interpreter: python litert_worker.py REQUEST.json REPLY.json."""

from __future__ import annotations

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from worker_shared import save_values, seeded, serve

OPEN = 2  # the size of an open dim


def run(request):
    """Run a file on random inputs, and save the values in the file's order."""
    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_path=request["path"], experimental_op_resolver_type=plain)
    random = np.random.default_rng(request["seed"])
    if request["signature"] is not None:
        return run_signature(request, interpreter, random)
    inputs = interpreter.get_input_details()
    for one in inputs:
        if any(size < 0 for size in one["shape_signature"]):
            interpreter.resize_tensor_input(one["index"], [OPEN if n < 0 else n for n in one["shape_signature"]])
    interpreter.allocate_tensors()
    interpreter.reset_all_variables()  # their memory is not cleared before
    arrays = [seeded(interpreter.get_tensor(one["index"]).shape, one["dtype"], random) for one in inputs]
    for one, array in zip(inputs, arrays, strict=True):
        interpreter.set_tensor(one["index"], array)
    interpreter.invoke()
    outputs = [interpreter.get_tensor(one["index"]) for one in interpreter.get_output_details()]
    save_values(request["values"], arrays, outputs)
    return {"outputs": len(outputs)}


def run_signature(request, interpreter, random):
    """Run one signature, whose inputs and outputs have names."""
    runner = interpreter.get_signature_runner(request["signature"])
    details, arrays = runner.get_input_details(), {}
    for name in request["inputs"]:
        shape = [OPEN if size < 0 else size for size in details[name]["shape_signature"]]
        arrays[name] = seeded(shape, details[name]["dtype"], random)
    made = runner(**arrays)
    outputs = [made[name if name in made else name.removesuffix(":output")] for name in request["outputs"]]
    save_values(request["values"], list(arrays.values()), outputs)
    return {"outputs": len(outputs)}


if __name__ == "__main__":
    serve(run)
