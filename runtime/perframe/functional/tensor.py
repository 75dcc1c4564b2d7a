"""Functional tensors: values of a model that does not exist yet. Their shapes and dtypes are known at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InputError
from perframe.ir import Value
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.tensor import DataType, Tensor

if TYPE_CHECKING:
    from perframe.functional.graph import FunctionalGraph
    from perframe.functional.methods import Methods
else:
    Methods = object  # the functions need this class first: methods.py gives it their methods


class FunctionalTensor(Methods):
    """A value of a model that is being built: an input, a constant, or an output of a layer.

    Python's operators, indexing and the functions of `pf.functional` make further tensors from it. `shape` and `dtype`
    are known at once; a dim is a number, a name, or None if it is unknown. Values exist when a worker runs the model.
    """

    __array_ufunc__ = None  # so that `array + tensor` is left to the tensor
    __hash__ = object.__hash__

    def __init__(
        self,
        value: Value,
        graph: FunctionalGraph | None = None,
        is_number: bool = False,
        follows: bool = False,
        spec: PartialTensor | None = None,
        name: str = "",
    ) -> None:
        """`spec` is the value's by default. `name` is the name that an input, or an output of a model inside, has."""
        self.value, self.graph, self.name = value, graph, name
        self.spec = value.spec if spec is None else spec
        self.is_number = is_number  # a Python number gives way to a tensor's dtype
        self.follows = follows  # an array that is float64 because NumPy's are: it takes the dtype of other floats

    @property
    def dtype(self) -> DataType:
        """The data type."""
        return self.spec.dtype

    @property
    def shape(self) -> DynamicTensorShape:
        """The shape: numbers, names and None. Raises InputError if not even the number of dims is known."""
        if self.spec.shape is None:
            raise InputError(f"{self}: the number of its dims is not known before the model runs")
        return self.spec.shape

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def T(self) -> FunctionalTensor:
        """The tensor with its dims in reverse order."""
        made: FunctionalTensor = self.permute(*range(self.ndim)[::-1])
        return made

    @property
    def is_constant(self) -> bool:
        """Whether its values are given, and not computed by a layer."""
        return self.value.constant is not None

    def __len__(self) -> int:
        if not self.shape:
            raise InputError(f"{self} has no dims, and so no length")
        if not isinstance(self.shape[0], int):
            raise InputError(f"{self} has no known length: dim 0 is {self.shape[0] or 'unknown'}; see size(x, 0)")
        return self.shape[0]

    def __iter__(self) -> Iterator[FunctionalTensor]:
        return (self[index] for index in range(len(self)))

    def __bool__(self) -> bool:
        raise InputError(
            f"{self} has no truth yet: its values exist when a worker runs the model. Use where(condition, a, b) "
            "instead of `if`, logical_and(a, b) or a & b instead of `and`, and a.any() or a.all() for one bool"
        )

    def __array__(self, *_args: Any, **_options: Any) -> NDArray[Any]:
        raise InputError(f"{self} has no values yet: compile the graph, and run the model with a worker")

    def __getitem__(self, index: Any) -> FunctionalTensor:
        from perframe.functional.indexing import getitem

        return getitem(self, index)

    def __setitem__(self, index: Any, value: Given) -> None:
        from perframe.functional.indexing import with_items

        made = with_items(self, index, to_tensor(value))
        self.value, self.spec, self.graph, self.name = made.value, made.spec, made.graph, ""

    def fixed(self) -> FunctionalTensor:
        """Return a tensor that stays what this one is now, even if items of this one are set."""
        return FunctionalTensor(self.value, self.graph, self.is_number, self.follows, self.spec, self.name)

    def __repr__(self) -> str:
        return f"FunctionalTensor({f'{self.name}: ' if self.name else ''}{self.spec})"


Given = FunctionalTensor | Tensor | NDArray[Any] | Sequence[Any] | float | int | bool  # all that becomes a tensor


def of_array(array: NDArray[Any], is_number: bool = False, follows: bool = False) -> FunctionalTensor:
    """Return a constant over an array, which is not copied."""
    return FunctionalTensor(Value("", constant=array), is_number=is_number, follows=follows)


def to_tensor(value: Given) -> FunctionalTensor:
    """Return a tensor unchanged, and anything else as a constant: lists and numbers of Python as PyTorch reads them.

    Raises InputError for a value that no tensor can hold.
    """
    if isinstance(value, FunctionalTensor):
        return value
    if isinstance(value, Tensor):
        value = value.download_to_array()
    is_number = isinstance(value, (bool, int, float, np.number, np.bool_))
    plain = is_number or isinstance(value, (list, tuple))
    if isinstance(value, (list, tuple)) and any(isinstance(item, FunctionalTensor) for item in value):
        raise InputError("a list of functional tensors is not a tensor: join them by stack(...) or cat(...)")
    try:
        array = np.array(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{value!r:.200} cannot become a tensor: {error}") from None
    if plain and array.dtype.kind in "f" and not isinstance(value, np.number):
        array = array.astype(np.float32)
    elif plain and array.dtype.kind in "iu" and not isinstance(value, np.number):
        array = array.astype(np.int64)
    elif array.dtype.kind in "US":
        array = array.astype(object)
    if array.dtype == object and not all(isinstance(item, str) for item in array.flat):
        raise InputError(
            f"{value!r:.200} of type {type(value).__name__} cannot become a tensor: an input is a functional tensor, "
            "a Tensor, an array, a list or a number"
        )
    DataType.of(array.dtype)
    array.flags.writeable = False
    return of_array(array, is_number, array.dtype == np.float64)
