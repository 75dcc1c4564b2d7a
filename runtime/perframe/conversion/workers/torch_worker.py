"""Converts PyTorch's files to ONNX: python torch_worker.py REQUEST.json REPLY.json."""

from __future__ import annotations

import inspect
import os
import re
import sys
import warnings

import numpy as np
import torch
from torch_code import check_program, check_script
from worker_shared import Refused, facts, function_of, name_dims, report, save_values, seeded, serve, without_pickles

OLDEST_OF_PROGRAMS = 18  # opset that the exporter of programs writes
NEWEST_OF_SCRIPTS = 20  # opset that the exporter of TorchScript writes
SAMPLE, OTHER_SAMPLE = 2, 3  # sizes of dims that stay open, in the export and in the verification
PREFIXES = ("module.", "model.", "_orig_mod.")  # that training puts before all names


# --- loading ---


def load(request):
    """The network, and inputs for it if the file or the builder has some."""
    kind, path = request["kind"], request["path"]
    if kind == "exported_program":
        with without_pickles(request["trust"]):
            program = torch.export.load(path)
        if not request["trust"]:
            check_program(program)
        return program, (program.example_inputs or ((), {}))
    if kind == "torchscript":
        if not request["trust"]:
            check_script(path)
        return torch.jit.load(path, map_location="cpu").eval(), None
    if kind == "module":
        sys.path.insert(0, request["folder"])
        return evaluated(module_in(unpickled(path, trust=True))), None
    return built(request)


def unpickled(path, trust):
    try:
        return torch.load(path, map_location="cpu", weights_only=not trust)
    except AttributeError as error:  # a class of a program that is not here
        raise Refused(
            f"the pickle names a class that cannot be imported: {error}. Run the command where its code lies, in a "
            "Python that has it (--python); or save the network's state_dict, and give --builder"
        ) from error
    except ImportError as error:
        raise Refused(
            f"the pickle needs code that is not here: {error}. Run the command where the code lies, in a Python that "
            "has it (--python)"
        ) from error
    except Exception as error:
        if trust:
            raise
        named = re.search(r"GLOBAL ([\w.]+)", str(error))
        reason = f"imports {named[1]}" if named else f"needs more ({error!s:.300})"
        raise Refused(
            "a pickle can run any code when it is loaded, so PyTorch loads weights alone (weights_only=True), and this "
            f"one {reason}. If you trust where the file comes from, pass --trust"
        ) from error


def module_in(found):
    """The module in what was unpickled: itself, or the first one in a mapping."""
    if isinstance(found, torch.nn.Module):
        return found
    if isinstance(found, dict):
        for value in found.values():
            if isinstance(value, torch.nn.Module):
                return value
    raise Refused(f"the pickle is {type(found).__name__}, and has no torch.nn.Module")


def evaluated(module):
    """The module ready for an export: float32 on the CPU, without dropout."""
    return module.to("cpu").float().eval()


def built(request):
    """Make the network with the builder, and give it the weights of the file."""
    builder = function_of(request["builder"], request["folder"])
    made = builder()
    module, inputs = made if isinstance(made, tuple) else (made, None)
    if not isinstance(module, torch.nn.Module):
        raise Refused(f"--builder {request['builder']} returned {type(module).__name__}, not a torch.nn.Module")
    if request["kind"] == "safetensors":
        from safetensors.torch import load_file

        weights = load_file(request["path"])
    else:
        weights = unpickled(request["path"], request["trust"])
    give_weights(module, weights, request["builder"])
    return evaluated(module), None if inputs is None else (tuple(inputs), {})


def state_dicts(found, depth=0):
    """The mappings from names to tensors in a checkpoint, at most three mappings deep."""
    if isinstance(found, dict) and depth < 3:
        tensors = {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}
        if tensors and all(isinstance(name, str) for name in tensors):
            yield tensors
        for value in found.values():
            yield from state_dicts(value, depth + 1)


def without_prefixes(weights):
    """The weights under their own names, and under names without what training puts before them."""
    yield weights
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in weights):
            yield from without_prefixes({name[len(prefix) :]: value for name, value in weights.items()})


def give_weights(module, found, builder):
    """Load the weights that fit best; all names and shapes must fit."""
    wanted = module.state_dict()
    candidates = [names for weights in state_dicts(found) for names in without_prefixes(weights)]
    if not candidates:
        raise Refused("it has no tensors by name")
    weights = max(candidates, key=lambda names: (len(names.keys() & wanted.keys()), -len(names.keys() - wanted.keys())))
    problems = [f"  missing in the file: {name}" for name in wanted if name not in weights]
    problems += [f"  not in the network: {name}" for name in weights if name not in wanted]
    problems += [
        f"  {name}: {tuple(weights[name].shape)} in the file, {tuple(wanted[name].shape)} in the network"
        for name in wanted
        if name in weights and weights[name].shape != wanted[name].shape
    ]
    if problems:
        more = [f"  and {len(problems) - 40} more"] if len(problems) > 40 else []
        raise Refused("\n".join([f"its weights do not fit the network of --builder {builder}:", *problems[:40], *more]))
    module.load_state_dict(weights, strict=True)


