"""A model in parts: groups of layers that are planned, and between them layers that run on the host.

Most models are one part. A layer ends a part if the shape of its output depends on data, or if its values are not
tensors. The inputs of such a layer are read back, and the next part is planned for the shapes of its outputs.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perframe.execution.control_flow import ControlPart
from perframe.execution.deciding import DecidingPart, ShapeArithmetic, split_arithmetic
from perframe.execution.layer_check import with_all_values
from perframe.execution.machine import Machine, Values, downloaded
from perframe.execution.planned_part import PlannedPart
from perframe.execution.report import MemoryUse
from perframe.execution.static_branches import Branches, Decisions, Numbers, Rule
from perframe.ir import Layer, Model, Subgraph, Value
from perframe.passes.layout.lay_out_states import StateLayout
from perframe.plan.budget import Budget, Stopwatch
from perframe.plan.plan import NO_TARGETS, Target
from perframe.safety.collection import uncollected

_partitions: weakref.WeakKeyDictionary[Model, list[Subgraph | ShapeArithmetic | Layer]] = weakref.WeakKeyDictionary()
MAX_CHOSEN = 256  # sets of input shapes whose branch decisions are remembered


class HostPart:
    """One layer that computes with arrays on the host. It waits for inputs that lie on a GPU."""

    def __init__(self, layer: Layer, machine: Machine) -> None:
        self._layer, self._machine = layer, machine

    def run_whole(self, values: Values) -> None:
        """Read back, compute, and add the outputs as arrays."""
        given = [downloaded(values[name]) if name else None for name in self._layer.input_names]
        made = self._machine.run_on_host(self._layer, given)
        values.update((name, value) for name, value in zip(self._layer.output_names, made, strict=False) if name)

    def advance(self, values: Values) -> Iterator[str]:
        """Run the whole layer, and yield its name."""
        self.run_whole(values)
        yield self._layer.name

    def planned_parts(self) -> Iterator[PlannedPart]:
        """Yield nothing: the part has no plan."""
        yield from ()

    def releasing(self) -> Iterator[None]:
        """Yield nothing: the part holds no memory."""
        yield from ()


Part = PlannedPart | ControlPart | DecidingPart | HostPart


class Parts:
    """All parts of a model, or of the body of a loop or a branch."""

    @uncollected()
    def __init__(
        self,
        model: Model,
        machine: Machine,
        targets: Mapping[str, Target] = NO_TARGETS,
        layouts: Sequence[StateLayout] = (),
    ) -> None:
        """`targets` decide where the model's outputs are written. `layouts` are those of states."""
        self._machine, self._check, self._targets, self._layouts = machine, machine.check, targets, layouts
        branches = Branches(model, machine.evaluate)
        self._branches = branches if branches.may_decide else None
        # by the inputs' shapes, and the values of those that decide: the parts with decided branches, and the rule
        self._chosen_for: dict[Any, tuple[Parts | None, Rule | None]] = {}
        self._latest: Parts | None = None  # those of the last decision
        self._decided: dict[Decisions, Parts] = {}
        self.ran: PlannedPart | None = None  # the part that was all of the last run, which was whole
        self._names = [value.name for value in model.inputs]
        prepared = machine.prepare(model, layouts)
        self.outputs = prepared.outputs
        self.model = prepared if machine.check is None else with_all_values(prepared)
        self._parts = [_part_of(layers, machine, targets) for layers in partition(self.model)]
        self._output_names = prepared.output_names
        # planned parts hold their own constants; these are for layers on the host and for outputs
        read = {value for layer in self.model.layers if layer.declaration.on_host for value in layer.operands}
        constants = [value for value in self.model.constant_values if value in read or value.is_output]
        self._constants = {value.name: value.constant for value in constants}

    def run_whole(self, values: Values) -> None:
        """Run all parts on `values`. `values` must hold the model's inputs, and the parts add their outputs to it."""
        chosen = self._chosen(values)
        self.ran = chosen._one
        given = chosen._begin(values)
        for part in chosen._parts:
            part.run_whole(values)
        chosen._compare(values, given)

    def advance(self, values: Values) -> Iterator[str]:
        """Run the parts layer by layer, and yield the name of each layer."""
        chosen, self.ran = self._chosen(values), None
        given = chosen._begin(values)
        for part in chosen._parts:
            yield from part.advance(values)
        chosen._compare(values, given)

    def spend(self, values: Values, budget: Budget) -> Iterator[None]:
        """Run the parts, waiting for their steps, and yield whenever the budget is spent."""
        chosen, self.ran = self._chosen(values), None
        given, watch = chosen._begin(values), Stopwatch()
        for part in chosen._parts:
            if isinstance(part, PlannedPart):
                yield from part.spend(values, budget)
                continue
            watch.lap()
            for layer in part.advance(values):
                budget.spend(watch.lap(), layer)
                if budget.is_spent:
                    yield
                    watch.lap()
        chosen._compare(values, given)

    def plan_ahead(self, values: Values) -> Iterator[str]:
        """Make the plan of the first part layer by layer, and yield the name of each layer. The other parts' inputs are
        known only after a run.
        """
        first, given = self.first(values)
        if first is not None:
            yield from first.plan_ahead(given)

    def first(self, values: Values) -> tuple[PlannedPart | None, Values]:
        """Return the first part, if it is planned, and its inputs for these inputs of the model. What decides its
        shapes is computed.
        """
        chosen = self._chosen(values)
        parts, given = chosen._parts, {**chosen._constants, **values}
        if parts and isinstance(parts[0], DecidingPart):
            parts[0].run_whole(given)
            parts = parts[1:]
        return parts[0] if parts and isinstance(parts[0], PlannedPart) else None, given

    @property
    def only_part(self) -> PlannedPart | None:
        """The part that is the model, for all inputs; None if there are others."""
        return self._one if self._branches is None else None

    @property
    def _one(self) -> PlannedPart | None:
        first = self._parts[0] if len(self._parts) == 1 else None
        return first if isinstance(first, PlannedPart) else None

    def numbers(self, values: Values) -> Numbers:
        """Return the values of inputs that decide branches."""
        return self._branches.numbers(values) if self._branches is not None and self._branches.deciding else ()

    def still_chooses(self, part: PlannedPart, values: Values) -> bool:
        """Whether the last decisions hold for these inputs too, and a part is all of the model with them."""
        if self._branches is None:
            return self._one is part
        shapes = [getattr(values[name], "shape", None) for name in self._names]
        if not self._branches.repeats(shapes, self.numbers(values)):
            return False
        return self._one is part if self._latest is None else self._latest.still_chooses(part, values)

    def hold(self, values: Values) -> None:
        """Replace arrays by tensors, where they can be uploaded now for a run that begins later. Layers on the host
        would read them back, so this is for models that are one part.
        """
        chosen = self._chosen(values)
        if len(chosen._parts) == 1 and isinstance(part := chosen._parts[0], PlannedPart) and self._check is None:
            part.hold(values)

    def _begin(self, values: Values) -> Values | None:
        """Add the constants to `values`. If the run is to be compared, return copies of its inputs: a run may overwrite
        the states of a loop.
        """
        for name, value in self._constants.items():
            values.setdefault(name, value)
        return None if self._check is None else {name: downloaded(values[name]) for name in self._names}

    def _compare(self, values: Values, given: Values | None) -> None:
        if self._check is not None and given is not None:
            self._check(self.model, values, given)

    def _chosen(self, values: Values) -> Parts:
        """Return the parts of the model with the branches that these inputs decide; these parts if they decide none."""
        if self._branches is None:
            return self
        key = tuple([getattr(values[name], "shape", None) for name in self._names]), self.numbers(values)
        if key not in self._chosen_for:
            decisions, model = self._branches.decide(*key)
            if decisions and decisions not in self._decided:
                self._decided[decisions] = Parts(model, self._machine, self._targets, self._layouts)
            if len(self._chosen_for) >= MAX_CHOSEN:
                self._chosen_for.clear()
            self._chosen_for[key] = self._decided.get(decisions), self._branches.rule
        self._latest, self._branches.rule = self._chosen_for[key]
        return self if self._latest is None else self._latest._chosen(values)

    @property
    def memory_use(self) -> list[MemoryUse]:
        """The memory of each planned part, without the bodies of loops and branches."""
        return [part.memory_use for part in self._parts if isinstance(part, PlannedPart)]

    def planned_parts(self) -> Iterator[PlannedPart]:
        """Yield all parts with plans, those in bodies and in decided branches too."""
        parts: list[Part | Parts] = [*self._parts, *self._decided.values()]
        for part in parts:
            yield from part.planned_parts()

    def run(self, inputs: Mapping[str, Any]) -> list[Any]:
        """Run all parts, and return the model's outputs in order."""
        values = dict(inputs)
        self.run_whole(values)
        return [values[name] for name in self._output_names]

    def releasing(self) -> Iterator[None]:
        """Free all parts, a bit at each step."""
        for part in (*self._parts, *self._decided.values()):
            yield from part.releasing()

    def release(self) -> None:
        """Free all parts."""
        for _ in self.releasing():
            pass


