"""Arrays that go into textures, frame after frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf

RANDOM = np.random.default_rng(51)


@pytest.mark.parametrize(
    ("components", "kind", "dtype"),
    [(1, "f1", np.uint8), (3, "f1", np.uint8), (4, "f4", np.float32), (2, "f2", np.float16)],
)
def test_each_frame_is_the_newest(components: int, kind: str, dtype: Any, gl_context: Any) -> None:
    """Rows of odd lengths, and slices that lie apart in memory."""
    texture = gl_context.texture((17, 9), components, dtype=kind)
    with pf.TextureConverter(gl_context) as converter:
        for _ in range(5):
            whole = RANDOM.integers(0, 255, (9, 34, components)).astype(dtype)
            converter.upload(whole[::-1, ::2], texture)
            seen = np.frombuffer(texture.read(alignment=1), dtype).reshape(9, 17, components)
            np.testing.assert_array_equal(seen, whole[::-1, ::2])


def test_the_array_may_change_at_once(gl_context: Any) -> None:
    textures, picture = [gl_context.texture((64, 64), 4) for _ in range(6)], np.zeros((64, 64, 4), np.uint8)
    with pf.TextureConverter(gl_context) as converter:
        for k, texture in enumerate(textures):
            picture[:] = k
            converter.upload(picture, texture)
        picture[:] = 99
    for k, texture in enumerate(textures):
        assert set(texture.read()) == {k}


def test_mistakes(gl_context: Any) -> None:
    texture, picture = gl_context.texture((5, 4), 3), np.zeros((4, 5, 3), np.uint8)
    with pf.TextureConverter(gl_context) as converter:
        for wrong in (picture[:3], picture[..., :2], picture.astype(np.float32)):
            with pytest.raises(pf.InputError, match=r"takes arrays of uint8 \(4, 5, 3\), not "):
                converter.upload(wrong, texture)
        for given, target in (("a.png", texture), (picture, texture.glo), (picture, None)):
            with pytest.raises(pf.InputError):
                converter.upload(given, target)  # type: ignore[arg-type]
        with pytest.raises(pf.InputError, match="holds no picture"):
            converter.upload(picture, gl_context.texture((5, 4), 3, dtype="u1"))
        with pytest.raises(pf.InputError, match="a nu2 texture takes no uploads"):
            converter.upload(picture, gl_context.texture((5, 4), 3, dtype="nu2"))
        texture.release()
        with pytest.raises(pf.ClosedError):
            converter.upload(picture, texture)
    with pytest.raises(pf.InputError, match="no GL context"):
        pf.TextureConverter().upload(picture, texture)
