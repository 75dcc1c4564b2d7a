"""Sizes on llvmpipe are of one kind, so that it makes machine code of a shader once."""

from __future__ import annotations

from typing import Any

import moderngl
import numpy as np
import pytest

from perframe.backends.gl.compute import BufferStorage
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.context.extents import buffer_of_one_kind, texture_of_one_kind
from perframe.backends.gl.pixel import TextureStorage
from perframe.backends.gl.storage.storage import GLStorage
from perframe.backends.gl.texels import texture_size
from perframe.tensor import DataType


def test_no_size_of_a_buffer_looks_otherwise_to_llvmpipe() -> None:
    for size in [*range(0, 70_000, 16), 1 << 20, 3 << 16, (1 << 28) - 16]:
        made = buffer_of_one_kind(size)
        assert size <= made <= size + 272 and made & (made - 1) and made & 0xFF00, size


def test_no_extent_of_a_texture_is_a_power_of_two_unless_it_is_the_largest() -> None:
    assert texture_of_one_kind((64, 1), 4096) == (65, 3)
    assert texture_of_one_kind((2, 5), 4096) == (3, 5)
    assert texture_of_one_kind((63, 4096), 4096) == (63, 4096)


@pytest.mark.parametrize("kind", [BufferStorage, TextureStorage])
@pytest.mark.parametrize("elements", [4, 64, 2048, 64 * 64 * 32, 3 * 5 * 7])
def test_storage_of_one_kind_holds_what_it_says(
    kind: type[GLStorage], elements: int, gl_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = device_for(gl_context)
    monkeypatch.setattr(device, "_is_llvmpipe", True)
    with device.using():
        storage = kind(device, (elements,), DataType.FLOAT32)
        made = storage.memory
    if isinstance(made, moderngl.Buffer):
        assert made.size == buffer_of_one_kind(elements * 4 + -elements * 4 % 16)
    else:
        assert (made.width, made.height) == texture_of_one_kind(texture_size(elements, device.texture_shift), 4096)
    most = storage.max_capacity
    values = np.arange(most, dtype=np.float32)
    storage.upload(values)
    assert most >= elements and list(storage.download((most,), DataType.FLOAT32)) == list(values)
    storage.release()
