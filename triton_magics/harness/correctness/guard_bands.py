"""Put memory between guard bands, to detect reads and writes outside a tensor.

Every byte of a band, and of uninitialized memory that the wrapper requested, is 0xFF: NaN as a
float, -1 as an integer. A forgotten mask then reads NaN into the output or breaks a band. Memory
that ATen allocates inside one of its own operations is not covered.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from triton_magics.harness.correctness.torch_operations import (
    ALLOCATIONS,
    Operation,
    OperationMode,
    Site,
    computes,
    count_work,
    does_device_work,
    find_line,
    is_builtin,
    run_operation,
    takes_default_dtype,
)
from triton_magics.harness.layouts import span, without_repeats
from triton_magics.languages.kernel_runtime import BoundsCheck

POISON = 0xFF
MIN_BAND_BYTES = 64 * 2**10
MAX_BAND_BYTES = 4 * 2**20
MAX_GUARDED_BYTES = 2**31
GAP_ELEMENTS = 2**26
MAX_COPIED_BYTES = 2**20  # a copy of so many takes less time than the kernels that compare them
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_POISON_WORD = -1  # as an integer of any size: every bit is set


def _band_bytes(n_bytes: int) -> int:
    band = min(max(n_bytes, MIN_BAND_BYTES), MAX_BAND_BYTES)
    return -(-band // 512) * 512


@dataclass(frozen=True)
class GuardedMemory:
    """A tensor's memory and the bands on both sides of it; `buffer` is uint8.

    Attributes:
        band: bytes before the tensor's first element.
        n_bytes: bytes from there to the end of its last element.
        with_gaps: the tensor without repeats, if there is memory between its elements; else None.
    """

    label: str
    buffer: torch.Tensor
    band: int
    n_bytes: int
    itemsize: int = 1
    with_gaps: torch.Tensor | None = None

    @cached_property
    def start(self) -> int:
        """Return the address of the tensor's first byte."""
        return self.buffer.data_ptr() + self.band

    @cached_property
    def end(self) -> int:
        """Return the address behind the last byte of the second band."""
        return self.buffer.data_ptr() + self.buffer.numel()

    def bands_intact(self) -> torch.Tensor:
        """Return whether bands and gaps are unchanged, as a boolean tensor on the device."""
        last = self.band + self.n_bytes
        words = self.buffer.view(torch.int64)
        before, after = self.band // 8, -(-last // 8)
        intact = (words[:before] == _POISON_WORD).all() & (words[after:] == _POISON_WORD).all()
        for start, end in ((8 * before, self.band), (last, 8 * after)):
            if start < end:
                intact &= (self.buffer[start:end] == POISON).all()
        return intact if self.with_gaps is None else intact & (self._written_in_gaps() == 0)

    def _written_in_gaps(self) -> torch.Tensor:
        """Return how many elements between those of the tensor are no poison any more."""
        if self.with_gaps is None:
            return torch.zeros((), dtype=torch.int64, device=self.buffer.device)
        as_int = INTEGERS[self.itemsize]
        whole = self.buffer[self.band : self.band + self.n_bytes].view(as_int)
        own = (self.with_gaps.view(as_int) != _POISON_WORD).sum()
        # A sum of truth values makes eight bytes of each: of 2^31 elements, 16 GiB at once.
        parts = whole.split(GAP_ELEMENTS)
        return torch.stack([(part != _POISON_WORD).sum() for part in parts]).sum() - own

    def describe_damage(self) -> str:
        """Return a message: how many bytes outside the tensor were overwritten, and where."""
        before = int((self.buffer[: self.band] != POISON).sum())
        after = int((self.buffer[self.band + self.n_bytes :] != POISON).sum())
        between = int(self._written_in_gaps()) * self.itemsize
        sides = [(before, "before it"), (after, "after it"), (between, "between its rows")]
        counts = " and ".join(f"{n} bytes {side}" for n, side in sides if n)
        return f"{self.label}: {counts} were overwritten"


