"""Shader text is composed of a body, its declared inputs and parameters, a shell, and the defines of a variant.

Programs are cached by their text.
"""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from string import Template
from typing import Any, Literal, NamedTuple

import moderngl

from perframe.backends.gl.compile.binaries import ProgramBinaries
from perframe.backends.gl.compile.linking import Linking, begin_linking
from perframe.backends.gl.texels import SHEETS
from perframe.errors import BackendError
from perframe.ir.sizes.size import is_symbolic, plain
from perframe.resources import resource
from perframe.safety.records import dataclass

Number = int | float
Numbers = Number | Sequence[Number]

BLOCK = "Params"  # the uniform block of every kernel
TOUCHED = "TOUCHED"  # a define: the elements of a unit, of which only those in replaced rows are written
HALVES = "O_HALVES"  # a define: the output lies in half storage
LAYERED = "LAYERED"  # a define: the caller's textures are layers of array textures
FORMULA_NUMBERS = "p"  # the array from which formulas read their numbers
KEPT = 1024  # cached answers about shaders: layers are often alike, and composing a text takes long
_COMPONENTS = {"int": 1, "float": 1, "ivec2": 2, "vec2": 2, "ivec4": 4, "vec4": 4, "mat3": 12}
_NO_BLOCK = 0xFFFFFFFF
_LAYER_EXTENSIONS = {"GL_ARB_shader_viewport_layer_array", "GL_AMD_vertex_shader_layer"}
_DECLARATION = re.compile(r"^//@ (input|param|texture|include|unit|long)\b ?(.*)$")
_CHOICE = re.compile(r"^([a-z ]+?)(?: if (not )?(\w+))?$")
_THREADED = {"GL_ARB_parallel_shader_compile", "GL_KHR_parallel_shader_compile"}
UNITS = ("element", "texel", "strip", "tile", "grid")
READS = ("elements", "texels")
_GOES_ON = re.compile(r"^(?:.*\\\n)+.*", re.MULTILINE)
_PARAM = re.compile(r"^(\w+) (\w+)(?:\[(\d+)\])?$")


@dataclass(frozen=True)
class Parameter:
    """A number, or an array of numbers, that a kernel reads from its uniform block, in std140 layout."""

    type: str
    name: str
    count: int | None

    def declaration(self) -> str:
        """Its line in the uniform block."""
        return f"    {self.type} {self.name}{'' if self.count is None else f'[{self.count}]'};"


@dataclass(frozen=True)
class DeclaredWords:
    """Words of a `//@` line that hold for all variants, or for those with a define, or for those without it."""

    words: tuple[str, ...]
    define: str = ""
    absent: bool = False

    def holds(self, defines: Collection[str]) -> bool:
        """Whether the words hold for a variant with these defines."""
        return not self.define or (self.define in defines) != self.absent


