"""What passes did to a model: its layers, bytes and multiply-adds before and after each, and what they refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, field
from typing import Any

from perframe.safety.records import dataclass


@dataclass(frozen=True)
class ModelSize:
    """The size of a model: its layers, the bytes of its constants, and the multiply-adds of one run.

    Open dims count as 1. Multiply-adds are those of products and convolutions. They are None if shapes depend on
    values, and for single passes if `optimize` was not asked to explain.
    """

    layers: int
    bytes: int
    multiply_adds: int | None


@dataclass(frozen=True)
class Refusal:
    """A layer that a pass matched and did not change, and the reason."""

    layer: str
    operator: str
    reason: str

    def __str__(self) -> str:
        return f"{self.layer} ({self.operator}): {self.reason}"


@dataclass(frozen=True)
class PassReport:
    """One run of a pass. `number` counts the runs that changed the model, from 1; it is 0 for a run without changes."""

    number: int
    name: str
    changes: int
    before: ModelSize
    after: ModelSize
    refusals: tuple[Refusal, ...] = ()
    body: str = ""  # the name of the branch's or loop's body that it ran on; empty for the model itself


@dataclass(frozen=True)
class Origin:
    """A layer after the passes, as text, and the layers of the file from which passes made it."""

    layer: str
    sources: tuple[str, ...]

    @property
    def is_changed(self) -> bool:
        """Whether it is another layer than in the file."""
        return self.sources != (self.layer,)

    def __str__(self) -> str:
        return f"{self.layer} ← {', '.join(self.sources) or 'nothing of the file'}"


@dataclass(frozen=True)
class OptimizationReport:
    """What `optimize` did to a model. `str(report)` is a table.

    `origins` says for each layer where it comes from, and `gone` lists the layers of the file that are in none of them:
    they were folded into constants, merged with an equal layer, or had no effect. Both are empty unless `optimize` was
    asked to explain.
    """

    before: ModelSize
    after: ModelSize
    passes: tuple[PassReport, ...] = field(default=())
    origins: tuple[Origin, ...] = ()
    gone: tuple[str, ...] = ()

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> OptimizationReport:
        """Return the report of which `as_json` made this, without origins."""

        def run(one: Mapping[str, Any]) -> PassReport:
            sizes = {which: ModelSize(**one[which]) for which in ("before", "after")}
            return PassReport(**{**one, **sizes, "refusals": tuple([Refusal(**each) for each in one["refusals"]])})

        before, after = ModelSize(**said["before"]), ModelSize(**said["after"])
        return cls(before, after, tuple([run(one) for one in said["passes"]]))

    @property
    def refusals(self) -> dict[str, tuple[Refusal, ...]]:
        """What each pass refused in its last run, by the name of the pass."""
        return {one.name: one.refusals for one in self.passes if one.refusals}

    def as_json(self) -> dict[str, Any]:
        """Return numbers and texts that `json` takes."""
        return asdict(self)

    def __str__(self) -> str:
        """A line for the whole, a line for each pass that changed something, and a line for each refusal."""
        lines = [f"{'pass':28}{'changes':>8}  layers, bytes of constants, multiply-adds"]
        for one in self.passes:
            if one.changes:
                lines.append(f"{one.number:3} {one.name:24}{one.changes:8}  {change(one.before, one.after)}")
        lines.append(f"{'together':36}  {change(self.before, self.after, complete=True)}")
        lines += [f"{name} refused {refusal}" for name, refused in self.refusals.items() for refusal in refused]
        return "\n".join(lines)


def change(before: ModelSize, after: ModelSize, complete: bool = False) -> str:
    """Two sizes as text: the layers, and what else changed; or everything."""
    pairs = [
        ("layers", before.layers, after.layers),
        ("bytes", before.bytes, after.bytes),
        ("multiply-adds", before.multiply_adds, after.multiply_adds),
    ]
    return ", ".join(
        f"{was:,} → {now:,} {what}"
        for what, was, now in pairs
        if was is not None and now is not None and (was != now or what == "layers" or complete)
    )


_refusals: ContextVar[dict[Refusal, None] | None] = ContextVar("refusals", default=None)


@contextmanager
def noting() -> Iterator[dict[Refusal, None]]:
    """Collect the refusals within the `with` block, each once."""
    collected: dict[Refusal, None] = {}
    token = _refusals.set(collected)
    try:
        yield collected
    finally:
        _refusals.reset(token)


def refuse(layer: Any, reason: str) -> None:
    """Note why a pass leaves a layer unchanged. Call it for a layer that looks like a match, and fails a check."""
    collected = _refusals.get()
    if collected is not None:
        collected[Refusal(layer.name, layer.op, reason)] = None