def to_compare(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor where it is compared: a small one of a GPU on the CPU."""
    return x.cpu() if is_small_on_gpu(x) else x


def is_small_on_gpu(x: torch.Tensor) -> bool:
    """Return whether a tensor is on a GPU, and sooner copied than compared there."""
    return x.is_cuda and x.nbytes <= MAX_COPIED_BYTES


Allocate = Callable[[int, torch.device], torch.Tensor]
"""Returns so many uninitialized bytes on a device."""


def allocate_bytes(n_bytes: int, device: torch.device) -> torch.Tensor:
    """Return uninitialized bytes of torch's own memory."""
    return torch.empty(n_bytes, dtype=torch.uint8, device=device)


def _view_as_its_user(
    buffer: torch.Tensor,
    offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype,
) -> torch.Tensor:
    """Return a tensor in this memory that is no view, or only one of its own transpose.

    A wrapper may ask for the tensor that another is a view of (`_base`), which is never the buffer.
    """
    order = sorted(range(len(size)), key=lambda dim: (stride[dim], size[dim]), reverse=True)
    sizes, strides = [size[dim] for dim in order], [stride[dim] for dim in order]
    is_dense = strides == list(torch.empty(sizes, device="meta").stride())
    if not is_dense or order == list(range(len(size))):
        sizes, strides, order = list(size), list(stride), list(range(len(size)))
    whole = torch.empty(0, dtype=dtype, device=buffer.device)
    whole.set_(buffer.untyped_storage(), offset, sizes, strides)
    is_turned = order != list(range(len(size)))
    return whole.permute(*(order.index(dim) for dim in range(len(size)))) if is_turned else whole


def lie_alike(x: torch.Tensor, buffer: torch.Tensor) -> torch.Tensor:
    """Return a tensor that lies in a buffer as another one, no view, does in its memory."""
    alike = torch.empty(0, dtype=x.dtype, device=buffer.device)
    alike.set_(buffer.untyped_storage(), x.storage_offset(), x.shape, x.stride())
    return alike


def allocate_guarded(
    size: tuple[int, ...],
    stride: tuple[int, ...],
    like: torch.Tensor,
    label: str,
    *,
    offset: int = 0,
    allocate: Allocate = allocate_bytes,
) -> tuple[torch.Tensor, GuardedMemory]:
    """Return an uninitialized tensor with the dtype and device of `like`, and its guard bands.

    The tensor begins `offset` elements after an address that is a multiple of 512.
    """
    itemsize, length = like.element_size(), span(size, stride)
    n_bytes = length * itemsize
    band = _band_bytes(n_bytes)
    first = band + offset * itemsize
    n_buffer = -(-(first + n_bytes) // 16) * 16 + band
    buffer = allocate(n_buffer, like.device).fill_(POISON)
    tensor = _view_as_its_user(buffer, first // itemsize, size, stride, like.dtype)
    own = without_repeats(tensor)
    gaps = own if own.numel() < length else None
    return tensor, GuardedMemory(label, buffer, first, n_bytes, itemsize, gaps)


class AllocationGuard(OperationMode):
    """Put every tensor with new storage that the wrapper makes between guard bands.

    Attributes:
        guarded: the guarded tensors.
        torch_ops: the ATen operations that gave the device something to do, in order.
        operations: those of them that computed, with their lines in the version's file.
        takes_default_dtype: whether a new tensor has torch's default dtype, as it was given none.
    """

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self.guarded: list[GuardedMemory] = []
        self.torch_ops: list[str] = []
        self.operations: list[Operation] = []
        self.takes_default_dtype = False
        self._path = path

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Execute one ATen operation of the wrapper."""
        kwargs = kwargs or {}
        storages = {_storage(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        result = run_operation(self, func, args, kwargs)
        if not is_builtin(func):
            return result
        name = func.overloadpacket.__name__
        self.takes_default_dtype |= takes_default_dtype(kwargs, args, result)
        fresh = tree_map(lambda t: self._guard(t, name, storages), result)
        if storages and does_device_work(func):
            self.torch_ops.append(name)
        if computes(func, args, result):
            site = Site(operation=name, line=find_line(self._path))
            work = count_work(func, args, kwargs, result)
            self.operations.append(Operation(site=site, work=work))
        return fresh

    def _guard(self, value: Any, name: str, storages: set[int]) -> Any:
        if type(value) is not torch.Tensor or value.numel() == 0 or value.is_meta:
            return value
        if _storage(value) in storages or value.untyped_storage().nbytes() > MAX_GUARDED_BYTES:
            return value
        if value.layout != torch.strided or value.dtype == torch.bool:
            return value
        shape = "x".join(map(str, value.shape))
        tensor, guarded = allocate_guarded(
            tuple(value.shape), value.stride(), value, f"a tensor [{shape}] that the wrapper made"
        )
        if name not in ALLOCATIONS:
            tensor.copy_(value)
        self.guarded.append(guarded)
        return tensor


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@contextlib.contextmanager
def guard_allocations(path: str = "") -> Iterator[AllocationGuard]:
    """Guard and poison new memory within this context.

    Args:
        path: the version's file, for the lines of its operations.
    """
    with AllocationGuard(path) as mode:
        yield mode


def count_poison(output: Any) -> int:
    """Return how many elements of an output have every bit set; 0 where it is no plain tensor."""
    if type(output) is not torch.Tensor or output.itemsize not in INTEGERS:
        return 0
    return int((output.contiguous().view(INTEGERS[output.itemsize]) == _POISON_WORD).sum())


def count_unwritten(output: Any, guards: Sequence[GuardedMemory], accesses: BoundsCheck) -> int:
    """Return how many elements of an output are poison that no kernel has stored over.

    Args:
        output: a tensor, or something else, which has none.
        guards: new memory of the call.
        accesses: of the kernels; without stores, or with one outside, none are counted.
    """
    if accesses.outside or not accesses.stored or not count_poison(output):
        return 0
    poison = output.view(INTEGERS[output.itemsize]) == _POISON_WORD
    at = output.data_ptr()
    guarded = next((g for g in guards if g.start <= at < g.end), None)
    if guarded is None or guarded.itemsize != output.itemsize:
        return 0
    whole = accesses.stored.get(guarded.start)
    if whole is None:
        return int(poison.sum())
    first = (at - guarded.start) // output.itemsize
    own = torch.from_numpy(whole).as_strided(output.shape, output.stride(), first)
    return int((poison & ~own).sum())


def find_damage(guards: list[GuardedMemory]) -> list[str]:
    """Return a message for each tensor whose guard bands were overwritten.

    Undamaged bands take one transfer per device; a wrapper on a GPU may make CPU tensors, too.
    """
    intact: dict[torch.device, list[torch.Tensor]] = {}
    for guarded in guards:
        has_gaps = guarded.with_gaps is not None
        own = guarded if has_gaps else replace(guarded, buffer=to_compare(guarded.buffer))
        intact.setdefault(own.buffer.device, []).append(own.bands_intact())
    if all(bool(torch.stack(of_device).all()) for of_device in intact.values()):
        return []
    return [g.describe_damage() for g in guards if not bool(g.bands_intact())]
