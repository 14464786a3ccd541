"""Memory that the judge and the subject process share, and pickles whose tensors lie in it.

The judge allocates all of it and frees it; the subject process only maps it. On the CPU it is one
mapping that both inherit from the fork, on a GPU blocks that are exported through CUDA IPC.
"""

from __future__ import annotations

import io
import mmap
import pickle
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from triton_magics.harness.process.cuda_ipc import DeviceBlock

ALIGNMENT = 512
FREE_ABOVE_BYTES = 2**26  # used pages that a reset gives back to the system
BLOCK_BYTES = 2**26  # smallest block of GPU memory
LASTING_BLOCK_BYTES = 2**30  # a larger one is freed with its case


class Place(NamedTuple):
    """A tensor in shared memory.

    Attributes:
        block: number of the block; 0 is the CPU's.
        start, n_bytes: of its storage in the block.
        dtype: its name, such as `float32`.
        base: of the tensor that this one is a view of, which a wrapper may ask for.
    """

    block: int
    start: int
    n_bytes: int
    dtype: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    base: Any = None  # a Place, or its fields as they are pickled


def view_of(block: torch.UntypedStorage, place: Place) -> torch.Tensor:
    """Return the tensor at a place of a block, with a storage of its own."""
    storage = block[place.start : place.start + place.n_bytes]
    empty = torch.empty(0, dtype=getattr(torch, place.dtype), device=block.device)
    return empty.set_(storage, place.offset, place.size, place.stride)


def _is_view_of(tensor: torch.Tensor, whole: torch.Tensor | None) -> bool:
    """Return whether it is a view of such a tensor, not of the bytes that were allocated."""
    return (
        whole is not None
        and whole.dtype == tensor.dtype
        and whole.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
    )


