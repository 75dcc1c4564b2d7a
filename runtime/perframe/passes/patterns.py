"""Patterns of layers, and the rules that rewrite what they match.

A rule is a function with the pattern's names as parameters. It returns the number of changes it made to the model, 0
where a check fails, or the reason why it refuses as a text, which `perframe optimize --explain` prints.

```python
run = Rules()

@run.rule(Op("Add", Op("Conv", name="conv"), Constant("bias"), in_any_order=True))
def _fuse(model: Model, root: Layer, conv: Layer, bias: Value) -> int | str: ...
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from itertools import permutations

from perframe.errors import ModelError
from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.declaration import REGISTRY, find_declaration
from perframe.ir.index import FAMILIES, FILE_OF
from perframe.ir.report import refuse
from perframe.safety.records import dataclass

Found = Mapping[str, Layer | Value]
Rewrite = Callable[..., int | str]
SHARED = "/shared"  # a name that no pattern has: a layer on the way whose result other layers read too


@dataclass(frozen=True)
class AnyValue:
    """Any value. The name stands for the same value wherever a pattern has it."""

    name: str

    def find(self, value: Value | None, found: Found) -> Iterator[Found]:
        """Yield what is found with this value as the input."""
        if value is not None and found.get(self.name, value) is value:
            yield {**found, self.name: value}


@dataclass(frozen=True)
class Constant(AnyValue):
    """A constant."""

    def find(self, value: Value | None, found: Found) -> Iterator[Found]:
        """Yield what is found with this value as the input."""
        if value is not None and value.constant is not None:
            yield from super().find(value, found)


class Op:
    """A layer of one of some operators, or of a family's: `Op("Mul Div")`, `Op(family="conv conv_transpose")`.

    `inputs` are patterns of its first inputs. The rule refuses if the result of an inner layer has other readers,
    unless it may be `shared`. Layers with an epilogue match only with `epilogue`.
    """

    def __init__(
        self,
        ops: str = "",
        *inputs: AnyValue | Op,
        family: str = "",
        name: str = "",
        in_any_order: bool = False,
        epilogue: bool = False,
        shared: bool = False,
    ) -> None:
        self.ops, self.families = frozenset(ops.split()), frozenset(family.split())
        self.inputs, self.name, self.in_any_order = inputs, name, in_any_order
        self.epilogue, self.shared = epilogue, shared

    @property
    def names(self) -> set[str]:
        """The names in the pattern."""
        inner = (part.names if isinstance(part, Op) else {part.name} for part in self.inputs)
        return {self.name, *(name for names in inner for name in names)} - {""}

    def check(self) -> None:
        """Raise ModelError for an operator or a family that does not exist: the pattern would never match."""
        families = FAMILIES | {entry.family for entry in REGISTRY.values()}
        for name in sorted(self.ops | self.families):
            if name not in families and name not in FILE_OF and find_declaration(name) is None:
                raise ModelError(f"a pattern names {name!r}, and there is no such operator or family")
        for part in self.inputs:
            if isinstance(part, Op):
                part.check()

    def find(self, value: Value | None, found: Found) -> Iterator[Found]:
        """Yield what is found with this value as the first output of the layer."""
        layer = None if value is None else value.producer
        if value is None or layer is None or layer.output is not value:
            return
        for inner in self.match(layer, found):
            yield inner if self.shared or value.only_user else {**inner, SHARED: layer}

    def takes(self, layer: Layer) -> bool:
        """Whether the layer's operator is one of the pattern's."""
        return layer.op in self.ops or (bool(self.families) and layer.family in self.families)

    def match(self, layer: Layer, found: Found) -> Iterator[Found]:
        """Yield what is found with this layer."""
        if not self.takes(layer):
            return
        if (layer.epilogue and not self.epilogue) or layer.on_host or len(layer.inputs) < len(self.inputs):
            return
        named = {**found, self.name: layer} if self.name else found
        given = layer.inputs[: len(self.inputs)]
        for order in permutations(given) if self.in_any_order else (given,):
            yield from _find(self.inputs, order, named)


def _find(patterns: Sequence[AnyValue | Op], values: Sequence[Value | None], found: Found) -> Iterator[Found]:
    if not patterns:
        yield found
        return
    for first in patterns[0].find(values[0], found):
        yield from _find(patterns[1:], values[1:], first)


class Rules:
    """A pass: it tries its rules on each layer of a model, in run order."""

    def __init__(self) -> None:
        self._rules: list[tuple[Op, Rewrite]] = []
        self._checked = 0  # rules; later, since the operators of another file may be declared after the rule

    def rule(self, pattern: Op) -> Callable[[Rewrite], Rewrite]:
        """Declare a rule. The function gets the model, the layer that the pattern begins with as `root`, and the
        pattern's names. Raises TypeError if its parameters are others.
        """

        def declare(rewrite: Rewrite) -> Rewrite:
            names = ["root", *sorted(pattern.names)]
            try:
                signature(rewrite).bind(None, **dict.fromkeys(names))
            except TypeError as error:
                raise TypeError(f"{rewrite.__name__}: {error}; its pattern gives the model and {names}") from None
            self._rules.append((pattern, rewrite))
            return rewrite

        return declare

    def __call__(self, model: Model, evaluate: Evaluate) -> int:
        """Rewrite, and return the number of changes. Raises ModelError for an operator that does not exist."""
        rules = tuple(self._rules)
        for pattern, _ in rules[self._checked :]:
            pattern.check()
        self._checked = len(rules)
        by_op: dict[str, list[tuple[Op, Rewrite]]] = {}  # the rules that may match a layer; most operators have none
        changes = 0
        for layer in model.walk():
            if layer.op not in by_op:
                by_op[layer.op] = [rule for rule in rules if rule[0].takes(layer)]
            for pattern, rewrite in by_op[layer.op]:
                changes += self._apply(model, layer, pattern, rewrite)
        return changes

    def _apply(self, model: Model, layer: Layer, pattern: Op, rewrite: Rewrite) -> int:
        for found in pattern.match(layer, {}) if layer.is_linked else ():
            names = dict(found)
            shared = names.pop(SHARED, None)
            if shared is None:
                made = rewrite(model, root=layer, **names)
            else:
                is_output = isinstance(shared, Layer) and shared.output is not None and shared.output.is_output
                made = f"{'the model outputs' if is_output else 'other layers read'} the result of {shared.name!r} too"
            if isinstance(made, str):
                refuse(layer, made)
            elif not isinstance(made, int):
                raise TypeError(f"{rewrite.__name__} returned {made!r}, and not a number of changes or a reason")
            elif made:
                return made
        return 0