# --- inputs ---


def parameters_of(module):
    """The names of the parameters of a module's forward, and of those that have no default."""
    if isinstance(module, torch.jit.ScriptModule):
        declared = module.forward.schema.arguments[1:]
        return [one.name for one in declared], [one.name for one in declared if not one.has_default_value()]
    declared = inspect.signature(module.forward).parameters.values()
    named = [one for one in declared if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return [one.name for one in named], [one.name for one in named if one.default is one.empty]


def declared_inputs(request, module):
    """The inputs of --input, in the order of forward's parameters if all of them have its names."""
    inputs = request["inputs"]
    names, needed = parameters_of(module)
    if not inputs:
        said = ", ".join(needed or names) or "unknown"
        raise Refused(
            f"its inputs have no shapes in the file. The parameters of forward are {said}: name each with its shape, "
            f"such as --input {(needed or names or ['x'])[0]}:1x3x224x224"
        )
    if len(inputs) < len(needed):
        raise Refused(f"forward needs {len(needed)} inputs, {', '.join(needed)}, and --input names {len(inputs)}")
    if all(one["name"] in names for one in inputs):
        inputs = sorted(inputs, key=lambda one: names.index(one["name"]))
        if [one["name"] for one in inputs] != names[: len(inputs)]:
            raise Refused(
                f"forward's parameters are {', '.join(names)}: --input must name the first ones, without gaps"
            )
    return inputs


def sample(one, dynamic, size, random):
    """A random tensor for an input. Its open dims have another size than 1, which PyTorch would take for fixed."""
    shape = list(one["shape"])
    for wanted in dynamic:
        if wanted["input"] == one["name"]:
            if not -len(shape) <= wanted["axis"] < len(shape):
                raise Refused(
                    f"--dynamic: {one['name']!r} has {len(shape)} dims, and none with the index {wanted['axis']}"
                )
            given = shape[wanted["axis"]]
            shape[wanted["axis"]] = size if given in (-1, 1) else given + (size == OTHER_SAMPLE)
    if -1 in shape:
        raise Refused(f"--input {one['name']}: dim {shape.index(-1)} is open: name it with --dynamic")
    return torch.from_numpy(seeded(shape, one["dtype"], random))


def open_dims(request, inputs):
    """The names of the open dims of each input, by axis."""
    found = [{} for _ in inputs]
    names = [one["name"] for one in inputs]
    for wanted in request["dynamic"]:
        if wanted["input"] not in names:
            raise Refused(f"--dynamic: there is no input {wanted['input']!r}; there are {', '.join(names)}")
        at = names.index(wanted["input"])
        found[at][wanted["axis"] % len(inputs[at]["shape"])] = wanted["name"]
    return found


# --- exports ---


def export_program(program, args, kwargs, request, out, **options):
    """Export with the exporter of programs (dynamo)."""
    made = torch.onnx.export(
        program, args, kwargs=kwargs, dynamo=True, verbose=False, opset_version=request["opset"], **options
    )
    made.save(out)


def export_script(module, args, request, out, names, dims):
    """Export with the exporter of TorchScript, which also traces modules."""
    if request["opset"] > NEWEST_OF_SCRIPTS:
        raise Refused(f"PyTorch's exporter of TorchScript writes opsets up to {NEWEST_OF_SCRIPTS}: pass --opset 18")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        count = len(flat(module(*[one.clone() for one in args])))
        torch.onnx.export(
            module,
            args,
            out,
            dynamo=False,
            opset_version=request["opset"],
            input_names=names,
            output_names=["output"] if count == 1 else [f"output_{at}" for at in range(count)],
            dynamic_axes={name: axes for name, axes in zip(names, dims, strict=True) if axes} or None,
        )


def flat(found):
    """The tensors in what a network returns, in order."""
    leaves = torch.utils._pytree.tree_leaves(found)
    return [leaf.detach().numpy() for leaf in leaves if isinstance(leaf, torch.Tensor)]


def write_values(request, run, inputs):
    """Run the network itself, for the comparison."""
    with torch.no_grad():
        save_values(request["values"], [one.numpy() for one in inputs], flat(run(*[one.clone() for one in inputs])))


def convert_program(request, program, example):
    """Convert a program, whose inputs and open dims are in the file."""
    random = np.random.default_rng(request["seed"])
    args, kwargs = example
    if not args and not kwargs and program.graph_signature.user_inputs:
        raise Refused("it has no sample inputs: save the program again, with torch.export.export of this PyTorch")
    names = [name for name in program.graph_signature.user_inputs if isinstance(name, str)]
    for given in request["inputs"]:
        if given["name"] not in names:
            raise Refused(f"--input: there is no input {given['name']!r}; there are {', '.join(names)}")
    report("writing ONNX", 0.4)
    way = "torch.onnx.export(dynamo=True)"
    if request["opset"] >= OLDEST_OF_PROGRAMS:
        export_program(program, (), None, request, request["out"])
    else:
        way = "torch.onnx.export(dynamo=False)"
        symbolic = any("Sym" in type(size).__name__ for size in sizes_of(program))
        if symbolic or kwargs:
            raise Refused(
                f"a program with open dims is written with opset {OLDEST_OF_PROGRAMS} or newer: pass --opset 18"
            )
        export_script(program.module(), tuple(args), request, request["out"], names, [{} for _ in names])
    name_dims(request["out"], request["dynamic"])
    if request["values"]:
        report("running the network", 0.8)
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        inputs = [one for one in leaves if isinstance(one, torch.Tensor)]
        inputs = [like(one, random) for one in inputs]
        module = program.module()
        shape = torch.utils._pytree.tree_structure((args, kwargs))
        others = iter(inputs)
        filled = [next(others) if isinstance(one, torch.Tensor) else one for one in leaves]
        args, kwargs = torch.utils._pytree.tree_unflatten(filled, shape)
        write_values(request, lambda *_: module(*args, **kwargs), inputs)
    return facts(request["out"], f"PyTorch {torch.__version__}", way)


def like(tensor, random):
    """Random values of a sample's shape and dtype; integers stay those of the sample, which may be indices."""
    if not tensor.is_floating_point():
        return tensor.detach().cpu()
    return torch.from_numpy(seeded(tuple(tensor.shape), np.float32, random)).to(tensor.dtype)


def sizes_of(program):
    """The sizes of all inputs of a program, open ones as symbols."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor):
            yield from value.shape


def traced_program(module, args, dims):
    """The program of a module. Dims of one name have one size; where PyTorch cannot prove that, each is on its own."""
    if not any(dims):
        return torch.export.export(module, args, strict=False)
    named = {name: torch.export.Dim(name) for axes in dims for name in axes.values()}
    shapes = tuple({axis: named[name] for axis, name in axes.items()} or None for axes in dims)
    try:
        return torch.export.export(module, args, dynamic_shapes=shapes, strict=False)
    except torch._dynamo.exc.UserError as error:
        print(f"{error!s:.600}")
    shapes = tuple({axis: torch.export.Dim.AUTO for axis in axes} or None for axes in dims)
    return torch.export.export(module, args, dynamic_shapes=shapes, strict=False)


def convert_module(request, module, example):
    """Convert a module, or a TorchScript file, with the inputs of --input or of the builder."""
    random = np.random.default_rng(request["seed"])
    if example is not None and not request["inputs"]:
        names = parameters_of(module)[0]
        inputs = [
            {"name": names[at], "shape": list(one.shape), "dtype": str(one.numpy().dtype)}
            for at, one in enumerate(example[0])
        ]
    else:
        inputs = declared_inputs(request, module)
    names, dims = [one["name"] for one in inputs], open_dims(request, inputs)
    args = tuple(sample(one, request["dynamic"], SAMPLE, random) for one in inputs)
    report("writing ONNX", 0.4)
    way = "torch.onnx.export(dynamo=True)"
    if isinstance(module, torch.jit.ScriptModule) or request["opset"] < OLDEST_OF_PROGRAMS:
        way = "torch.onnx.export(dynamo=False)"
        export_script(module, args, request, request["out"], names, dims)
    else:
        try:
            program = traced_program(module, args, dims)
            export_program(program, (), None, request, request["out"], input_names=names)
        except Exception as error:
            print(f"the exporter of programs failed: {type(error).__name__}: {error!s:.1000}")
            report("tracing, because the exporter of programs failed", 0.6)
            way = "torch.onnx.export(dynamo=False), because dynamo=True failed"
            export_script(module, args, request, request["out"], names, dims)
    if any(dims):
        name_dims(request["out"], request["dynamic"])
    if request["values"]:
        report("running the network", 0.8)
        size = OTHER_SAMPLE if request["dynamic"] else SAMPLE
        write_values(request, module, [sample(one, request["dynamic"], size, random) for one in inputs])
    return facts(request["out"], f"PyTorch {torch.__version__}", way)


def convert(request):
    """Convert the file that a request names."""
    torch.manual_seed(request["seed"])
    torch.set_num_threads(max(1, min(4, os.cpu_count() or 1)))
    report("reading the file", 0.2)
    network, example = load(request)
    if request["kind"] == "exported_program":
        return convert_program(request, network, example)
    return convert_module(request, network, example)


if __name__ == "__main__":
    serve(convert)