def round_up(n_bytes: int) -> int:
    """Return the size of an allocation."""
    return -(-max(n_bytes, 1) // ALIGNMENT) * ALIGNMENT


@dataclass
class Block:
    """A block of shared memory, allocated from its start.

    Attributes:
        number: its name in the subject process.
        handle: what the subject process needs to map it; None for the CPU's.
    """

    number: int
    storage: torch.UntypedStorage
    handle: tuple[bytes, int] | None = None
    used: int = 0

    @property
    def address(self) -> int:
        """Return the address of its first byte, in the judge."""
        return self.storage.data_ptr()

    def allocate(self, n_bytes: int) -> torch.Tensor | None:
        """Return bytes of it; None if it has no room."""
        size = round_up(n_bytes)
        if self.used + size > self.storage.nbytes():
            return None
        start, self.used = self.used, self.used + size
        return view_of(
            self.storage, Place(self.number, start, n_bytes, "uint8", (n_bytes,), (1,), 0)
        )


def _storage(mapped: mmap.mmap) -> torch.UntypedStorage:
    return torch.frombuffer(mapped, dtype=torch.uint8).untyped_storage()


class SharedMemory:
    """The judge's side: allocates tensors, all of which are freed by the next `reset`."""

    def __init__(self, cpu: mmap.mmap) -> None:
        self._mapped = cpu
        self._cpu = Block(0, _storage(cpu))
        self._gpu: list[Block] = []
        self._count = 0
        self.epoch = 0

    def allocate(self, n_bytes: int, device: torch.device) -> torch.Tensor:
        """Return uninitialized bytes.

        Raises:
            torch.OutOfMemoryError: there are not so many.
        """
        if device.type == "cpu":
            if (memory := self._cpu.allocate(n_bytes)) is None:
                raise torch.OutOfMemoryError(f"can't allocate memory: {n_bytes} bytes to share")
            return memory
        for block in self._gpu:
            if (memory := block.allocate(n_bytes)) is not None:
                return memory
        self._gpu.append(self._new_gpu_block(max(round_up(n_bytes), BLOCK_BYTES)))
        memory = self._gpu[-1].allocate(n_bytes)
        assert memory is not None
        return memory

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy of a tensor in shared memory, with its strides."""
        span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
        n_bytes = span * tensor.element_size() if tensor.numel() else 0
        memory = self.allocate(max(n_bytes, 1), tensor.device).untyped_storage()
        own = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        own.set_(memory, 0, tensor.shape, tensor.stride())
        return own.copy_(tensor)

    def place(self, tensor: torch.Tensor) -> Place | None:
        """Return where a tensor lies; None if it is not in shared memory."""
        storage = tensor.untyped_storage()
        address, n_bytes = storage.data_ptr(), storage.nbytes()
        for block in (self._cpu, *self._gpu):
            start = address - block.address
            if 0 <= start < block.storage.nbytes() and storage.device == block.storage.device:
                dtype = str(tensor.dtype).removeprefix("torch.")
                size, stride = tuple(tensor.shape), tensor.stride()
                offset, whole = tensor.storage_offset(), tensor._base
                base = self.place(whole) if _is_view_of(tensor, whole) else None
                return Place(block.number, start, n_bytes, dtype, size, stride, offset, base)
        return None

    def handles(self) -> dict[int, tuple[bytes, int]]:
        """Return the handles of the GPU blocks, by number."""
        return {block.number: block.handle for block in self._gpu if block.handle}

    def reset(self) -> None:
        """Free everything; tensors that were allocated before must not be used any more."""
        self.epoch += 1
        if self._cpu.used > FREE_ABOVE_BYTES:
            page_end = -(-self._cpu.used // mmap.PAGESIZE) * mmap.PAGESIZE
            self._mapped.madvise(mmap.MADV_REMOVE, 0, page_end)
        self._cpu.used = 0
        if len(self._gpu) > 1:  # one block for all of them, from now on
            size = sum(block.storage.nbytes() for block in self._gpu)
            self._gpu.clear()
            if size <= LASTING_BLOCK_BYTES:
                self._gpu.append(self._new_gpu_block(size))
        elif self._gpu and self._gpu[0].storage.nbytes() > LASTING_BLOCK_BYTES:
            self._gpu.clear()
        for block in self._gpu:
            block.used = 0

    def _new_gpu_block(self, n_bytes: int) -> Block:
        memory = DeviceBlock.allocate(n_bytes)
        self._count += 1
        return Block(self._count, memory.storage(), (memory.handle(), n_bytes))


class MappedMemory:
    """The subject process's side: maps blocks, and makes each tensor once in an epoch."""

    def __init__(self, cpu: mmap.mmap) -> None:
        self._cpu = _storage(cpu)
        self._gpu: dict[int, torch.UntypedStorage] = {}
        self._tensors: dict[Place, torch.Tensor] = {}
        self._epoch = 0

    def update(self, epoch: int, handles: dict[int, tuple[bytes, int]]) -> None:
        """Map new blocks, and forget those that the judge has freed."""
        if epoch != self._epoch:
            self._tensors.clear()
            self._epoch = epoch
        for number in [number for number in self._gpu if number not in handles]:
            del self._gpu[number]
        for number, handle in handles.items():
            if number not in self._gpu:
                self._gpu[number] = DeviceBlock.map(*handle).storage()

    def tensor(self, place: Place) -> torch.Tensor:
        """Return the tensor at a place: the same object for the same place."""
        if place in self._tensors:
            return self._tensors[place]
        if place.base:
            whole = self.tensor(Place(*place.base))
            own = whole.as_strided(place.size, place.stride, place.offset)
        else:
            own = view_of(self._gpu[place.block] if place.block else self._cpu, place)
        self._tensors[place] = own
        return own


class _Pickler(pickle.Pickler):
    """Pickles tensors as places in shared memory."""

    def __init__(self, file: io.BytesIO, memory: SharedMemory) -> None:
        super().__init__(file, protocol=5)
        self._memory = memory
        self.staged: list[tuple[torch.Tensor, torch.Tensor]] = []

    def persistent_id(self, obj: Any) -> Any:
        """Return the place of a tensor; copy it into shared memory if it isn't there."""
        if not isinstance(obj, torch.Tensor):
            return None
        place = self._memory.place(obj)
        if place is None:
            copied = self._memory.copy(obj.detach())
            self.staged.append((obj, copied))
            place = self._memory.place(copied)
        return tuple(place) if place else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, memory: MappedMemory) -> None:
        super().__init__(file)
        self._memory = memory

    def persistent_load(self, pid: Any) -> torch.Tensor:
        """Return the tensor at a place."""
        return self._memory.tensor(Place(*pid))


def dump(value: Any, memory: SharedMemory) -> tuple[bytes, list[tuple[torch.Tensor, torch.Tensor]]]:
    """Pickle a value for the subject process.

    Returns:
        the bytes, and the tensors that were copied into shared memory, each with its copy.
    """
    file = io.BytesIO()
    pickler = _Pickler(file, memory)
    pickler.dump(value)
    return file.getvalue(), pickler.staged


def load(body: bytes, memory: MappedMemory) -> Any:
    """Unpickle what the judge has sent; the judge itself never unpickles."""
    return _Unpickler(io.BytesIO(body), memory).load()


__all__ = ["MappedMemory", "Place", "SharedMemory", "dump", "load", "round_up"]
