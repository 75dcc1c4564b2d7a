"""Passes make a model smaller without changing its results. The lists below name all passes, in their order."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from types import ModuleType

from perframe.errors import InputError
from perframe.ir import Evaluate, Model
from perframe.ir.inference import Inference
from perframe.ir.installed import import_installed
from perframe.ir.report import OptimizationReport, PassReport, noting
from perframe.passes.guard import Guard
from perframe.passes.lower.widen_halves import has_narrow_floats
from perframe.passes.origins import Origins
from perframe.passes.work import measure

log = logging.getLogger("perframe")
ENTRY_POINTS = "perframe.passes"  # the group in which an installed package names its modules with passes

PASSES = (
    "inline_branches",
    "fold_constants",
    "fix_reshapes",
    "remove_noops",
    "share_sizes",
    "merge_duplicates",
    "merge_moves",
    "merge_slices",
    "simplify_dft",
    "recognise_shuffles",
    "recognise_functions",
    "recognise_norms",
    "recognise_rotations",
    "recognise_appends",
    "recognise_rows",
    "recognise_tuples",
    "recognise_caches",
    "move_channels",
    "fuse_padding",
    "fuse_affine",
    "fuse_bias",
    "merge_affine",
    "merge_branches",
    "merge_products",
    "fuse_transposes",
    "fuse_scale",
    "fuse_activation",
    "fuse_gate",
    "remove_unused",
    "place_shape_arithmetic",
)

_SHADERS = (
    "widen_halves",
    "spell_out",
    "transform_products",
    "whole_products",
    "remove_noops",
    "fake_quantize",
    "fuse_attention",
    "pack_weights",
    "remove_unused",
    "fold_weights",
    "fuse_bias",
    "fuse_activation",
    "split_phases",
    "channel_blocks",
    "fold_constants",
    "remove_noops",
    "fuse_activation",
    "fuse_gate",
    "fuse_addition",
    "remove_unused",
    "place_wide_numbers",
    "place_halves",
)
# further passes for the kernels of one backend; they change a copy of the model, which the worker keeps
PREPARATIONS = {
    "cpu": (
        "widen_halves",
        "einsum_products",
        "fuse_quantized",
        "keep_quantized",
        "fuse_attention",
        "pack_weights",
        "remove_unused",
        "fold_weights",
        "remove_unused",
        "channels_last",
        "fold_constants",
        "fix_reshapes",
        "remove_noops",
        "fuse_affine",
        "fuse_bias",
        "fuse_activation",
        "fuse_gate",
        "fuse_addition",
        "fuse_excitation",
        "remove_unused",
        "place_shape_arithmetic",
    ),
    "gpu_compute": _SHADERS,
    "gpu_pixel": _SHADERS,
}

# passes that change no model without one of these operators: neither are they run there, nor are their files imported
ONLY_WITH = {
    "share_sizes": "Shape",
    "merge_slices": "Slice",
    "simplify_dft": "DFT",
    "recognise_shuffles": "Transpose",
    "recognise_norms": "ReduceMean",
    "recognise_rotations": "Concat",
    "recognise_appends": "Loop",
    "recognise_rows": "ScatterElements",
    "recognise_tuples": "ScatterND",
    "recognise_caches": "TensorScatter",
    "move_channels": "Transpose",
    "fuse_padding": "Pad",
    "fuse_transposes": "Transpose",
    "fuse_scale": "Mul Div",
    "einsum_products": "Einsum",
    "transform_products": "DFT STFT",
    "keep_quantized": "QuantizeLinear",
    "fuse_attention": "Softmax",
    "pack_weights": "DequantizeLinear",
    "fuse_excitation": "Mul",
}

# the preparations of a model that was loaded with optimize=False: they arrange data for kernels, and fuse nothing
_ARRANGING = frozenset(
    {
        *("widen_halves", "spell_out", "whole_products", "channels_last", "channel_blocks", "remove_unused"),
        *("place_shape_arithmetic", "place_wide_numbers", "place_halves"),
    }
)

Pass = Callable[[Model, Evaluate], int]


_FOLDERS = ("clean", "recognise", "fuse", "layout", "quantise", "lower", "place")
_added: dict[str, tuple[Pass, str]] = {}  # by name: the pass, and the pass after which it runs


def add_pass(name: str, run: Pass, *, after: str) -> None:
    """Let your own pass run in every `optimize`, after another pass.

    A name that was added before is replaced. Raises InputError if perframe has a pass of this name, or no pass `after`.
    """
    if not isinstance(name, str) or not callable(run):
        raise InputError(f"a pass has a name and a function run(model, evaluate), not {name!r:.80} and {run!r:.80}")
    if name in PASSES:
        raise InputError(f"perframe has a pass {name!r}: choose another name")
    before = after
    while before in _added and before != name:
        before = _added[before][1]
    if before not in PASSES:
        raise InputError(f"there is no pass {after!r} for {name!r} to run after; passes are {', '.join(pass_names())}")
    _added[name] = run, after


def has_added() -> bool:
    """Whether programs or installed packages have added passes. Raises ModelError if a package cannot be imported."""
    import_installed(ENTRY_POINTS, "passes")
    return bool(_added)


def pass_names() -> list[str]:
    """Return the names of the passes that `optimize` runs, in their order."""
    names, left = list(PASSES), dict(_added)
    while left:  # a pass that was replaced may run after one that was added later
        for name, (_, after) in list(left.items()):
            if after in names:
                names.insert(names.index(after) + 1, name)
                del left[name]
    return names


@functools.cache
def module_of(name: str) -> ModuleType:
    """Import the module of one of perframe's passes. Raises LookupError."""
    for folder in _FOLDERS:
        path = f"{__name__}.{folder}.{name}"
        if find_spec(path) is not None:
            return import_module(path)
    raise LookupError(f"there is no pass {name!r}")


