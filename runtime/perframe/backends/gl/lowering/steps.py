"""The common part of compute and pixel steps: a kernel, its operands and its numbers become a bound step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import field
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from perframe.backends.gl.compile.program import (
    FORMULA_NUMBERS,
    HALVES,
    LAYERED,
    TOUCHED,
    Kernel,
    Numbers,
    compose,
    load_kernel,
)
from perframe.backends.gl.compile.variants import Choices
from perframe.backends.gl.context.device import FEWEST_ROUNDS, Device
from perframe.backends.gl.context.state import TEXTURE_2D_ARRAY
from perframe.backends.gl.replay import CommandList, Name
from perframe.backends.gl.storage.storage import GLStorage
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.errors import InputError
from perframe.ir import epilogue
from perframe.ir.family_files import own_shader
from perframe.ir.geometry import SlidingWindow, in_dims
from perframe.ir.sizes.size import is_symbolic, specialized
from perframe.safety.records import dataclass
from perframe.tensor import DataType, Storage

Array = NDArray[Any]

NARROW_FLOATS = (DataType.FLOAT16, DataType.BFLOAT16)  # families see them as float32 (see narrow.py)
GPU_DTYPES = (DataType.FLOAT32, DataType.INT32, DataType.INT64, DataType.BOOL)
# The GPU holds small integers as int32. A family takes these dtypes if it wraps its results around, or never overflows.
SMALL_DTYPES = (
    *(DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16),
    *(DataType.INT4, DataType.UINT4, DataType.INT2, DataType.UINT2),
)
ALL_DTYPES = (*GPU_DTYPES, *SMALL_DTYPES)

MOST_DIMS = 8  # the length of a kernel's fixed arrays
# The most operations of one launch: a slow GPU takes 0.2 s for them, and systems reset a GPU that is busy for 2 s.
MOST_OPERATIONS = 4 * 10**9
RUN = 1024  # the most elements that one invocation reduces; longer reductions are done in parts
# Defines of a kernel with a grid: the rows of its work groups, if they are not one, and their columns, if rows and
# columns are not 64 invocations.
GROUP_ROWS, GROUP_COLUMNS = "GROUP_ROWS", "GROUP_COLUMNS"
APPENDS = "APPENDS"  # the define of a kernel that leaves the first texels of its output alone


_INT32 = np.iinfo(np.int32)
_UNIFORM_BUFFER, _TEXTURE_2D = 0x8A11, 0x0DE1


def kind_of(dtype: DataType) -> str:
    """The GPU's type for a dtype: "float", or "int" for integers and bools."""
    return "float" if dtype is DataType.FLOAT32 or dtype in NARROW_FLOATS else "int"


def kind_held(operand: Operand) -> str:
    """The type in which the GPU holds an operand: "half" too, for float32 numbers in two bytes each."""
    return "half" if on_gl(operand.storage).is_half else kind_of(operand.dtype)


def to_gpu(array: Array, as_halves: bool = False) -> Array:
    """Flat values as the GPU holds them: float32, float16 or int32. Raises InputError for a number outside int32."""
    if array.dtype.kind in "iu" and array.dtype.itemsize >= 4 and array.dtype != np.int32 and array.size:
        low, high = int(array.min()), int(array.max())
        if low < _INT32.min or high > _INT32.max:
            raise InputError(
                f"a {array.dtype.name} tensor of shape {array.shape} holds {high if high > _INT32.max else low}, and "
                "integers on a GPU are int32: run the model on the CPU, or keep such numbers out of its inputs"
            )
    is_float = kind_of(DataType.of(array.dtype)) == "float"
    wanted = (np.float16 if as_halves else np.float32) if is_float else np.int32
    flat: Array = np.ascontiguousarray(array).astype(wanted, copy=False).reshape(-1)
    return flat


def from_gpu(values: Array, shape: Sequence[int], dtype: DataType) -> Array:
    """Values from the GPU in the declared shape and dtype. They are copied unless they may be written to."""
    result: Array = values.reshape(tuple(shape))
    if dtype is DataType.BOOL:
        return np.asarray(result != 0)
    return result.astype(dtype.numpy, copy=not values.flags.writeable)


