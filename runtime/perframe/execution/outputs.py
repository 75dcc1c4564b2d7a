"""The outputs of runs: the worker's own, or tensors of the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from perframe.backends.protocol import Backend
from perframe.errors import InputError
from perframe.execution.machine import Values, as_output, downloaded
from perframe.ir import Model
from perframe.plan.plan import Target
from perframe.safety.wording import counted
from perframe.tensor import BackendType, DataType, Storage, Tensor, TensorShape


class Outputs:
    """The outputs of a worker's last run. `targets` decide where the outputs of runs are written.

    `arrange` brings the value of an output into the order of the file's dims.
    """

    def __init__(
        self,
        model: Model,
        targets: Mapping[str, Target],
        backend: Backend,
        host: Backend,
        arrange: Callable[[str, Any], Any],
    ) -> None:
        self._model, self._names, self._backend, self._host = model.name, model.output_names, backend, host
        self.targets, self._arrange = dict(targets), arrange
        self._bound: dict[str, _BoundOutput] = {}
        self._last: dict[str, Any] | None = None

    def name(self, name: str | int | None) -> str:
        """Return the name of an output: by name, by index, or the first. Raises InputError if there is none."""
        names = self._names
        if name is None:
            name = 0
        if isinstance(name, int):
            if not -len(names) <= name < len(names):
                raise InputError(f"{self._model} has {counted(len(names), 'output')}, none at index {name}")
            name = names[name]
        if name not in names:
            raise InputError(f"{self._model} has no output {name!r}; its outputs are {', '.join(names)}")
        return name

    def keep(self, values: Values) -> None:
        """Keep the outputs of a run."""
        outputs = {name: values[name] for name in self._names}
        for name, value in outputs.items():
            if type(value) is not Tensor:
                outputs[name] = as_output(name, value)
        for name, bound in self._bound.items():
            outputs[name] = bound.end(outputs[name])
        self._last = outputs

    @property
    def last(self) -> dict[str, Any]:
        """The outputs of the last run, by name. Raises InputError before one has ended."""
        if self._last is None:
            raise InputError(
                f"{self._model} has no outputs before the first schedule(): call it first, and with a budget wait for "
                "the run's end, some frames later"
            )
        return self._last

    def value(self, name: str | int | None) -> Any:
        """Return an output of the last run: by name, by index, or the first. Never waits."""
        key = self._names[0] if name is None and self._names else self.name(name)
        return self._arrange(key, self.last[key])

    def bind(self, name: str | int, tensor: Tensor | None) -> None:
        """Let later runs write an output into a tensor; None gives it back to the worker."""
        key = self.name(name)
        if key in self.targets and key not in self._bound:
            raise InputError(f"{self._model} carries its output {key!r} itself: copy_output({key!r}, tensor) copies it")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise InputError(f"bind_output takes a perframe.Tensor, not {type(tensor).__name__}")
        others = [other for other, bound in self._bound.items() if other != key and bound.tensor is tensor]
        if tensor is not None and others:
            raise InputError(f"the outputs {others[0]!r} and {key!r} cannot be one tensor")
        self.targets[key] = self._bound[key] = _BoundOutput(key, tensor, self._backend, self._host)

    def check_inputs(self, values: Values) -> None:
        """Raise InputError if a run would write into one of its inputs."""
        for name, bound in self._bound.items():
            for source, value in values.items():
                if bound.tensor is not None and isinstance(value, Tensor) and _are_one(value, bound.tensor):
                    raise InputError(
                        f"{self._model}: the output {name!r} is bound to the tensor that is the input {source!r}: "
                        f"give two tensors, or make the worker with carry={{{name!r}: {source!r}}}"
                    )

    def copy(self, name: str | int, tensor: Tensor | None) -> Tensor:
        """Copy an output of the last run into a tensor, or into a new one."""
        if tensor is not None and not isinstance(tensor, Tensor):
            raise InputError(f"copy_output takes a perframe.Tensor, not {type(tensor).__name__}")
        key = self.name(name)
        return copied_into(tensor, key, self.value(key), self._backend, "Worker.copy_output()")

    def take_over(self, other: Outputs) -> None:
        """Bind the tensors that others have bound. Raises InputError for an output that does not exist here."""
        for name, bound in other._bound.items():
            self.bind(name, bound.tensor)

    def forget(self) -> None:
        """Forget the last run and the caller's tensors."""
        self._last = None
        self._bound.clear()
        self.targets.clear()


def _are_one(one: Tensor, other: Tensor) -> bool:
    return one is other or (one.is_pinned and other.is_pinned and one.data_on_backend is other.data_on_backend)


class _BoundOutput(Target):
    """An output and the caller's tensor for it; without a tensor, the output is the worker's own again."""

    source, grows = "", False

    def __init__(self, name: str, tensor: Tensor | None, backend: Backend, host: Backend) -> None:
        self.name, self.tensor, self._backend, self._host = name, tensor, backend, host

    def storage(self, output: Tensor, planned: Storage, offered: Callable[[], Iterator[Storage]]) -> Storage:
        """Return the tensor's storage. The tensor moves to the output's backend if it is elsewhere. Raises InputError
        for another shape or dtype.
        """
        if self.tensor is None:
            return planned
        check_fits(self.tensor, self.name, output.shape, output.dtype)
        owner = self._host if planned.backend_type is BackendType.CPU else self._backend
        if not (self.tensor.is_pinned and owner.owns(self.tensor.data_on_backend)):
            self.tensor.set_storage(planned.like(output.shape, output.dtype))
        return self.tensor.data_on_backend

    def end(self, value: Any) -> Any:
        """Return the output of a run, in the tensor: a layer on the host or in a loop may have made it elsewhere."""
        tensor = self.tensor
        if tensor is None or (isinstance(value, Tensor) and value.data_on_backend is tensor.data_on_backend):
            return value
        return copied_into(tensor, self.name, value, self._backend, "Worker.bind_output()")


def copied_into(tensor: Tensor | None, name: str, value: Any, backend: Backend, by: str) -> Tensor:
    """Copy the values of an output into a tensor, or (None) into a new one on its backend, for the call `by`. Raises
    InputError for another shape or dtype.
    """
    value = as_output(name, value)
    if not isinstance(value, Tensor):
        raise InputError(f"the output {name!r} is not a tensor, so that it cannot be copied into one")
    if tensor is None:
        tensor = Tensor.over(None, value.shape, value.dtype, name)
    check_fits(tensor, name, value.shape, value.dtype)
    if not tensor.is_pinned:
        tensor.set_storage(value.data_on_backend.like(value.shape, value.dtype))
    copy_values(value, tensor.data_on_backend, backend, by)
    return tensor


def copy_values(value: Tensor, target: Storage, backend: Backend, by: str) -> None:
    """Copy a value on the device. Where the value or the target is elsewhere, the call `by` waits for the value."""
    source = value.data_on_backend
    if source is target:
        return
    if backend.owns(source) and backend.owns(target):
        backend.copy(source, target, value.shape, value.dtype)
    else:
        target.upload(downloaded(value, by))


def check_fits(tensor: Tensor, name: str, shape: TensorShape, dtype: DataType) -> None:
    """Raise InputError unless a tensor has the shape and the dtype of an output."""
    if tensor.shape != shape or tensor.dtype is not dtype:
        raise InputError(
            f"the output {name!r} of this run is {dtype} {shape}, and its tensor is {tensor.dtype} {tensor.shape}: "
            f"give it pf.Tensor.empty({tuple(shape)}, {str(dtype)!r})"
        )