def partition(model: Model) -> list[Subgraph | ShapeArithmetic | Layer]:
    """Cut a prepared model into subgraphs to plan and layers to run on the host. All its workers share them."""
    found = _partitions.get(model)
    if found is None:
        found = _partitions.setdefault(model, list(_cut(model)))
        model.inference.forget()
    return found


def _cut(model: Model) -> Iterator[Subgraph | ShapeArithmetic | Layer]:
    """Cut a model where a layer runs on the host, and where shapes depend on values that the last subgraph computes."""
    cuts, group = _cuts(model), list[Layer]()
    if not cuts and not any(layer.declaration.on_host for layer in model.layers):
        whole = Subgraph.of(model)
        yield from _subgraphs(model, model.layers, []) if whole.decisive_inputs else (whole,)
        return
    model.infer()
    for index, layer in enumerate(model.layers):
        if group and (layer.declaration.on_host or layer in cuts):
            yield from _subgraphs(model, group, model.layers[index:])
            group = []
        if layer.declaration.on_host:
            yield layer
        else:
            group.append(layer)
    if group:
        yield from _subgraphs(model, group, [])


def _subgraphs(model: Model, layers: Sequence[Layer], later: Sequence[Layer]) -> Iterator[Subgraph | ShapeArithmetic]:
    """Yield some layers as a subgraph. Before it comes the arithmetic that computes its shapes from values."""
    whole = _subgraph(model, layers, later)
    arithmetic, others = split_arithmetic(layers, whole.decisive_inputs)
    if arithmetic is not None:
        yield arithmetic
    if others:
        yield whole if arithmetic is None else _subgraph(model, others, later)


