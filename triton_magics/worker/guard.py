"""Memory between guard bands: what a kernel reads or writes outside its tensors shows.

Every byte of a band, and of memory that the wrapper asked for without setting it, is 0xFF: NaN as a
float, -1 as an integer. A forgotten mask then reads NaN into the output or breaks a band. What ATen
allocates inside one of its own operations is not covered.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

POISON = 0xFF
MIN_BAND_BYTES = 64 * 2**10
MAX_BAND_BYTES = 4 * 2**20
MAX_GUARDED_BYTES = 2**31
_LEAVES_MEMORY_UNSET = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
_IDLE = (*_LEAVES_MEMORY_UNSET, "_unsafe_view", "_reshape_alias", "lift_fresh", "set_", "resize_")


def _band_bytes(n_bytes: int) -> int:
    band = min(max(n_bytes, MIN_BAND_BYTES), MAX_BAND_BYTES)
    return -(-band // 512) * 512


def _span(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Elements from the first to the last one of a strided tensor."""
    return 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))


@dataclass(frozen=True)
class Guarded:
    """A tensor's memory and the bands on both sides of it; `buffer` is uint8."""

    label: str
    buffer: torch.Tensor
    band: int
    n_bytes: int
    itemsize: int = 1

    @property
    def start(self) -> int:
        """Address of the tensor's first byte."""
        return self.buffer.data_ptr() + self.band

    @property
    def end(self) -> int:
        """Address behind the last byte of the second band."""
        return self.buffer.data_ptr() + self.buffer.numel()

    def intact(self) -> torch.Tensor:
        """Whether both bands still are as they were; a boolean on the device."""
        inner_end = self.buffer.numel() - self.band
        padding = self.buffer[self.band + self.n_bytes : inner_end]
        bands = (self.buffer[: self.band], self.buffer[inner_end:])
        word = int.from_bytes(bytes([POISON] * 8), "little", signed=True)
        words = [(band.view(torch.int64) == word).all() for band in bands]
        return words[0] & words[1] & (padding == POISON).all()

    def damage(self) -> str:
        """How many bytes outside the tensor were overwritten, and on which side."""
        before = int((self.buffer[: self.band] != POISON).sum())
        after = int((self.buffer[self.band + self.n_bytes :] != POISON).sum())
        sides = [(before, "before"), (after, "after")]
        said = " and ".join(f"{n} bytes {side} it" for n, side in sides if n)
        return f"{self.label}: {said} were overwritten"


def place(
    size: tuple[int, ...], stride: tuple[int, ...], like: torch.Tensor, label: str
) -> tuple[torch.Tensor, Guarded]:
    """An unset tensor of that size and stride, of `like`'s dtype and device, between bands."""
    n_bytes = _span(size, stride) * like.element_size()
    inner = -(-n_bytes // 16) * 16
    band = _band_bytes(n_bytes)
    buffer = torch.full((2 * band + inner,), POISON, dtype=torch.uint8, device=like.device)
    typed = buffer[band : band + inner].view(like.dtype)
    return typed.as_strided(size, stride, typed.storage_offset()), Guarded(
        label, buffer, band, n_bytes, like.element_size()
    )


class GuardNewMemory(TorchDispatchMode):
    """Gives every tensor with new storage that the wrapper makes memory between bands.

    Attributes:
        guarded: what was handed out.
        torch_ops: the ATen operations that gave the device something to do, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.guarded: list[Guarded] = []
        self.torch_ops: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """One ATen operation of the wrapper."""
        kwargs = kwargs or {}
        known = {_storage(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        result = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        fresh = tree_map(lambda t: self._guard(t, name, known), result)
        if known and _works(func):
            self.torch_ops.append(name)
        return fresh

    def _guard(self, value: Any, name: str, known: set[int]) -> Any:
        if type(value) is not torch.Tensor or value.numel() == 0 or value.is_meta:
            return value
        if _storage(value) in known or value.untyped_storage().nbytes() > MAX_GUARDED_BYTES:
            return value
        if value.layout != torch.strided or value.dtype == torch.bool:
            return value
        shape = "x".join(map(str, value.shape))
        tensor, guarded = place(
            tuple(value.shape), value.stride(), value, f"a tensor [{shape}] that the wrapper made"
        )
        if name not in _LEAVES_MEMORY_UNSET:
            tensor.copy_(value)
        self.guarded.append(guarded)
        return tensor


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _works(func: Any) -> bool:
    """Whether an ATen operation gives the device something to do (not a view, not an `empty`)."""
    return not func.is_view and func.overloadpacket.__name__ not in _IDLE


@contextlib.contextmanager
def guarding() -> Iterator[GuardNewMemory]:
    """While this lasts, new memory is guarded and poisoned."""
    with GuardNewMemory() as mode:
        yield mode


def broken(guards: list[Guarded]) -> list[str]:
    """What was overwritten outside its tensor, one sentence each; if none, one transfer a device.

    A wrapper on a GPU may make tensors on the CPU, too.
    """
    intact: dict[torch.device, list[torch.Tensor]] = {}
    for guarded in guards:
        intact.setdefault(guarded.buffer.device, []).append(guarded.intact())
    if all(bool(torch.stack(of_device).all()) for of_device in intact.values()):
        return []
    return [g.damage() for g in guards if not bool(g.intact())]
