"""ONNX's own backend cases, as the installed onnx ships them, and the list of those that perframe does not pass."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import perframe as pf

RANDOM = "random numbers are compared"  # a reason in not_passed.txt
HERE = Path(__file__).parent
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
BFLOAT16 = 2.0**-6  # the least relative tolerance of bfloat16 in the runner of ONNX (assert_similar_outputs)


@dataclass(frozen=True)
class Case:
    """One model with its data sets and tolerances."""

    name: str
    case: Any

    @property
    def model(self) -> onnx.ModelProto:
        return self.case.model or onnx.load(Path(self.case.model_dir) / "model.onnx")

    def data_sets(self) -> Iterator[tuple[dict[str, Any], list[Any]]]:
        """Inputs by name, and outputs in order."""
        model = self.model
        names = [info.name for info in model.graph.input]
        if self.case.data_sets is not None:
            for inputs, outputs in self.case.data_sets:
                yield dict(zip(names, map(plain, inputs), strict=False)), [plain(value) for value in outputs]
            return
        for folder in sorted(Path(self.case.model_dir).glob("test_data_set_*")):
            given = [read(folder / f"input_{i}.pb", info) for i, info in enumerate(model.graph.input)]
            made = [read(folder / f"output_{i}.pb", info) for i, info in enumerate(model.graph.output)]
            yield {n: value for n, value in zip(names, given, strict=True) if value is not None}, made

    def __str__(self) -> str:
        return self.name


def read(path: Path, info: onnx.ValueInfoProto) -> Any:
    """Read a value from its file; None without a file, as for an initializer that is also an input."""
    if not path.exists():
        return None
    kinds = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}
    proto = next((kind() for field, kind in kinds.items() if info.type.HasField(field)), onnx.TensorProto())
    proto.ParseFromString(path.read_bytes())
    return plain(proto)


def plain(value: Any) -> Any:
    """Arrays, lists and None for ONNX's messages."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value


@cache
def all_cases() -> list[Case]:
    """Every case, each name once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {case.name: Case(case.name, case) for kind in KINDS for case in load_model_tests(kind=kind)}
    return list(found.values())


def not_passed() -> dict[tuple[str, str], str]:
    """(backend or "all", case) to the reason, from not_passed.txt."""
    return _listed("not_passed.txt")


def not_strict() -> dict[tuple[str, str], str]:
    """Map (GL backend or "all", case) to a strict worker's reason to refuse it, from not_strict.txt."""
    return _listed("not_strict.txt")


def write_list(file: str, found: Mapping[str, Mapping[str, str]]) -> None:
    """Write a list of cases for `not_passed` or `not_strict`. Cases that all backends share come first."""
    common = set.intersection(*(set(cases) for cases in found.values()))
    first = next(iter(found.values()))
    sections: dict[str, Mapping[str, str]] = {"all": {name: first[name] for name in common}}
    sections |= {
        backend: {name: why for name, why in cases.items() if name not in common} for backend, cases in found.items()
    }
    lines: list[str] = []
    for backend, cases in sections.items():
        if cases:
            lines.append(f"[{backend}]")
            for reason in sorted(set(cases.values())):
                lines += [f"# {reason}", *sorted(name for name, why in cases.items() if why == reason)]
            lines.append("")
    (HERE / file).write_text("\n".join(lines), encoding="utf-8")
    _listed.cache_clear()


@cache
def _listed(file: str) -> dict[tuple[str, str], str]:
    reasons, backend, reason = {}, "all", ""
    for line in (HERE / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            backend = line.strip("[]")
        elif line.startswith("# "):
            reason = line[2:]
        elif line:
            reasons[backend, line] = reason
    return reasons


def run(case: Case, backend: str, ctx: Any, strict: bool = False, values: bool = True) -> None:
    model = pf.load(case.model)
    for inputs, outputs in case.data_sets():
        made = pf.run(model, inputs, backend=backend, ctx=ctx, strict=strict)
        for got, want in zip(made.values(), outputs, strict=True):
            if values:
                compare(got, want, case.case.rtol, case.case.atol)
            else:
                compare_kind(got, want)


def compare(got: Any, want: Any, rtol: float, atol: float) -> None:
    """Raise AssertionError where a value differs in kind, shape, dtype or by more than the tolerances."""
    if isinstance(want, (list, tuple)):
        assert isinstance(got, (list, tuple)) and len(got) == len(want), f"{got} is not a sequence of {len(want)}"
        for one, other in zip(got, want, strict=True):
            compare(one, other, rtol, atol)
        return
    if want is None:
        assert got is None
        return
    got, want = np.asarray(got), np.asarray(want)
    compare_kind(got, want)
    if want.dtype.kind in "OUST":
        assert np.array_equal(got.astype(str), want.astype(str))
        return
    if want.dtype.name == "bfloat16":
        rtol = max(rtol, BFLOAT16)
    if want.dtype.kind not in "biufc":  # ml_dtypes
        got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_allclose(got, want, rtol, atol)


def compare_kind(got: Any, want: Any) -> None:
    """Raise AssertionError where an array differs in shape or dtype; texts may be of any dtype of texts."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"shape {got.shape}, {want.shape} expected"
    assert want.dtype.kind in "OUST" or got.dtype == want.dtype, f"{got.dtype}, {want.dtype} expected"
