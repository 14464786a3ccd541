"""GPU memory that another process can map, through the CUDA driver's IPC functions.

PyTorch's own sharing keeps its counters in a file in /dev/shm, which a killed worker would leave
there, and its allocator may use memory that can't be exported.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch

HANDLE_BYTES = 64
_OUT_OF_MEMORY = 2
_LAZY_PEER_ACCESS = 1


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * HANDLE_BYTES)]


class IpcError(RuntimeError):
    """The driver refused; memory can't be shared between processes here."""


@functools.cache
def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _check(code: int, function: str) -> None:
    if code == _OUT_OF_MEMORY:
        raise torch.OutOfMemoryError(f"{function}: CUDA out of memory")
    if code:
        raise IpcError(f"{function} failed with CUDA error {code}")


class DeviceBlock:
    """A block of GPU memory, allocated here or mapped; freed or unmapped with this object."""

    def __init__(self, address: int, n_bytes: int, *, is_mapped: bool) -> None:
        self.n_bytes = n_bytes
        self._address = address
        self._is_mapped = is_mapped
        self.__cuda_array_interface__ = {
            "shape": (n_bytes,), "typestr": "|u1", "data": (address, False), "version": 2,
        }  # fmt: skip

    @classmethod
    def allocate(cls, n_bytes: int) -> DeviceBlock:
        """Allocate memory on the current device.

        Raises:
            torch.OutOfMemoryError: there is not so much.
        """
        torch.cuda.current_stream()  # creates the context
        address = ctypes.c_uint64()
        code = _driver().cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(n_bytes))
        if code == _OUT_OF_MEMORY:
            torch.cuda.empty_cache()
            code = _driver().cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(n_bytes))
        _check(code, "cuMemAlloc")
        return cls(address.value, n_bytes, is_mapped=False)

    @classmethod
    def map(cls, handle: bytes, n_bytes: int) -> DeviceBlock:
        """Map a block of another process.

        Raises:
            IpcError: the driver refused.
        """
        torch.cuda.current_stream()
        address, own = ctypes.c_uint64(), _Handle()
        ctypes.memmove(ctypes.byref(own), handle, HANDLE_BYTES)
        code = _driver().cuIpcOpenMemHandle_v2(ctypes.byref(address), own, _LAZY_PEER_ACCESS)
        _check(code, "cuIpcOpenMemHandle")
        return cls(address.value, n_bytes, is_mapped=True)

    def handle(self) -> bytes:
        """Return what another process needs to map the block.

        Raises:
            IpcError: the driver refused.
        """
        own = _Handle()
        _check(_driver().cuIpcGetMemHandle(ctypes.byref(own), ctypes.c_uint64(self._address)),
               "cuIpcGetMemHandle")  # fmt: skip
        return bytes(ctypes.string_at(ctypes.byref(own), HANDLE_BYTES))

    def storage(self) -> torch.UntypedStorage:
        """Return the block as a storage, which keeps this object alive."""
        return torch.as_tensor(self, device="cuda").untyped_storage()

    def __del__(self) -> None:
        """Free or unmap the memory; work that was queued on it is finished first."""
        release = "cuIpcCloseMemHandle" if self._is_mapped else "cuMemFree_v2"
        getattr(_driver(), release)(ctypes.c_uint64(self._address))


__all__ = ["DeviceBlock", "IpcError"]
