"""`convert` makes an ONNX file of another framework's model file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from perframe.conversion.bundles import bundle_content
from perframe.conversion.checkpoints import listing, pickled_tensors, safetensors_content, torch_pickle
from perframe.conversion.detection import detect
from perframe.conversion.environments import clean_environment, environments_folder, python_for
from perframe.conversion.options import (
    SKLEARN,
    TENSORFLOW,
    TORCH,
    WEIGHTS,
    InputShape,
    SourceFile,
    check_opset,
    dims_of,
    inputs_of,
)
from perframe.conversion.processes import ChildError, run_child
from perframe.conversion.verification import OutputError, verify_loaded, verify_values
from perframe.errors import ConversionError, InputError
from perframe.exporters.saving import SUFFIXES, save
from perframe.importers.loading import load

Progress = Callable[[str, float], None]

NAMES_SHOWN = 12  # of a pickle, in an error
PROGRESS = "perframe-progress "  # begins a worker's line about its progress
PICKLES = ("module", "estimator")  # the kinds that are not loaded without trust
FRAMEWORKS = ("torch.", "sklearn.", "numpy.", "joblib.", "scipy.")  # whose names are shown last
NEEDED = {TORCH: "PyTorch and onnxscript", TENSORFLOW: "TensorFlow and tf2onnx", SKLEARN: "scikit-learn and skl2onnx"}
USUAL_NAMES = ("collections.", "builtins.set", "__builtin__.set", "torch._utils.", "torch.FloatStorage")
ANSWER = {"inputs", "outputs", "opset", "with"}  # in the reply of a worker that wrote a file
VALUES = "values.npz"
LITERT = "litert"
HDF5 = "hdf5"  # a network, or weights alone
SIGNED = (LITERT, "saved_model")  # the kinds with several signatures


@dataclass(frozen=True)
class Conversion:
    """A file that was converted. `made_with` names the framework and the exporter, and `errors` has the largest error
    of each output if the conversion was verified.
    """

    source: Path
    kind: str
    target: Path
    inputs: Sequence[str]
    outputs: Sequence[str]
    opset: int | None
    made_with: str
    bytes: int
    errors: Sequence[OutputError] = field(default=())

    @property
    def agrees(self) -> bool:
        """Whether all outputs that were compared agree."""
        return all(error.agrees for error in self.errors)


def convert(
    source: str | Path,
    target: str | Path,
    *,
    opset: int = 18,
    inputs: Sequence[str] | Mapping[str, Sequence[int] | InputShape] = (),
    outputs: Sequence[str] = (),
    dynamic: Sequence[str] | Mapping[str, Mapping[int, str]] = (),
    verify: bool = False,
    seed: int = 0,
    trust: bool = False,
    builder: str | None = None,
    python: str | Path | None = None,
    timeout: float = 1800.0,
    signature: str | None = None,
    progress: Progress | None = None,
) -> Conversion:
    """Convert a file of PyTorch, TensorFlow, Keras, TensorFlow.js, scikit-learn, LiteRT or Unity to ONNX. Blocks.

    The content of `source` decides its kind; the page "Convert" lists the kinds. `target` ends with .onnx, .perframe
    or .sentis, and is replaced when the new file is whole. The frameworks run in a separate process: in the
    running Python if it has them, else in `python`, else in an environment that the first conversion makes in the cache
    folder.

    `inputs` has shapes by name, {"image": (1, 3, 224, 224)} or ["image:1x3x224x224", "ids:1x16:int64"], where a file
    has none; -1 is an open dim. `outputs` chooses the outputs of a TensorFlow 1 graph. `dynamic` names dims that stay
    open, {"image": {0: "batch"}} or ["image:0=batch"]. `builder` names the function "module:function" that makes the
    network for a file of weights; the module is looked for in the current folder first.

    A pickle can run any code when it is loaded: `trust` allows that, and without it only weights are loaded. `verify`
    runs the framework and the new file on the same random inputs, and compares; see `Conversion.errors` and `agrees`.
    `timeout` limits the framework's process, in seconds. `signature` chooses what a LiteRT file or a SavedModel
    computes, if it has several.

    Raises MissingFileError, ConversionError (a ModelError) for a file that cannot be converted, and InputError for a
    wrong argument.
    """
    target = Path(target)
    check_opset(opset)
    wanted, dims = inputs_of(inputs), dims_of(dynamic)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"{str(target)!r} must end with one of {', '.join(SUFFIXES)}: the suffix selects the format")
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {str(target.parent)!r} for {target.name}")
    report = progress or (lambda _what, _done: None)
    found = detect(source)
    if found.path.resolve() == target.resolve():
        raise InputError(f"{target} is the file to convert: give another name for the result")
    if signature is not None and found.kind.name not in SIGNED:
        raise InputError(f"{found}: --signature is for LiteRT files and SavedModels")
    if not found.kind.framework:
        return _convert_here(found, target, verify, seed, timeout, report, signature)
    _check_weights(found, trust, builder)
    request = {
        "kind": found.kind.name,
        "path": str(found.path.resolve()),
        "opset": opset,
        "inputs": [asdict(one) for one in wanted],
        "outputs": [*outputs],
        "dynamic": [asdict(one) for one in dims],
        "trust": trust,
        "builder": builder,
        "folder": os.getcwd(),
        "seed": seed,
        "signature": signature,
    }
    chosen = python_for(found.kind.framework, found.kind.modules, python, report)
    with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent, ignore_cleanup_errors=True) as folder:
        reply, errors = _work(found, chosen, request, Path(folder), target, verify, timeout, report)
    return Conversion(
        Path(source),
        found.kind.name,
        target,
        reply["inputs"],
        reply["outputs"],
        reply["opset"] if target.suffix.lower() == ".onnx" else None,
        reply["with"],
        target.stat().st_size,
        tuple(errors),
    )


def _convert_here(
    found: SourceFile,
    target: Path,
    verify: bool,
    seed: int,
    seconds: float,
    report: Progress,
    signature: str | None,
) -> Conversion:
    """Convert a file that perframe itself reads. LiteRT's own interpreter verifies its files, if it is installed."""
    model = load(found.path, progress=report, signature=signature)
    save(model, target)
    names = ([value.name for value in model.inputs], model.output_names)
    errors: Sequence[OutputError] = ()
    if verify and found.kind.name == LITERT and find_spec("ai_edge_litert") is not None:
        with TemporaryDirectory() as name:
            folder = Path(name)
            asked = {"path": str(found.path.resolve()), "seed": seed, "values": str(folder / VALUES)}
            asked |= {"signature": signature, "inputs": names[0], "outputs": names[1]}
            _answer(found, Path(sys.executable), asked, folder, seconds, report)
            errors = verify_values(load(target), folder / VALUES)
    elif verify:
        errors = verify_loaded(load(found.path, optimize=False, signature=signature), load(target), seed)
    return Conversion(
        found.path, found.kind.name, target, *names, None, "perframe", target.stat().st_size, tuple(errors)
    )