@dataclass(frozen=True, eq=False)  # equal by identity, so that caches can use it as a key
class Kernel:
    """A shader body, and the declarations of its `//@` lines.

    - `//@ input X` is a tensor of which the kernel reads elements; `//@ input X texels`, `//@ input X elements texels`
      and `//@ input X elements if not WHOLE, texels if WHOLE` say what it reads.
    - `//@ texture T` is a texture of the caller's that it samples, and `//@ param int size` a parameter.
    - `//@ unit texel` is what one invocation computes: an "element", which is the default, a "texel" of four elements,
      or a "strip" of consecutive texels. It stores elements of a "tile" itself, and texels (with SCATTERED elements)
      at a position of a "grid". With `//@ unit texel, grid if SCATTERED` the last one that holds counts.
    - `//@ long`: its loops may be so long that a fragment computes one texel, and not one on each sheet.
    - `//@ include order` stands for the text of `shaders/lib/order.glsl`.
    """

    name: str
    inputs: tuple[str, ...]
    textures: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    body: str
    accesses: Mapping[str, Sequence[DeclaredWords]]
    units: Sequence[DeclaredWords]
    is_long: bool

    def with_numbers(self, count: int) -> Kernel:
        """The kernel with an array `p` for the `count` numbers of its formulas, four to an element."""
        return _with_vectors(self, -(-count // 4)) if count else self

    def unit(self, defines: Collection[str]) -> str:
        """The unit of a variant with these defines."""
        return [choice.words[0] for choice in self.units if choice.holds(defines)][-1]

    def reads(self, name: str, defines: Collection[str]) -> tuple[bool, bool]:
        """Whether a variant with these defines reads elements of an input, and whether it reads whole texels of it."""
        words = [word for choice in self.accesses[name] if choice.holds(defines) for word in choice.words]
        return READS[0] in words, READS[1] in words

    def pack(self, values: Mapping[str, Numbers], o_type: str) -> tuple[bytes, list[tuple[int, Any]]]:
        """The uniform block's bytes, and the symbolic sizes in it, each with its first byte. Raises BackendError for a
        missing value, an unknown one, or too many numbers.
        """
        fields, names = _layout(self, o_type)
        if unused := values.keys() - names:
            raise BackendError(f"kernel {self.name} has no parameter {', '.join(sorted(unused))}")
        data, sizes = bytearray(), list[tuple[int, Any]]()
        for parameter, size, alignment, whole, packed in fields:
            given = values.get(parameter.name)
            if given is None:
                raise BackendError(f"kernel {self.name} was given no value for its parameter {parameter.name!r}")
            numbers = given if isinstance(given, Sequence) else (given,)
            if len(numbers) > size:
                raise BackendError(
                    f"kernel {self.name}: {len(numbers)} numbers do not fit {parameter.declaration().strip()}"
                )
            data += bytes(-len(data) % alignment)
            if whole:
                sizes += [(len(data) + 4 * at, number) for at, number in enumerate(numbers) if is_symbolic(number)]
                numbers = [plain(number) for number in numbers]
            data += packed.pack(*map(int if whole else float, numbers), *(0,) * (size - len(numbers)))
        return bytes(data) + bytes(-len(data) % 16), sizes


@cache
def _with_vectors(kernel: Kernel, count: int) -> Kernel:
    return replace(kernel, parameters=(*kernel.parameters, Parameter("vec4", FORMULA_NUMBERS, count)))


@lru_cache(KEPT)
def _layout(
    kernel: Kernel, o_type: str
) -> tuple[list[tuple[Parameter, int, int, bool, struct.Struct]], frozenset[str]]:
    """The parameters in std140 (counts of numbers, alignment, whether they are whole, packing) and their names."""
    fields = []
    for parameter in kernel.parameters:
        kind = o_type if parameter.type == "O_TYPE" else parameter.type
        size, whole = _COMPONENTS[kind] * (parameter.count or 1), kind in ("int", "ivec2", "ivec4")
        alignment = 16 if parameter.count is not None or size > 2 else 4 * size
        fields.append((parameter, size, alignment, whole, struct.Struct(f"{size}{'i' if whole else 'f'}")))
    return fields, frozenset(parameter.name for parameter in kernel.parameters)


@cache
def load_kernel(name: str) -> Kernel:
    """Load a kernel from `shaders/`, or from that folder of another package: "package:name"."""
    package, _, file = name.rpartition(":")
    text = resource("shaders", *f"{file}.glsl".split("/"), package=package).read_text(encoding="utf-8")
    return parse_kernel(name, text)


def parse_kernel(name: str, text: str) -> Kernel:
    """Read a kernel's declarations. Its first parameters count output elements and tiles. Raises BackendError."""
    accesses, textures, body = dict[str, Sequence[DeclaredWords]](), list[str](), list[str]()
    parameters = [Parameter("int", "O_size", None), Parameter("int", "O_tiles", None)]
    units, is_long = _choices("element", UNITS), False
    for line in text.splitlines():
        found = _DECLARATION.match(line)
        if found is None and not line.startswith("//@"):
            body.append(line)
            continue
        kind, rest = found.groups() if found else ("", "")
        read: Any = None
        if kind == "input":
            words = rest.split(maxsplit=1)
            read = accesses[words[0]] = _choices(words[1] if len(words) > 1 else READS[0], READS)
        elif kind == "texture":
            textures.append(read := rest)
        elif kind == "include":
            body.append(read := _library(rest))
        elif kind == "unit":
            read = units = _choices(rest, UNITS)
        elif kind == "long":
            read = is_long = not rest
        elif kind == "param" and (declared := _PARAM.match(rest)) is not None:
            read = Parameter(declared[1], declared[2], int(declared[3]) if declared[3] else None)
            parameters.append(read)
        if not read:
            raise BackendError(f"the shader {name}.glsl: cannot read {line!r}")
    return Kernel(name, tuple(accesses), tuple(textures), tuple(parameters), "\n".join(body), accesses, units, is_long)


def _choices(text: str, known: Collection[str]) -> Sequence[DeclaredWords]:
    """The choices of a `//@` line; none if it has other words than the known ones."""
    found = [_CHOICE.match(part.strip()) for part in text.split(",")]
    made = [DeclaredWords(tuple(one[1].split()), one[3] or "", bool(one[2])) for one in found if one is not None]
    return made if len(made) == len(found) and all(set(one.words) <= set(known) for one in made) else ()


@cache
def _shell(name: str) -> Template:
    return Template(_shell_text(name))


@cache
def _shell_text(name: str) -> str:
    return resource("shaders", "shell", f"{name}.glsl").read_text(encoding="utf-8")


@cache
def _library(name: str) -> str:
    return resource("shaders", "lib", f"{name}.glsl").read_text(encoding="utf-8")


class Shader(NamedTuple):
    """The text of a shader, and its place: a "compute" shader, or a fragment shader behind one triangle, or behind one
    "on sheets", each on a layer of the target. `vertex` is the text of a vertex shader instead of the triangle's.
    """

    text: str
    stage: Literal["compute", "fragment", "on sheets"]
    vertex: str = ""


def compose(
    kernel: Kernel,
    shell: str,
    accessors: Sequence[str],
    defines: Mapping[str, str],
    functions: str,
    version: int = 330,
) -> Shader:
    """Compose the whole shader. The shader compiler reports the name of a define or an accessor that is missing."""
    return _compose(kernel, shell, tuple(accessors), tuple(defines.items()), functions, version)


@lru_cache(KEPT)
def _compose(
    kernel: Kernel,
    shell: str,
    accessors: Sequence[str],
    variant: Sequence[tuple[str, str]],
    functions: str,
    version: int,
) -> Shader:
    defines = dict(variant)
    vector = {"float": "vec4", "int": "ivec4"}[defines["O_TYPE"]]
    unit, is_touched = kernel.unit(defines), TOUCHED in defines
    is_long = (kernel.is_long or "LONG" in defines) and not is_touched
    if is_long:
        defines["LONG"] = "1"
    lines = [f"#define {name} {value}" for name, value in defines.items()]
    lines.append(f"#define {unit.upper()}")
    lines += [f"#define O_VECTOR {vector}", *([_library("halves")] if HALVES in defines else [])]
    if shell == "compute":
        whole = unit in ("texel", "strip", "grid") and "SCATTERED" not in defines
        stored = held = vector if whole else defines["O_TYPE"]
        value = "value"
        if HALVES in defines:
            stored, held = (vector, "uvec2") if whole else ("vec2", "uint")
            value = "words_of(value)"
        lines.append(f"layout(std430, binding = 7) writeonly buffer O_block {{ {held} O_data[]; }};")
        lines.append(f"void store(int o, {stored} value) {{ O_data[o] = {value}; }}")
    elif shell == "draw":
        lines.append("out vec4 O_color;")
    sampler = "sampler2DArray" if LAYERED in defines else "sampler2D"
    accessors = [*accessors, *(f"uniform {sampler} {name};" for name in kernel.textures)]
    lines += [f"layout(std140) uniform {BLOCK} {{", *(p.declaration() for p in kernel.parameters), "};", *accessors]
    # A layer and its epilogue may use the same formula. Each function is one line, and GLSL accepts it only once.
    functions = "\n".join(dict.fromkeys(functions.splitlines()))
    parts = {"math": _library("math"), "functions": functions, "body": kernel.body, "version": version}
    parts["touched"] = _library("touched") if is_touched else ""
    vertex = ""
    if shell == "pixel":
        vertex = _shell("touched").substitute(parts, declarations="\n".join(lines)) if is_touched else ""
        lines.append(f"layout(location = 0) out O_VECTOR O_texels[{1 if is_long else SHEETS}];")
    text = _in_whole_lines(_shell(shell).substitute(parts, declarations="\n".join(lines)))
    if shell == "compute":
        return Shader(text, "compute")
    return Shader(text, "on sheets" if shell == "pixel" and is_long else "fragment", vertex)


def _in_whole_lines(text: str) -> str:
    """Join lines that go on after a backslash, which GLSL 3.30 does not have, and keep the numbers of other lines."""
    return _GOES_ON.sub(lambda found: found[0].replace("\\\n", " ") + "\n" * found[0].count("\n"), text)


def shaders_on_sheets(extensions: set[str]) -> dict[str, str]:
    """The shaders before one that computes a texel of one sheet: a vertex shader that chooses the sheet, or, where only
    geometry shaders may choose it, one of them behind the vertex shader.
    """
    if extensions & _LAYER_EXTENSIONS:
        return {"vertex_shader": _shell_text("triangle_on_sheet")}
    return {"vertex_shader": _shell_text("triangle"), "geometry_shader": _shell_text("sheets")}


class ProgramCache:
    """Compiled programs of one context, by their text."""

    def __init__(self, ctx: moderngl.Context, gl: Any) -> None:
        self._gl, self._binaries = gl, ProgramBinaries(ctx, gl)
        self._programs: dict[str, int] = {}
        self._begun: deque[_PendingLink] = deque()
        self._links_in_threads = not _THREADED.isdisjoint(ctx.extensions)
        self.on_sheets = shaders_on_sheets(ctx.extensions)
        self.compiled = 0  # the number of programs compiled so far, for tests; those from files are not among them

    def get(self, shader: Shader, samplers: Sequence[str], kernel: str, layer: str = "") -> int:
        """The GL name of a shader's program. It may run after `settle`, whose error names the kernel and the layer."""
        found = self._programs.get(shader.text)
        if found is None:
            stages = self._stages(shader)
            found = self._binaries.load(tuple(stages.values()))
            if found is None:
                linking = begin_linking(self._gl, stages, self._binaries.are_kept)
                named = f"{kernel} of the layer {layer!r}" if layer else kernel
                self._begun.append(_PendingLink(shader.text, stages, samplers, named, linking))
                found = linking.glo
            else:
                self._number(found, samplers)
            self._programs[shader.text] = found
        return found

    @property
    def count(self) -> int:
        """The number of programs, those that are being linked among them."""
        return len(self._programs)

    @property
    def waits(self) -> bool:
        """Whether the driver still links the next program in its own threads."""
        return bool(self._begun) and self._links_in_threads and not self._begun[0].linking.is_done(self._gl)

    def settle(self) -> None:
        """Wait until all programs are linked. Raises BackendError for one that the driver refuses."""
        while self._begun:
            self._settle_next()

    def settle_one(self) -> bool:
        """Finish a program, unless the driver still links it in its own threads. Return whether all are linked.
        Raises BackendError.
        """
        if self._begun and not self.waits:
            self._settle_next()
        return not self._begun

    def _settle_next(self) -> None:
        begun = self._begun.popleft()
        failure = begun.linking.failure(self._gl)
        if failure is not None:
            del self._programs[begun.text]
            excerpt = _excerpt([*begun.stages.values()][-1], failure)
            raise BackendError(f"shader {begun.name} does not compile: {failure}\n{excerpt}")
        self.compiled += 1
        self._number(begun.linking.glo, begun.samplers)
        self._binaries.note(tuple(begun.stages.values()), begun.linking.glo)

    def keep(self, most: int | None = None) -> None:
        """Write compiled programs, or at most `most` of them, to disk. The context is current."""
        self._binaries.keep(most)

    def _stages(self, shader: Shader) -> dict[str, str]:
        """The texts of all its shaders, by moderngl's names for them."""
        if shader.stage == "compute":
            return {"source": shader.text}
        vertex = {"vertex_shader": shader.vertex or _shell_text("triangle")}
        first = self.on_sheets if shader.stage == "on sheets" else vertex
        return {**first, "fragment_shader": shader.text}

    def _number(self, program: int, samplers: Sequence[str]) -> None:
        """Put its uniform block at binding 0, and its samplers at units 0, 1, ..."""
        gl = self._gl
        gl.glUseProgram(program)
        for unit, sampler in enumerate(samplers):
            place = gl.glGetUniformLocation(program, sampler.encode())
            if place >= 0:  # the compiler drops samplers that a variant does not read
                gl.glUniform1i(place, unit)
        index = gl.glGetUniformBlockIndex(program, BLOCK.encode())
        if index != _NO_BLOCK:
            gl.glUniformBlockBinding(program, index, 0)


@dataclass(frozen=True)
class _PendingLink:
    """A program that is being linked."""

    text: str
    stages: Mapping[str, str]
    samplers: Sequence[str]
    name: str
    linking: Linking


def _excerpt(text: str, error: str) -> str:
    """The shader lines that the driver's message names, with their neighbors. It reads Mesa's and NVIDIA's format."""
    lines = text.splitlines()
    named = {int(n) for n in re.findall(r"\b0[:(](\d+)", error)}
    near = sorted({n + d for n in named for d in (-1, 0, 1) if 0 < n + d <= len(lines)})
    return "\n".join(f"{n:4} {lines[n - 1]}" for n in near)