def _cuts(model: Model) -> set[Layer]:
    """Return the layers that need a value on the host that earlier layers compute from data rather than shapes."""
    cuts: set[Layer] = set()
    from_data = {value for value in model.inputs if value.dtype.is_float}
    made_here: set[Value] = set()
    for layer in model.layers:
        needed = [value for index, value in enumerate(layer.inputs) if layer.declaration.is_host(index)]
        if any(value in from_data and value in made_here for value in needed):
            cuts.add(layer)
            made_here = set()
        if layer.declaration.on_host:
            made_here = set()
        elif layer.declaration.reads_values and any(value in from_data for value in layer.operands):
            from_data.update(layer.results)
            made_here.update(layer.results)
    return cuts


def _subgraph(model: Model, layers: Sequence[Layer], later: Sequence[Layer]) -> Subgraph:
    """Return some layers. The outputs are the values that `later` layers read and the model's outputs."""
    made = {value for layer in layers for value in layer.results}
    read = dict.fromkeys(value for layer in layers for value in layer.operands if value not in made)
    wanted = {value for layer in later for value in layer.operands}
    inputs = [value for value in read if value.constant is None]
    outputs = [value for layer in layers for value in layer.results if value in wanted or value.is_output]
    return Subgraph(model.name, inputs, outputs, layers)


def _part_of(layers: Subgraph | ShapeArithmetic | Layer, machine: Machine, targets: Mapping[str, Target]) -> Part:
    if isinstance(layers, Subgraph):
        return PlannedPart(layers, machine, targets)
    if isinstance(layers, ShapeArithmetic):
        return DecidingPart(layers, machine)
    if layers.family == "control":
        return ControlPart(layers, machine, {name: Parts(body, machine) for name, body in layers.bodies.items()})
    return HostPart(layers, machine)