def load_pass(name: str) -> Pass:
    """Return the pass of this name: it takes a model and a constant evaluator, and returns its number of changes."""
    if name in _added:
        return _added[name][0]
    found: Pass = module_of(name).run
    return found


def is_needed(name: str, model: Model) -> bool:
    """Whether a pass may change a model, by its operators."""
    wanted = ONLY_WITH.get(name)
    return wanted is None or any(layer.op in wanted.split() for layer in model.layers)


def preparations(model: Model, backend_type: str) -> Sequence[str]:
    """The names of the passes that prepare a model for a backend, in their order. What optimizes float32 comes after
    float16 has become float32.

    `model.preparations` limits them to the first ones, and of the rest to those that fuse nothing.
    """
    names: tuple[str, ...] = PREPARATIONS.get(backend_type, ())
    if names and has_narrow_floats(model):
        names = (names[0], *PASSES, *names[1:])
    if model.preparations is None or not names:
        return names
    first, later = names[: model.preparations], names[model.preparations :]
    kept = [name for name in dict.fromkeys(later) if name in _ARRANGING and name not in first]
    shapes = () if "place_shape_arithmetic" in (*first, *kept) else ("place_shape_arithmetic",)
    return [*first, *kept, *shapes]


def prepare(model: Model, evaluate: Evaluate, backend_type: str, explain: bool = False) -> Model:
    """Return the model in the form that a backend's kernels want: a changed copy, or the model itself if the backend
    has no preparations.

    The bodies of its layers are prepared when they become models. With `explain` the copy's report lists these passes.
    Raises PassError if a pass fails.
    """
    names = preparations(model, backend_type)
    if not names:
        return model
    prepared = model.copy()
    guard = Guard(prepared, evaluate, f"to prepare it for {backend_type}")
    runs: list[PassReport] = []
    with prepared.remembering():
        closing = Inference()
        before = size = measure(prepared, closing) if explain else None
        for name in names:
            with noting() as refusals:
                changes = guard.run(name, load_pass(name)) if is_needed(name, prepared) else 0
            if size is not None:
                after = measure(prepared, closing) if changes else size
                number = _changes(runs) + 1 if changes else 0
                runs.append(PassReport(number, name, changes, size, after, tuple(refusals)))
                size = after
    if before is not None and size is not None:
        prepared.report = OptimizationReport(before, size, _standing_refusals(runs, prepared))
    return prepared