def _check_weights(found: SourceFile, trust: bool, builder: str | None) -> None:
    """Raise ConversionError for weights without a builder, and for a pickled module without trust."""
    if found.kind.name in PICKLES and not trust:
        names = [name for name in found.calls if not name.startswith(USUAL_NAMES)]
        shown = ", ".join(sorted(names, key=lambda name: name.startswith(FRAMEWORKS))[:NAMES_SHOWN])
        other = "" if found.kind.name != "module" else "; or save the network's state_dict, and give --builder"
        raise ConversionError(
            f"{found}. A pickle can run any code when it is loaded, so it is not loaded. This one imports {shown}. If "
            f"you trust where the file comes from, pass --trust{other}"
        )
    if builder is None and found.kind.name not in WEIGHTS:
        return
    if found.kind.name not in (*WEIGHTS, HDF5):
        raise InputError(f"{found}: --builder is for files that have weights and no network")
    if builder is None:
        if found.kind.name == "tf_checkpoint":
            tensors = bundle_content(found.path)
        elif found.kind.name == "safetensors":
            tensors = safetensors_content(found.path)
        else:
            tensors = pickled_tensors(torch_pickle(found.path, _pickle_entry(found.path)).value, found.path)
        graph = Path(f"{found.path}.meta")
        other = f", or give the .meta file {graph.name}, which has the network" if graph.is_file() else ""
        raise ConversionError(
            f"{found}. Name the function that makes the network: --builder module:function{other}\n{listing(tensors)}"
        )
    if not builder.partition(":")[0] or not builder.partition(":")[2]:
        raise InputError(f"--builder takes MODULE:FUNCTION, such as networks:make; {builder!r} is not that")