@dataclass(frozen=True)
class Functions:
    """GLSL functions for a kernel, and the numbers of their formulas."""

    text: str = ""
    numbers: tuple[float, ...] = ()


NO_FUNCTIONS = Functions()


@dataclass
class Binding:
    """A kernel with everything it needs. A backend makes a step of it."""

    layer: str
    kernel: Kernel
    inputs: dict[str, Operand]
    output: Operand
    params: Mapping[str, Numbers]
    defines: dict[str, str] = field(default_factory=dict)
    functions: str = ""
    textures: dict[str, Name] = field(default_factory=dict)  # the caller's textures, by sampler
    # the invocations of a kernel that stores its elements itself, or with TOUCHED; with APPENDS texels to leave alone
    tiles: int = 0
    grid: tuple[int, int, int] = (0, 0, 0)  # or the extent of their grid: invocations, work groups, work groups
    operations: int = 0  # multiplications and additions, where the layer's form counts them

    def parts(self, size: int, most: int | None = None) -> list[tuple[int, int]]:
        """Launches that share `size` rows or groups, as (first, count), with not too many operations or rows each."""
        if is_symbolic(size) or is_symbolic(self.operations):
            if self.operations <= MOST_OPERATIONS and not (most and size > most):
                return [(0, size)]
            size = specialized(size)
        count = max(-(-self.operations // MOST_OPERATIONS), -(-size // most) if most else 1, 1)
        each = max(1, -(-size // count))
        return [(first, min(each, size - first)) for first in range(0, max(size, 1), each)]

    @property
    def o_type(self) -> str:
        """The type of an output element in GLSL."""
        return kind_of(self.output.dtype)

    @property
    def reads(self) -> list[str]:
        """The names of the inputs that it gives the kernel, in the kernel's order."""
        return [name for name in self.kernel.inputs if name in self.inputs]

    @property
    def is_long(self) -> bool:
        """Whether one pixel shader computes one texel: the kernel says so, or the lowering by its define LONG."""
        return (self.kernel.is_long or "LONG" in self.defines) and TOUCHED not in self.defines

    @property
    def left_alone(self) -> int:
        """The number of texels at the begin of the output that it leaves alone."""
        return self.tiles if APPENDS in self.defines else 0

    @property
    def makes_halves(self) -> bool:
        """Whether its output lies in half storage."""
        return on_gl(self.output.storage).is_half

    @property
    def stores_elements(self) -> bool:
        """Whether it stores single elements at any index."""
        unit = self.kernel.unit(self.all_defines)
        return unit == "tile" or (unit == "grid" and "SCATTERED" in self.defines)

    @property
    def block(self) -> tuple[bytes, list[tuple[int, Any]]]:
        """The uniform block's bytes, and the symbolic sizes in it, each with its first byte."""
        sizes = {"O_size": self.output.shape.size, "O_tiles": self.tiles}
        return self.kernel.pack({**sizes, **self.params}, self.o_type)

    @property
    def all_defines(self) -> dict[str, str]:
        """The defines of the variant: the output's type, and those of the lowering."""
        return {"O_TYPE": self.o_type, **({HALVES: "1"} if self.makes_halves else {}), **self.defines}


Form = TypeVar("Form", covariant=True)


def _numbers_of(form: object, kernel: Kernel) -> dict[str, Numbers]:
    """The form's numbers that have the names of the kernel's parameters."""
    found = {parameter.name: getattr(form, parameter.name, None) for parameter in kernel.parameters}
    return {name: value for name, value in found.items() if isinstance(value, int | float | tuple)}


@dataclass(frozen=True)
class Call(Generic[Form]):
    """A layer applied to operands, as its family sees it: the canonical form, the inputs and the outputs."""

    layer: LayerLike
    form: Form
    inputs: Sequence[Operand | None]
    outputs: Sequence[Operand]
    rounds: int = FEWEST_ROUNDS  # the most of all loops of a shader; a pixel shader may compute four elements

    @property
    def x(self) -> Operand:
        """The first input."""
        return self.input(0)

    @property
    def y(self) -> Operand:
        """The first output."""
        return self.outputs[0]

    def input(self, index: int) -> Operand:
        """An input that is always present."""
        operand = self.inputs[index]
        assert operand is not None
        return operand

    def optional(self, index: int) -> Operand | None:
        """An input that may be absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def bind(
        self,
        kernel: str,
        inputs: dict[str, Operand],
        output: Operand,
        params: Mapping[str, Numbers] | None = None,
        defines: Mapping[str, str] | None = None,
        functions: Functions = NO_FUNCTIONS,
        tiles: int = 0,
        grid: tuple[int, int, int] = (0, 0, 0),
    ) -> Binding:
        """One of the layer's kernels, with everything it needs.

        Parameters that `params` does not name are the form's numbers of the same names.
        """
        loaded = load_kernel(own_shader(self.layer.family, kernel)).with_numbers(len(functions.numbers))
        unknown = ", ".join(inputs.keys() - set(loaded.inputs))
        if unknown:
            raise ValueError(f"the shader {kernel} reads {', '.join(loaded.inputs) or 'no input'}, not {unknown}")
        numbers = {**_numbers_of(self.form, loaded), **(params or {})}
        if functions.numbers:
            numbers[FORMULA_NUMBERS] = functions.numbers
        text = functions.text
        name, chosen, operations = self.layer.name, dict(defines or {}), getattr(self.form, "operations", 0)
        return Binding(name, loaded, inputs, output, numbers, chosen, text, {}, tiles, grid, operations)

    def copy(self, source: Operand, target: Operand, step: int = 1) -> Binding:
        """The kernel that fills `target` from `source`: element by element, or with its first one if `step` is 0."""
        params: dict[str, Any] = {"shape": (target.shape.size,), "strides": (step,), "rank": 1, "offset": 0}
        return self.bind("move", {"X": source}, target, params)


@dataclass
class Tools:
    """The backend's tools for a family's lowering: storage between kernels, constants, and one ability."""

    scratch: Scratch
    constant: Callable[[Any], Operand]
    table: Callable[..., Operand]  # of a function and its arguments, of which some may depend on sizes
    stores_anywhere: bool  # whether an invocation may store several elements, at any index
    choices: Choices  # the device's variants of kernels


def on_gl(storage: Storage) -> GLStorage:
    """The storage of a GL step's operand. The plan placed it on this backend."""
    return cast(GLStorage, storage)


class KernelStep:
    """A bound kernel: a program, its numbers, inputs and output. Subclasses record its launch.

    `accessors` are GLSL texts that read the inputs; `samplers` are the names of textures that hold them.
    """

    def __init__(
        self,
        device: Device,
        binding: Binding,
        shell: str,
        accessors: Sequence[str],
        defines: Mapping[str, str],
        samplers: Sequence[str] = (),
    ) -> None:
        kernel = binding.kernel
        shader = compose(kernel, shell, accessors, {**defines, **binding.all_defines}, binding.functions)
        self._program = device.programs.get(shader, [*samplers, *kernel.textures], kernel.name, binding.layer)
        self._inputs = [on_gl(binding.inputs[name].storage) for name in binding.reads]
        self._textures, self._sampler = list(binding.textures.values()), device.sampler
        self._texture_target = TEXTURE_2D_ARRAY if LAYERED in binding.defines else _TEXTURE_2D
        self._output = binding.output.storage
        self.block, sizes = binding.block
        self.sizes: Sequence[tuple[int, Any]] = sizes
        self.layer, self.offset = binding.layer, 0

    @property
    def reads(self) -> Sequence[GLStorage]:
        """The storages of its inputs."""
        return self._inputs

    def link(self, device: Device) -> None:
        """Begin to link the program of a step that was made without a context."""
        device.programs.get(*cast(Any, self._program))

    def on(self, device: Device, found: Callable[[GLStorage], Storage]) -> Self:
        """Return a step made without a context, linked and with the storages that `found` returns."""
        made = copy(self)
        made._program = device.programs.get(*cast(Any, self._program))
        made._inputs = [on_gl(found(storage)) for storage in self._inputs]
        made._output = found(on_gl(self._output))
        return made

    def with_numbers(self, function: Callable[[Any], Any]) -> Self:
        """Return the step with other numbers in the place of those that may depend on sizes."""
        made = copy(self)
        made.sizes = [(at, function(number)) for at, number in self.sizes]
        return made

    def _bind(self, commands: CommandList, uniforms: int) -> None:
        """Record the program and its numbers."""
        commands.set(0, "glUseProgram", self._program)
        commands.set(2, "glBindBufferRange", _UNIFORM_BUFFER, 0, uniforms, self.offset, len(self.block))


def passes(size: int, most: int) -> list[tuple[int, int]]:
    """Cut the `size` rounds of a loop into passes of at most `most`, as (first, count)."""
    if not size > most:
        return [(0, size)]
    size, most = specialized(size), specialized(most)
    return [(first, min(most, size - first)) for first in range(0, size, most)]


def formula_number(index: int) -> str:
    """The GLSL name of number `index` of a kernel's formulas."""
    return f"{FORMULA_NUMBERS}[{index >> 2}].{'xyzw'[index & 3]}"


def function_of(stages: Sequence[epilogue.Stage], name: str = "epilogue", first: int = 0) -> Functions:
    """The GLSL function `float name(float x)` that applies the stages. Their numbers begin at index `first`."""
    functions, expression = epilogue.compose(stages, "glsl")
    expression = re.sub(r"\bparameter\((\d+)\)", lambda found: formula_number(int(found[1]) + first), expression)
    return Functions(f"{functions}\nfloat {name}(float x) {{ return {expression}; }}", epilogue.parameters(stages))


def epilogue_of(layer: LayerLike, dtype: DataType) -> Functions:
    """The layer's epilogue as a GLSL function. Results of integers have none."""
    return function_of(layer.epilogue) if dtype is DataType.FLOAT32 else Functions("int epilogue(int x) { return x; }")


def window_params(window: SlidingWindow, dims: int, **extents: Sequence[int]) -> dict[str, Numbers]:
    """The numbers of a window by their names in kernels for `dims` dims, and these extents, such as its output's."""
    whole = window.in_dims(dims)
    return {
        **{name: in_dims(extent, dims) for name, extent in extents.items()},
        "kernel": whole.kernel,
        "stride": whole.strides,
        "dilation": whole.dilations,
        "begin": whole.begin,
    }


def ints(values: Sequence[int], length: int = MOST_DIMS) -> list[int]:
    """Dims or strides, padded with zeros to the length of a kernel's arrays. Raises ValueError if there are more."""
    if len(values) > length:
        raise ValueError(f"{len(values)} dims are more than a kernel's {length}")
    return [*values, *(0,) * (length - len(values))]


def wrapped(text: str, dtype: DataType) -> str:
    """GLSL that wraps an integer around to the range of its dtype, if the dtype is a small one."""
    if dtype not in SMALL_DTYPES:
        return f"({text})"
    bits = int(dtype.value.removeprefix("u").removeprefix("int"))
    return f"(int({text}) & {2**bits - 1})" if dtype.value[0] == "u" else f"(int({text}) << {32 - bits} >> {32 - bits})"


def unsupported(
    layer: LayerLike,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    dtypes: Sequence[DataType] = GPU_DTYPES,
) -> str | None:
    """Return why no GL kernel can run this layer, or None. `dtypes` are those of its family."""
    host = layer.declaration
    for index, value in enumerate((*inputs, *outputs)):
        if value is None or (index < len(inputs) and host.is_host(index)):
            continue
        if value.dtype not in dtypes:
            return f"{value.name!r} is {value.dtype}, and the GPU holds {', '.join(dtypes)}"
        known = value.value if value.dtype is DataType.INT64 else None
        if known is not None and known.size and (known.min() < _INT32.min or known.max() > _INT32.max):
            return f"{value.name!r} holds numbers outside int32"
    return None