def optimize(
    model: Model,
    evaluate: Evaluate,
    progress: Callable[[str, float], None] = lambda _what, _done: None,
    stop_after: int | None = None,
    explain: bool = False,
) -> OptimizationReport:
    """Run all passes until none changes the model, and verify it after each change.

    Each pass runs at least once if the model's operators need it, in the bodies of branches and loops first. With
    `stop_after`, only that many runs of passes change the model: halving the number repeatedly finds a pass that is at
    fault. With `explain` the report says where each layer comes from, and counts multiply-adds after each pass. Returns
    the report, which `model.report` keeps. Raises PassError if a pass fails.
    """
    import_installed(ENTRY_POINTS, "passes")
    names = pass_names()
    runs: list[PassReport] = []
    for layer in model.walk():
        for which, body in layer.inner_models.items():
            left = None if stop_after is None else stop_after - _changes(runs)
            inner = optimize(body, evaluate, stop_after=left, explain=explain).passes
            where = f"{layer.name} {which}"
            runs += [replace(run, number=_numbered(run, runs), body=f"{where} {run.body}".strip()) for run in inner]
    number = _changes(runs)
    guard, origins = Guard(model, evaluate, "to optimize it", _added), Origins(model) if explain else None
    closing = Inference()
    before = size = measure(model, closing)
    with model.remembering():
        idle = 0  # the passes that ran since the last change
        for index, name in cycle(enumerate(names)):
            if idle == len(names) or number == stop_after:
                break
            progress(f"optimizes {len(model.layers)} layers: {name}", index / len(names))
            with noting() as refusals:
                changes = guard.run(name, load_pass(name)) if is_needed(name, model) else 0
            idle, after = idle + 1, size
            if changes:
                idle, number, after = 0, number + 1, measure(model, closing if explain else None)
                if origins is not None:
                    origins.follow()
            runs.append(PassReport(number if changes else 0, name, changes, size, after, tuple(refusals)))
            size = after
    model.optimized = number != stop_after
    after = size if explain or size is before else measure(model, closing)
    origin, gone = ((), ()) if origins is None else origins.result()
    model.report = OptimizationReport(before, after, _standing_refusals(runs, model), origin, gone)
    log.debug("%s: %s", model.name, model.report)
    return model.report


def _changes(runs: Sequence[PassReport]) -> int:
    """How many of the runs changed a model."""
    return max((run.number for run in runs), default=0)


def _numbered(run: PassReport, runs: Sequence[PassReport]) -> int:
    """The number of a body's run, after all runs before it."""
    return run.number + _changes(runs) if run.number else 0


def _standing_refusals(runs: Sequence[PassReport], model: Model) -> tuple[PassReport, ...]:
    """The runs, with the refusals that still hold: those of each pass's last run, and earlier ones of layers that are
    left, if the pass has changed nothing since. It may not match them any more, as where an epilogue was fused.
    """
    left = {layer.name for layer in model.layers}
    said: dict[tuple[str, str], set[str]] = {}  # layers by pass and body
    made, changed = [], set()
    for run in reversed(runs):
        key = run.name, run.body
        is_last, known = key not in said, said.setdefault(key, set())
        stands = [one for one in run.refusals if is_last or (one.layer in left - known and key not in changed)]
        known.update(one.layer for one in run.refusals)
        if run.changes:
            changed.add(key)
        made.append(replace(run, refusals=tuple(stands)))
    return tuple(reversed(made))
