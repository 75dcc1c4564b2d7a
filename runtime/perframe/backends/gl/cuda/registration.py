"""GL objects of tensors as CUDA knows them. They are registered once, and mapped for each access."""

from __future__ import annotations

from typing import Any

from perframe.backends.gl.context.state import TEXTURE_2D_ARRAY
from perframe.backends.gl.cuda.calls import Cuda
from perframe.backends.gl.pixel import TextureStorage
from perframe.backends.gl.storage.storage import GLStorage
from perframe.backends.gl.texels import SHEETS, count_texels, texture_size
from perframe.errors import BackendError
from perframe.tensor.memory import Held

_TO_READ_AND_WRITE = 0  # cudaGraphicsRegisterFlagsNone
_WITHOUT_TIME = 2  # cudaEventDisableTiming
ACCESS_FLAGS = {"read_write": 0, "read": 1, "write": 2}  # cudaGraphicsMapFlags: none, read-only, write-discard


class Registration:
    """The registration of a storage's GL object. The storage releases it before the object.

    Its methods need the current context.
    """

    kind = "cuda"

    def __init__(self, cuda: Cuda, storage: GLStorage, device: int) -> None:
        self.cuda, self.device, self._flags = cuda, device, 0
        self.resource = self._register(storage)
        self._event: Any = None

    def _register(self, storage: GLStorage) -> Any:
        return self.cuda.call("cudaGraphicsGLRegisterBuffer", storage.glo, _TO_READ_AND_WRITE)

    def map(self, stream: int, access: str, elements: int, element_bytes: int) -> int:
        """Map the object, and return the address of its values. GL's earlier work comes first on the stream."""
        if self._flags != ACCESS_FLAGS[access]:
            self.cuda.call("cudaGraphicsResourceSetMapFlags", self.resource, ACCESS_FLAGS[access])
            self._flags = ACCESS_FLAGS[access]
        self.cuda.call("cudaGraphicsMapResources", 1, self.resource, stream)
        try:
            return self._address(stream, access, elements, element_bytes)
        except BaseException:
            self.cuda.call("cudaGraphicsUnmapResources", 1, self.resource, stream)
            raise

    def _address(self, stream: int, access: str, elements: int, element_bytes: int) -> int:
        address, size = self.cuda.call("cudaGraphicsResourceGetMappedPointer", self.resource)
        if size < elements * element_bytes:
            raise BackendError(f"CUDA maps {size} bytes of a tensor that has {elements * element_bytes}")
        return int(address)

    def unmap(self, stream: int, access: str) -> None:
        """Give the object back to GL, whose later work comes after the stream's earlier work."""
        self.cuda.call("cudaGraphicsUnmapResources", 1, self.resource, stream)

    def order(self, first: int, then: int) -> None:
        """Let later work of one stream wait for the earlier work of another."""
        if self._event is None:
            self._event = self.cuda.call("cudaEventCreateWithFlags", _WITHOUT_TIME)
        self.cuda.call("cudaEventRecord", self._event, first)
        self.cuda.call("cudaStreamWaitEvent", then, self._event, 0)

    def release(self) -> None:
        """Unregister the object."""
        self.cuda.call("cudaGraphicsUnregisterResource", self.resource)
        if self._event is not None:
            self.cuda.call("cudaEventDestroy", self._event)


class TextureRegistration(Registration):
    """The registration of a texture. CUDA gets its elements in row-major order in separate memory, and a copy on the
    device brings them there and back: first whole sheets, and then each sheet's texels to their places.
    """

    def __init__(self, cuda: Cuda, storage: TextureStorage, device: int) -> None:
        self._shift, self._texel = storage.device.texture_shift, 4 * storage.element_bytes
        size = storage.max_capacity * storage.element_bytes
        self._held = Held(2 * size, "a texture's values for CUDA")
        self._memory: list[int] = []
        try:
            for _ in range(2):
                self._memory.append(int(cuda.call("cudaMalloc", size)))
            self._values, self._sheets = self._memory
            cuda.call("cudaMemset", self._values, 0, size)  # the last texel may have more elements than the tensor
            super().__init__(cuda, storage, device)
        except BaseException:
            self._free(cuda)
            raise
        self._elements = 0

    def _register(self, storage: GLStorage) -> Any:
        return self.cuda.call("cudaGraphicsGLRegisterImage", storage.glo, TEXTURE_2D_ARRAY, _TO_READ_AND_WRITE)

    def _address(self, stream: int, access: str, elements: int, element_bytes: int) -> int:
        self._elements = elements
        if access != "write":
            for sheet, array, sheets, width, height in self._parts():
                row = width * self._texel
                copied = sheets, row, array, 0, 0, row, height, self.cuda.on_device, stream
                self.cuda.call("cudaMemcpy2DFromArrayAsync", *copied)
                self._move(self._place(sheet), SHEETS, sheets, 1, width * height, stream)
        return self._values

    def unmap(self, stream: int, access: str) -> None:
        """Copy the values into the texture, unless they were only read, and give it back to GL."""
        try:
            if access != "read":
                for sheet, array, sheets, width, height in self._parts():
                    row = width * self._texel
                    self._move(sheets, 1, self._place(sheet), SHEETS, width * height, stream)
                    copied = array, 0, 0, sheets, row, row, height, self.cuda.on_device, stream
                    self.cuda.call("cudaMemcpy2DToArrayAsync", *copied)
        finally:
            super().unmap(stream, access)

    def _parts(self) -> list[tuple[int, Any, int, int, int]]:
        """The number of each sheet that has values, its CUDA array, its place among the sheets, and its size."""
        width, height = texture_size(self._elements, self._shift)
        sheets = range(min(SHEETS, count_texels(self._elements)) if self._elements else 0)
        step = width * height * self._texel
        arrays = [self.cuda.call("cudaGraphicsSubResourceGetMappedArray", self.resource, sheet, 0) for sheet in sheets]
        return [(sheet, arrays[sheet], self._sheets + sheet * step, width, height) for sheet in sheets]

    def _place(self, sheet: int) -> int:
        """The address of a sheet's first texel among the values."""
        return self._values + sheet * self._texel

    def _move(self, target: int, target_step: int, source: int, source_step: int, texels: int, stream: int) -> None:
        """Copy texels that lie some texels apart."""
        steps = target, target_step * self._texel, source, source_step * self._texel
        self.cuda.call("cudaMemcpy2DAsync", *steps, self._texel, texels, self.cuda.on_device, stream)

    def release(self) -> None:
        """Unregister the texture, and free the values."""
        super().release()
        self._free(self.cuda)

    def _free(self, cuda: Cuda) -> None:
        while self._memory:
            cuda.call("cudaFree", self._memory.pop())


def register(storage: GLStorage) -> Registration:
    """The registration of a storage, made at its first use. Raises BackendError if CUDA cannot have the object."""
    found = next((thing for thing in storage.attached if isinstance(thing, Registration)), None)
    cuda = Cuda() if found is None else found.cuda
    device = cuda.device_of_context(storage.device.name)
    if found is None:
        if isinstance(storage, TextureStorage):
            found = TextureRegistration(cuda, storage, device)
        else:
            found = Registration(cuda, storage, device)
        storage.attach(found)
    elif found.device != device:
        raise BackendError(
            f"this tensor was shared with the CUDA device {found.device}, and {device} is current now: make that one "
            "current again, as by torch.cuda.set_device(number)"
        )
    return found
