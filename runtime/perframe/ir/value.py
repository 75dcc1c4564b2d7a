"""Values: the edges of a model. Each knows the layer that makes it and the layers that read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from perframe.errors import ModelError
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.tensor import DataType

if TYPE_CHECKING:
    from perframe.ir.layer import Layer

Array = NDArray[Any]


class Value:
    """A model's input, output or constant, or a result between two layers.

    `producer` is the layer that makes it, and `users` are the layers that read it, each once; the model keeps both.
    `constant` holds the array of a constant. `declared` holds what a file or a user declares of an input or an output:
    its dtype and shape (None if the rank is unknown). Values are compared by identity; names serve people and files.
    """

    __slots__ = ("__weakref__", "_constant", "_spec", "declared", "is_output", "name", "producer", "users")

    def __init__(
        self,
        name: str,
        dtype: DataType | None = None,
        shape: DynamicTensorShape | None = None,
        kind: str = "tensor",  # or "sequence" of tensors, or "optional"
        element_kind: str = "tensor",  # of an optional
        constant: Array | None = None,
    ) -> None:
        self.name = name
        self.declared = None if dtype is None else PartialTensor(dtype, shape, kind=kind, element_kind=element_kind)
        self.producer: Layer | None = None
        self.users: dict[Layer, None] = {}
        self.is_output = False
        self._constant = constant
        self._spec: PartialTensor | None = None

    @classmethod
    def of(cls, name: str, spec: PartialTensor) -> Value:
        """Return a value that is declared as `spec` says."""
        return cls(name, spec.dtype, spec.shape, spec.kind, spec.element_kind)

    @property
    def constant(self) -> Array | None:
        """The array of a constant, else None."""
        return self._constant

    @constant.setter
    def constant(self, array: Array | None) -> None:
        self._constant, self._spec = array, None
        if array is not None:
            self.producer = None

    @property
    def spec(self) -> PartialTensor:
        """The inferred dtype, shape and known values. Raises InferenceError, and ModelError if nothing makes it."""
        if self._spec is None:
            if self._constant is not None:
                self._spec = PartialTensor.of(self._constant)
            elif self.producer is not None:
                self.producer.infer_outputs()
                assert self._spec is not None
            elif self.declared is not None:
                return self.declared
            else:
                raise ModelError(f"no layer makes the value {self.name!r}")
        return self._spec

    @spec.setter
    def spec(self, spec: PartialTensor) -> None:
        self._spec = spec

    @property
    def is_inferred(self) -> bool:
        """Whether `spec` is known, or follows from the constant or the declaration without inference."""
        return self._spec is not None or self._constant is not None or self.producer is None

    @property
    def is_named_only(self) -> bool:
        """Whether it is a name that a model has not linked yet."""
        return self.producer is None and self._constant is None and self.declared is None

    @property
    def is_live(self) -> bool:
        """Whether a layer makes or reads it, or a model outputs it."""
        return self.producer is not None or bool(self.users) or self.is_output

    @property
    def only_user(self) -> Layer | None:
        """The only layer that reads it; None if there are more or none, or the model outputs it."""
        return next(iter(self.users)) if len(self.users) == 1 and not self.is_output else None

    @property
    def _shown(self) -> PartialTensor:
        return self.spec if self.declared is None else self.declared

    @property
    def dtype(self) -> DataType:
        """The declared dtype, or the inferred one."""
        return self._shown.dtype

    @property
    def shape(self) -> DynamicTensorShape | None:
        """The declared shape, or the inferred one; None if the rank is unknown."""
        return self._shown.shape

    @property
    def kind(self) -> str:
        """ "tensor", "sequence" or "optional"."""
        return self._shown.kind

    @property
    def element_kind(self) -> str:
        """The kind of an optional's element."""
        return self._shown.element_kind

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} {'of unknown rank' if self.shape is None else self.shape}"

    def __repr__(self) -> str:
        return f"Value({self.name!r})" if self.is_named_only else f"Value({self})"
