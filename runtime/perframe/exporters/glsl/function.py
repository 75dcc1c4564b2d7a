"""`to_glsl` writes a small network as a function for the user's own shader."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from perframe import __version__
from perframe.errors import InferenceError, InputError, ModelError
from perframe.exporters.glsl.layers import FAMILIES, PixelLayers, elements, scalars_of
from perframe.exporters.glsl.library import called_words
from perframe.exporters.glsl.program import PixelProgram, Scalar
from perframe.exporters.glsl.words import LETTERS, check_name, identifier, vector
from perframe.ir import Model, Value
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType

_SOME = 2  # pixels along each axis of pixels, to see whether layers mix them


class PixelInput(NamedTuple):
    """An input: the axis of its channels, None without one, its shape for some pixels, and its channels."""

    axis: int | None
    shape: tuple[int, ...]
    channels: int

    @property
    def pixels(self) -> tuple[int, ...]:
        """The dims of its pixels."""
        return tuple(dim for axis, dim in enumerate(self.shape) if axis != self.axis)


def to_glsl(model: Model, name: str = "network") -> str:
    """Write a small network as a GLSL function that computes one pixel, for your own shader.

    The text is valid in GLSL 3.30, 4.30 and ES 3.00, in every kind of shader; it has no `#version` and no uniforms. It
    declares `void name(in vec2 position, out vec3 color)`: the model's inputs and outputs, by their names. One channel
    is a `float`, 2 to 4 channels are a `vec2` to `vec4`, and more are an array, `float y[16]`.

    All axes of an input but that of its channels count pixels: of (n, channels), of (n, channels, height, width), or
    of (n, height, width, channels). The model may have elementwise layers, matrix products with constant weights,
    1 × 1 convolutions, and layers that join, slice and rearrange channels; optimized or not. Weights are exact
    literals, 16,384 at most. NaN and infinities behave as on the GL backends.

    Functions and variables in the text begin with `name`, so that several networks fit one shader; no network's name
    may be another's with an underscore and more behind it.

    Raises ModelError that lists every layer that such a function cannot express, and InputError for a name that GLSL
    does not allow.
    """
    if not isinstance(model, Model):
        raise InputError(f"to_glsl takes a Model as pf.load returns it, and not {type(model).__name__}")
    check_name(name)
    model.verify()
    exports = [GlslExport(model, name, axis) for axis in (1, -1)]
    best = min(exports, key=lambda export: (not export.has_layers, len(export.problems)))
    if not best.problems:
        return best.text()
    problems = best.problems
    if not best.has_layers:
        problems = [*dict.fromkeys(problem for export in exports for problem in export.problems)]
    raise ModelError(
        f"{model.name}: a function of one pixel cannot express {len(problems)} part(s) of it:\n  "
        + "\n  ".join(problems)
    )


class GlslExport:
    """The export of a model whose inputs have their channels on one axis: 1 or -1."""

    def __init__(self, model: Model, name: str, axis: int) -> None:
        self.model, self.name = model, name
        self.problems: list[str] = []
        self.has_layers = False  # whether the inputs fit, so that problems are those of layers
        self.program = PixelProgram(name)
        taken = {name, *called_words()}
        self.names: dict[str, str] = {}
        for value in (*model.inputs, *model.outputs):
            key = self._key(value, value in model.inputs)
            self.names[key] = identifier(value.name, taken, name)
            taken.add(self.names[key])
        self.inputs = [self._input(value, axis) for value in model.inputs]
        if not self.problems:
            self._add_layers()

    @staticmethod
    def _key(value: Value, is_input: bool) -> str:
        return f"{'in' if is_input else 'out'} {value.name}"

    def _input(self, value: Value, axis: int) -> PixelInput:
        where, shape = f"input {value.name!r}", value.shape
        if value.kind != "tensor" or value.dtype is not DataType.FLOAT32:
            self.problems.append(f"{where}: it is {value.dtype}, and the function takes and gives float32")
        if shape is None:
            self.problems.append(f"{where}: its rank is unknown: declare its shape")
            return PixelInput(None, (), 1)
        own = axis % len(shape) if len(shape) > 1 else 0
        if len(shape) == 0 or (len(shape) == 1 and not isinstance(shape[0], int)):
            return PixelInput(None, (_SOME,) * len(shape), 1)
        channels = shape[own]
        if not isinstance(channels, int):
            self.problems.append(f"{where}: the number of its channels, axis {own}, is open: fix it with dims=")
            channels = 1
        dims = [channels if at == own else 1 if dim == 1 else _SOME for at, dim in enumerate(shape)]
        return PixelInput(own, tuple(dims), channels)

    def _add_layers(self) -> None:
        try:
            specs = self.model.specs(
                {
                    value: PartialTensor(DataType.FLOAT32).with_shape(given.shape)
                    for value, given in zip(self.model.inputs, self.inputs, strict=True)
                }
            )
        except InferenceError as error:
            self.problems.append(f"a layer holds for one number of pixels alone; give it open dims: {error}")
            return
        self.has_layers = True
        layers = PixelLayers(self.program, specs)
        pixels = self._add_inputs(layers)
        failed: set[Value] = set()
        for layer in self.model.layers:
            if all(specs[value].value is not None for value in layer.results):
                layers.keep(layer)
                continue
            if failed.isdisjoint(layer.operands) or layer.family not in FAMILIES:
                try:
                    layers.add(layer)
                    continue
                except ModelError as error:
                    self.problems.append(f"layer {layer.name!r} ({layer.op}): {error}")
            failed.update(layer.results)
        self.results: list[list[int]] = []
        for value in self.model.outputs:
            if value in failed:
                continue
            try:
                if specs[value].dtype is not DataType.FLOAT32:
                    raise ModelError(f"it is {specs[value].dtype}, and the function takes and gives float32")
                self.results.append(scalars_of(layers.of(value), pixels))
            except ModelError as error:
                self.problems.append(f"output {value.name!r}: {error}")

    def _add_inputs(self, layers: PixelLayers) -> int:
        """Add the inputs' elements, and return the number of pixels."""
        counts = {math.prod(given.pixels) for given in self.inputs} - {1}
        if len(counts) > 1:
            self.problems.append("its inputs have pixels along different numbers of axes: give them like shapes")
        for value, given in zip(self.model.inputs, self.inputs, strict=True):
            name, width = self.names[self._key(value, True)], given.channels
            if width > len(LETTERS):
                scalars = self.program.computed([f"{name}[{at}]" for at in range(width)], "float")
            else:
                letters = LETTERS[:width] if width > 1 else [""]
                scalars = self.program.add([Scalar("float", name, letter) for letter in letters], name)
            count = math.prod(given.pixels)
            own = np.arange(count).reshape(given.pixels) + 1 if count > 1 else np.zeros(given.pixels, np.int64)
            found = elements(scalars, own)
            layers.found[value] = found.reshape(own.shape) if given.axis is None else np.moveaxis(found, 0, given.axis)
        return max(counts, default=1)

    def text(self) -> str:
        """The text of the function and of those that it calls."""
        arguments = [
            self._argument("in", self._key(value, True), given.channels)
            for value, given in zip(self.model.inputs, self.inputs, strict=True)
        ]
        lines = [*self.program.lines]
        for value, numbers in zip(self.model.outputs, self.results, strict=True):
            key = self._key(value, False)
            arguments.append(self._argument("out", key, len(numbers)))
            lines += self._written(self.names[key], numbers)
        definitions, zero = self.program.library.texts()
        if zero:
            first = self._first_scalar()
            lines.insert(0, f"{zero} = floatBitsToUint({first} * {first}) >> 31u;  // 0, but compilers do not know")
        body = "\n".join(f"    {line}" for line in lines)
        return "\n".join(
            [
                f"// {self.name}: {self.program.weights:,} weights, from {self.model.name} by perframe {__version__}",
                *definitions,
                f"void {self.name}({', '.join(arguments)}) {{\n{body}\n}}\n",
            ]
        )

    def _argument(self, way: str, key: str, width: int) -> str:
        kind = vector("float", width) if width <= len(LETTERS) else "float"
        return f"{way} {kind} {self.names[key]}{f'[{width}]' if width > len(LETTERS) else ''}"

    def _written(self, name: str, numbers: Sequence[int]) -> list[str]:
        """The lines that write an output."""
        if len(numbers) <= len(LETTERS):
            return [f"{name} = {self.program.joined(numbers)};"]
        return [f"{name}[{at}] = {self.program[number].text};" for at, number in enumerate(numbers)]

    def _first_scalar(self) -> str:
        """An expression for a number of an input."""
        value, given = self.model.inputs[0], self.inputs[0]
        name = self.names[self._key(value, True)]
        return name if given.channels == 1 else f"{name}[0]" if given.channels > len(LETTERS) else f"{name}.x"
