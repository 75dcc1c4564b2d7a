"""Prepared models: the preparations for a backend run once for all workers of a model.

The workers of a model share the prepared model, and so its constants. It is freed with the last of these workers.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.equality import signature
from perframe.passes import prepare
from perframe.passes.layout.lay_out_states import StateLayout, lay_out
from perframe.safety.records import dataclass
from perframe.tensor.locks import new_lock

_lock = new_lock()
_Key = tuple[str, tuple[StateLayout, ...]]  # the type of the backend, and the layouts of states
_known: weakref.WeakKeyDictionary[Model, dict[_Key, tuple[Hashable, weakref.ref[Model]]]] = weakref.WeakKeyDictionary()


class _ChangeableError(Exception):
    """A part of a model may be changed in place, and no comparison would notice."""


@dataclass(frozen=True)
class _Same:
    """An object that is compared by its identity. This keeps it alive, so that no other object gets its id."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def prepared(model: Model, evaluate: Evaluate, backend_type: str, layouts: Sequence[StateLayout] = ()) -> Model:
    """Return the model in the form that a backend's kernels want, with these layouts of states.

    The result is the same object as long as a worker holds it and `model` has not changed.
    """
    state, key = _state(model), (backend_type, tuple(layouts))
    if state is None:
        model.inference.forget()
    else:
        with _lock:
            before, reference = _known.setdefault(model, {}).get(key, (None, None))
            found = reference() if reference is not None else None
            if found is not None and before == state:
                return found
    made = prepare(lay_out(model, layouts) if layouts else model, evaluate, backend_type)
    if state is not None:
        freeze(made, besides=model)
    if state is not None and made is not model:
        with _lock:
            _known.setdefault(model, {})[key] = state, weakref.ref(made, _forgetting(model, key))
    return made


def _forgetting(model: Model, key: _Key) -> Any:
    """Return a callback that forgets a prepared model when it is freed."""
    source = weakref.ref(model)

    def forget(freed: weakref.ref[Model]) -> None:
        owner = source()
        entries = {} if owner is None else _known.get(owner, {})
        if key in entries and entries[key][1] is freed:
            del entries[key]

    return forget


def freeze(model: Model, besides: Model | None = None) -> None:
    """Make the constants of a model read-only, except those that `besides` shares. Then no copy of them is needed."""
    others = set() if besides is None else {id(value) for value in besides.constants.values()}
    for value in model.constants.values():
        if id(value) not in others:
            value.flags.writeable = False


def _state(model: Model) -> Hashable | None:
    """Return everything that a preparation depends on; None if a part of it can be changed in place."""
    try:
        constants = frozenset((value, _fixed(value.constant)) for value in model.constant_values)
        made = (
            model.name,
            model.preparations,
            tuple((value, _declared(value)) for value in model.inputs),
            model.outputs,
            tuple(map(_layer, model.layers)),
            constants,
        )
        hash(made)
    except (_ChangeableError, TypeError):
        return None
    return made


def _declared(value: Value) -> Hashable:
    return value.dtype, value.shape, value.kind, value.element_kind


def _layer(layer: Layer) -> Hashable:
    same = signature(layer)
    if same is None:
        same = (layer.op, _fixed(layer.attributes), layer.epilogue, layer.channels_last)
    return layer.name, layer.inputs, layer.outputs, layer.on_host, same


def _fixed(value: Any) -> Hashable:
    """Return a value in a form that does not change. Raises _ChangeableError if a part can be changed in place."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            raise _ChangeableError
        return _Same(value)
    if isinstance(value, dict):
        return frozenset((key, _fixed(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(map(_fixed, value))
    if isinstance(value, Model):
        state = _state(value)
        if state is None:
            raise _ChangeableError
        return _Same(value), state
    return type(value), value
