"""The GLSL with which compute shaders read storage buffers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from perframe.backends.gl.compile.program import Kernel

MOST_BLOCKS = 8  # of a kernel, its output's among them: GL 4.3 guarantees no more


@dataclass(frozen=True)
class ReadBuffer:
    """How a kernel reads a tensor of a kind ("float", "half" or "int"): through storage blocks of elements, of texels
    or of both, and through a texture over the buffer if `unit` is a texture unit.
    """

    name: str
    kind: str
    binding: int
    has_elements: bool = True
    has_texels: bool = False
    unit: int | None = None

    @property
    def blocks(self) -> int:
        """The number of its storage blocks."""
        return self.has_elements + self.has_texels

    @property
    def accessor(self) -> str:
        """GLSL that declares the blocks and reads an element, four from an index, those at four indices, or a texel."""
        name = self.name
        kind, vector, prefix = ("int", "ivec4", "i") if self.kind == "int" else ("float", "vec4", "")
        block, lines = f"layout(std430, binding = {self.binding}) readonly buffer {name}", []
        if self.kind == "half":
            pair = f"{name}_data[i >> 1]" if self.has_elements else f"{name}_vectors[i >> 2][i >> 1 & 1]"
            element, held = f"unpackHalf2x16({pair})[i & 1]", ("uint", "uvec2")
            texel = f"vec4(unpackHalf2x16({name}_vectors[t].x), unpackHalf2x16({name}_vectors[t].y))"
        else:
            element = f"{name}_data[i]" if self.has_elements else f"{name}_vectors[i >> 2][i & 3]"
            texel, held = f"{name}_vectors[t]", (kind, vector)
        if self.has_elements:
            lines.append(f"{block}_block {{ {held[0]} {name}_data[]; }};")
        if self.has_texels:
            lines.append(f"{block}_texels {{ {held[1]} {name}_vectors[]; }};")
        if self.unit is not None:
            texel = f"texelFetch({name}_view, t)"
            lines.append(f"layout(binding = {self.unit}) uniform {prefix}samplerBuffer {name}_view;")
        if self.blocks:
            each = ", ".join(f"{name}(i + {k})" for k in range(4))
            lines += [
                f"{kind} {name}(int i) {{ return {element}; }}",
                f"{vector} {name}_four(int i) {{ return {vector}({each}); }}",
                f"{vector} {name}_at(ivec4 at) {{",
                f"    return {vector}({name}(at.x), {name}(at.y), {name}(at.z), {name}(at.w));",
                "}",
            ]
        if self.has_texels or self.unit is not None:
            lines.append(f"{vector} {name}_texel(int t) {{ return {texel}; }}")
        return "\n".join(lines)


def buffers_of(
    kernel: Kernel, kinds: Mapping[str, str], defines: Mapping[str, str], viewable: Collection[str]
) -> list[ReadBuffer]:
    """How a kernel reads inputs of these kinds; the texels of `viewable` ones through textures. An input has a block
    for what the kernel reads of it. Where the blocks of elements and of texels are too many together, elements are read
    from texels.
    """
    return _buffers_of(kernel, tuple(kinds.items()), tuple(defines.items()), frozenset(viewable))


@lru_cache(1024)  # layers of a model are often alike, and to read a shader's text takes as long as the rest of planning
def _buffers_of(
    kernel: Kernel, kinds: Sequence[tuple[str, str]], defines: Sequence[tuple[str, str]], viewable: Collection[str]
) -> list[ReadBuffer]:
    reads = {name: kernel.reads(name, dict(defines)) for name, _ in kinds}
    blocks = 1 + sum(elements + (texels and name not in viewable) for name, (elements, texels) in reads.items())
    found, units = list[ReadBuffer](), count(len(kernel.textures))
    for binding, ((name, kind), (elements, texels)) in enumerate(zip(kinds, reads.values(), strict=True)):
        is_viewed = texels and name in viewable
        both = elements and texels and not is_viewed
        has_elements = elements and not (both and blocks > MOST_BLOCKS)
        unit = next(units) if is_viewed else None
        found.append(ReadBuffer(name, kind, binding, has_elements, texels and not is_viewed, unit))
    return found
