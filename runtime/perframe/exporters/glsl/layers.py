"""Layers become lines of a program for one pixel.

A value is an array of elements in its shape, for a few pixels. Each element is a number that says which scalar of the
program it is, and of which pixel; layers that move data move these numbers. So it is seen, and not assumed, that no
layer mixes pixels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from perframe.errors import ModelError
from perframe.exporters.glsl.program import PixelProgram
from perframe.exporters.glsl.words import literal
from perframe.ir import Layer, Value
from perframe.ir.broadcasting import Elementwise, operand_kinds
from perframe.ir.epilogue import compose, parameters
from perframe.ir.form import Followed, check_bounds
from perframe.ir.formula import name_in_text, translate
from perframe.ir.geometry import View
from perframe.ir.sizes.partial import PartialTensor
from perframe.layers.conv import Convolution
from perframe.layers.matmul import Product
from perframe.tensor import Array, DataType

Elements = NDArray[np.int64]  # pixel * _PIXEL + scalar; pixel 0 stands for any pixel
Specs = Mapping[Value, PartialTensor]

FAMILIES = ("elementwise", "matmul", "conv", "move", "join", "gather")
_PIXEL = 1 << 32
_DTYPES = (DataType.FLOAT32, DataType.INT32, DataType.INT64, DataType.BOOL)
_PARAMETER = re.compile(r"\bparameter\((\d+)\)")
_RUN = "run it with a Worker"


def elements(scalars: Sequence[int], pixels: Array) -> Elements:
    """Return the elements of scalars of each pixel in an array of pixels: (len(scalars), *pixels)."""
    made: Elements = np.asarray(scalars, np.int64).reshape(-1, *(1,) * pixels.ndim) + pixels * _PIXEL
    return made


def scalars_of(found: Elements, pixels: int) -> list[int]:
    """Return the scalars of a value that all `pixels` have, in order. Raises ModelError if pixels differ, or if their
    order has changed.
    """
    scalars, own = found.ravel() % _PIXEL, found.ravel() // _PIXEL
    if not own.any():
        return [int(number) for number in scalars]
    order = np.argsort(own, kind="stable")
    counts = np.bincount(own, minlength=pixels + 1)
    if counts[0] or (counts[1:] != counts[1]).any():
        raise ModelError(f"pixels have different numbers of results: {_RUN}")
    of_pixels, places = scalars[order].reshape(pixels, -1), order.reshape(pixels, -1)
    if (of_pixels != of_pixels[0]).any() or (np.diff(places, axis=0) < 0).any():
        raise ModelError(f"pixels are computed differently, or change places: {_RUN}")
    return [int(number) for number in of_pixels[0]]


def kind_of(dtype: DataType) -> str:
    """Return the type of an element in GLSL. Raises ModelError for a dtype that a shader does not have."""
    if dtype not in _DTYPES:
        raise ModelError(f"it reads or makes {dtype}, and a shader's function has float32, int32 and bool")
    return operand_kinds([dtype])[0]


class PixelLayers:
    """The values of a model's layers, as elements of a program."""

    def __init__(self, program: PixelProgram, specs: Specs) -> None:
        self.program, self.specs = program, specs
        self.found: dict[Value, Elements] = {}
        self._fixed: dict[Value, Array] = {}  # what layers make of constants alone

    def add(self, layer: Layer) -> None:
        """Add a layer. Raises ModelError with the reason if a function of one pixel cannot express it."""
        if layer.family not in FAMILIES:
            raise ModelError(
                "a function has elementwise layers, products with constant weights, 1 × 1 convolutions and moves of "
                f"channels: compose it of these, or {_RUN}"
            )
        if layer.channels_last:
            raise ModelError("it is prepared for a backend: give the model that pf.load returns")
        if layer.family == "elementwise":
            made = [self._elementwise(layer)]
        elif layer.family == "matmul":
            made = [self._product(layer)]
        elif layer.family == "conv":
            made = [self._convolution(layer)]
        else:
            made = self._moved(layer)
        for value, found in zip(layer.outputs, made, strict=False):
            if value is not None:
                self.found[value] = found.reshape(self._shape(value))

    def keep(self, layer: Layer) -> None:
        """Add a layer whose results are known: constants if it reads only constants, else arithmetic with shapes."""
        if all(value.constant is not None or value in self._fixed for value in layer.operands):
            self._fixed.update((value, cast(Array, self.specs[value].value)) for value in layer.results)

    def of(self, value: Value) -> Elements:
        """Return a value's elements. Raises ModelError for one that depends on the number of pixels."""
        constant = self._fixed.get(value) if value.constant is None else value.constant
        if constant is not None and value not in self.found:
            numbers = self.program.constants(constant, kind_of(self.specs[value].dtype))
            self.found[value] = np.asarray(numbers, np.int64).reshape(constant.shape)
        if value not in self.found:
            raise ModelError(f"it reads {value.name!r}, which depends on the number of pixels: {_RUN}")
        return self.found[value]

    def _shape(self, value: Value) -> tuple[int, ...]:
        shape = self.specs[value].shape
        assert shape is not None
        return tuple(shape.to_shape())

    def _form(self, layer: Layer) -> Any:
        known = [None if value is None else self.specs[value] for value in (*layer.inputs, *layer.outputs)]
        entry, count = layer.declaration, len(layer.inputs)
        return entry.canonical(known[:count], known[count:], entry.with_defaults(layer.attributes))

    def _moved(self, layer: Layer) -> list[Elements]:
        """Move the elements as the layer's form moves values."""
        if layer.declaration.alias:
            return [self.of(layer.input(0))]
        forms = self._form(layer)
        hosts = [layer.declaration.is_host(index) or layer.family == "gather" for index in range(len(layer.inputs))]
        hosts[0] = False
        given = [
            None if value is None else self.specs[value] if host else PartialTensor.of(self.of(value))
            for value, host in zip(layer.inputs, hosts, strict=True)
        ]
        made = []
        listed = forms if isinstance(forms, list) else [forms]
        for form, value in zip(listed, layer.outputs, strict=False):
            if not isinstance(form, Followed):
                raise ModelError(f"it reads elements at places that are not constant: {_RUN}")
            check_bounds(form, [None if one is None else one.value for one in given])
            known = PartialTensor.of_values(DataType.INT64, np.zeros(0)) if value is None else self.specs[value]
            moved = form.of_values(given, known)
            if any(number is None for number in moved.flat):
                raise ModelError(f"its indices are not constant: {_RUN}")
            made.append(moved.astype(np.int64))
        return made

    def _elementwise(self, layer: Layer) -> Elements:
        """Compute each different combination of operands once."""
        form = cast(Elementwise, self._form(layer))
        operands = [value for index, value in enumerate(layer.inputs) if index in form.operands and value is not None]
        columns = [
            View(form.shape, strides).of(self.of(value).ravel()).ravel()
            for value, strides in zip(operands, form.strides, strict=True)
        ]
        pixel = self.common_pixels(columns)
        rows = np.stack(columns, 1) % _PIXEL
        kind, wanted = self._formula(layer, form)
        numbers: dict[tuple[int, ...], str] = {}
        for row in map(tuple, rows.tolist()):
            if row not in numbers:
                numbers[row] = wanted(row)
        found = dict(zip(numbers, self.program.computed([*numbers.values()], kind), strict=True))
        return np.array([found[row] for row in map(tuple, rows.tolist())], np.int64) + pixel * _PIXEL

    def _formula(self, layer: Layer, form: Elementwise) -> tuple[str, Callable[[Sequence[int]], str]]:
        """The kind of a layer's result, and a function that gives the expression of its formula for scalars."""
        stored = kind_of(layer.output.spec.dtype)
        text, kind = translate(form.formula, list(form.kinds), "glsl")
        numbers = [literal(number, "float") for number in form.parameters]
        name = self.program.library.add(text, name_in_text(form.formula))
        finish = self.epilogue(layer)

        def expression(scalars: Sequence[int]) -> str:
            given = []
            for number, wanted in zip(scalars, form.kinds, strict=True):
                scalar = self.program[number]
                own = scalar.text
                if scalar.kind == wanted == "bool":
                    own = self.program.library.call("as_made", own)
                given.append(own if scalar.kind == wanted else f"{wanted}({own})")
            applied = f"{name}({', '.join([*given, *numbers])})"
            applied = finish(applied) if finish else applied
            return applied if kind == stored else f"{stored}({applied})"

        return stored, expression

    def epilogue(self, layer: Layer) -> Callable[[str], str] | None:
        """A function that applies a layer's epilogue to an expression; None without an epilogue."""
        if not layer.epilogue:
            return None
        functions, text = compose(layer.epilogue, "glsl")
        numbers = [literal(number, "float") for number in parameters(layer.epilogue)]
        text = self.program.library.add(functions, text)
        text = _PARAMETER.sub(lambda found: numbers[int(found[1])], text)
        return lambda x: re.sub(r"\bx\b", lambda _: x, text)

    def common_pixels(self, columns: Sequence[Elements]) -> Elements:
        """The pixel of each row of operands. Raises ModelError if a row mixes pixels."""
        pixels = np.stack([column // _PIXEL for column in columns])
        pixel = pixels.max(0)
        if ((pixels != pixel) & (pixels > 0)).any():
            raise ModelError(f"it joins numbers of different pixels: {_RUN}")
        return cast(Elements, pixel)

    def _product(self, layer: Layer) -> Elements:
        """Multiply rows or columns of the operand that is not constant with the other one."""
        form = cast(Product, self._form(layer))
        a, b, *more = layer.inputs
        assert a is not None and b is not None
        bias = more[0] if more else None
        shape = (*form.batch, form.rows, form.columns)
        addends = None
        if bias is not None:
            numbers = _weights(bias, "bias") * np.float32(form.beta)
            addends = View(shape, (*(0,) * len(form.batch), *form.bias_strides)).of(numbers.ravel())
        sides = [
            (value, View((*form.batch, *dims), strides))
            for value, dims, strides in (
                (a, (form.rows, form.depth), form.a_strides),
                (b, (form.depth, form.columns), form.b_strides),
            )
        ]
        is_turned = a.constant is not None
        if is_turned:  # the columns of B are multiplied with the rows of A
            sides.reverse()
        (given, of_given), (fixed, of_fixed) = sides
        rows, weights = of_given.of(self.of(given).ravel()), of_fixed.of(_weights(fixed, "factor").ravel())
        weights = weights * np.float32(form.alpha)
        if is_turned:
            rows = np.swapaxes(rows, -1, -2)
            addends = None if addends is None else np.swapaxes(addends, -1, -2)
        else:
            weights = np.swapaxes(weights, -1, -2)
        made = np.empty((*form.batch, rows.shape[-2], weights.shape[-2]), np.int64)
        multiply = WeightedSums(self, layer)
        for at in np.ndindex(made.shape[:-1]):
            made[at] = multiply(rows[at], weights[at[:-1]], None if addends is None else addends[at])
        return np.swapaxes(made, -1, -2) if is_turned else made

    def _convolution(self, layer: Layer) -> Elements:
        """Multiply the channels of each pixel with the weights."""
        form = self._form(layer)
        slid = getattr(form, "window", None)
        if layer.op != "Conv" or not isinstance(form, Convolution) or slid is None:
            raise ModelError(f"only Conv of floats is expressed: {_RUN}")
        if any(kernel != 1 for kernel in slid.kernel):
            raise ModelError(f"its kernel is {' × '.join(map(str, slid.kernel))}, and it reads other pixels: {_RUN}")
        if any(stride != 1 for stride in slid.strides) or any((*slid.begin, *slid.end)):
            raise ModelError(f"its strides are {slid.strides}, its padding is {slid.begin + slid.end}: {_RUN}")
        x, w, *more = layer.inputs
        assert x is not None and w is not None
        if any(value is not None for value in more[1:]):
            raise ModelError("it is prepared for a backend: give the model that pf.load returns")
        bias = _weights(more[0], "bias") if more and more[0] is not None else None
        weights = _weights(w, "kernel").reshape(form.groups, form.outputs // form.groups, form.depth)
        rows = np.moveaxis(self.of(x), 1, -1).reshape(-1, form.groups, form.depth)
        made = np.empty((len(rows), *weights.shape[:2]), np.int64)
        biases = None if bias is None else bias.reshape(weights.shape[:2])
        multiply = WeightedSums(self, layer)
        for pixel, group in np.ndindex(made.shape[:2]):
            made[pixel, group] = multiply(rows[pixel, group], weights[group], None if biases is None else biases[group])
        return np.moveaxis(made.reshape(form.batch, *form.output, form.outputs), -1, 1)


class WeightedSums:
    """Multiplies vectors of a layer with its weights: those of the same scalars once, whatever their pixels are."""

    def __init__(self, layers: PixelLayers, layer: Layer) -> None:
        self._layers, self._program = layers, layers.program
        self._finish = layers.epilogue(layer)
        self._made: dict[Any, list[int]] = {}

    def __call__(self, given: Elements, weights: Array, bias: Array | None) -> Elements:
        """Return the elements of `weights` (results, len(given)) times a vector of elements, plus a bias (results)."""
        pixel = self._layers.common_pixels([*given.reshape(-1, 1)])[0]
        scalars = tuple((given % _PIXEL).tolist())
        key = (scalars, weights.tobytes(), None if bias is None else bias.tobytes())
        if key not in self._made:
            self._made[key] = self._program.product(weights, bias, scalars, self._finish)
        made: Elements = np.array(self._made[key], np.int64) + pixel * _PIXEL
        return made


def _weights(value: Value, what: str) -> Array:
    """Return a constant of floats. Raises ModelError for a value that is not one."""
    if value.constant is None:
        raise ModelError(f"its {what} {value.name!r} is not constant: {_RUN}")
    if not value.spec.dtype.is_float:
        raise ModelError(f"its {what} {value.name!r} is {value.spec.dtype}: give the float model")
    return np.asarray(value.constant, np.float32)