def _pickle_entry(path: Path) -> str:
    from perframe.conversion.archives import zip_entries

    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return ""
    return next(name for name in zip_entries(path) if name == "data.pkl" or name.endswith("/data.pkl"))


def _work(
    found: SourceFile,
    python: Path,
    request: Mapping[str, Any],
    folder: Path,
    target: Path,
    verify: bool,
    seconds: float,
    report: Progress,
) -> tuple[dict[str, Any], Sequence[OutputError]]:
    """Let a worker write an ONNX file in a folder beside the target, verify that file, and put it into its place."""
    made, values = folder / f"{target.stem}.onnx", folder / VALUES
    asked = {**request, "out": str(made), "values": str(values) if verify else None}
    reply = _answer(found, python, asked, folder, seconds, report)
    if not made.is_file() or not reply.keys() >= ANSWER:
        raise ConversionError(f"{found}: the exporter wrote no file")
    own = target.suffix.lower() != ".onnx"
    errors: Sequence[OutputError] = ()
    model = None
    if verify or own:
        report("loading the new file", 0.9)
        model = load(made)
    if model is not None and verify:
        errors = verify_values(model, values)
    if model is not None and own:
        save(model, target)
    else:
        put(made, target)
    return reply, errors


def put(made: Path, target: Path) -> None:
    """Put a file, and its file of weights if it has one, into their places. Raises ConversionError."""
    weights = made.with_name(f"{made.name}.data")
    try:
        for path in (weights, made):
            if path.exists():
                with path.open("rb+") as file:
                    os.fsync(file.fileno())
                os.replace(path, target.with_name(path.name) if path == weights else target)
    except OSError as error:
        raise ConversionError(f"{str(target)!r} cannot be written: {error}") from error


def _answer(
    found: SourceFile, python: Path, request: Mapping[str, Any], folder: Path, seconds: float, report: Progress
) -> dict[str, Any]:
    """Run a worker, and return its reply. Raises ConversionError with the worker's reason or its last lines."""
    question, reply = folder / "request.json", folder / "reply.json"
    question.write_text(json.dumps(request), encoding="utf-8")
    script = Path(__file__).parent / "workers" / f"{found.kind.framework or found.kind.name}_worker.py"
    own = python == Path(sys.executable)

    def show(line: str) -> bool:
        if not line.startswith(PROGRESS):
            return False
        done, _, what = line.removeprefix(PROGRESS).partition(" ")
        report(what, float(done))
        return True

    environment = dict(os.environ) if own else clean_environment()
    try:
        lines = run_child((python, script, question, reply), seconds, environment, on_line=show)
        answer = json.loads(reply.read_bytes())
    except ChildError as error:
        raise ConversionError(
            f"{found}, and cannot be converted: {error}{_advice(found, python, error.lines)}"
        ) from error
    except (OSError, ValueError) as error:
        raise ConversionError(f"{found}, and cannot be converted: its process left no reply ({error})") from error
    if "refused" in answer:
        raise ConversionError(f"{found}: {answer['refused']}")
    if "error" in answer:
        output = "".join(f"\n  | {line}" for line in lines)
        raise ConversionError(f"{found}, and cannot be converted: {answer['error']!s:.2000}{output}")
    return dict(answer)


def _advice(found: SourceFile, python: Path, lines: Sequence[str]) -> str:
    if any("ModuleNotFoundError" in line for line in lines):
        needed = NEEDED[found.kind.framework]
        return f"\n{python} needs {needed}; without --python an environment is made in {environments_folder()}"
    return ""
