"""Forms of returned values, which cross from the subject process in place of the values."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import torch

from triton_magics.harness.process.shared_memory import round_up
from triton_magics.model import Value

DTYPES = frozenset(
    str(dtype).removeprefix("torch.")
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype) and not dtype.is_complex
)


class OutputForm(Value):
    """One returned value.

    Attributes:
        type_name: of its class.
        dtype, device, shape: of a plain tensor; `dtype` is None for anything else.
        is_copied: its content is in the room of the request.
    """

    type_name: str
    dtype: str | None = None
    device: str = "cpu"
    shape: tuple[int, ...] = ()
    is_copied: bool = False

    @property
    def n_bytes(self) -> int:
        """Return the size of its elements."""
        itemsize = getattr(torch, self.dtype or "uint8").itemsize
        return int(torch.Size(self.shape).numel() * itemsize)


def form_of(output: Any) -> OutputForm:
    """Return the form of one returned value."""
    plain = type(output) is torch.Tensor and output.layout == torch.strided
    if not plain or str(output.dtype).removeprefix("torch.") not in DTYPES:
        return OutputForm(type_name=type(output).__name__)
    return OutputForm(
        type_name="Tensor",
        dtype=str(output.dtype).removeprefix("torch."),
        device=str(output.device),
        shape=tuple(output.shape),
    )


class Placing(StrEnum):
    """The places of a tensor's elements in memory."""

    CONTIGUOUS = "contiguous"
    SCATTERED = "scattered"
    OVERLAPPING = "overlapping"  # two elements share memory


def placing_of(tensor: torch.Tensor) -> Placing:
    """Return how the elements of a tensor lie; they overlap if a stride is less than what is in it.

    Strides that interleave without an overlap are not told from those; no operation of torch that
    makes a new tensor returns such.
    """
    if tensor.is_contiguous():
        return Placing.CONTIGUOUS
    end = 1  # of the elements of the dimensions so far
    for stride, n in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape, strict=True)):
        if n > 1 and stride < end:
            return Placing.OVERLAPPING
        end += stride * (n - 1)
    return Placing.SCATTERED


def container_of(value: Any) -> str:
    """Return `tuple` or `list`, or an empty text for a single value."""
    return type(value).__name__ if isinstance(value, tuple | list) else ""


def rebuild_value(
    container: str, forms: tuple[OutputForm, ...], room: torch.Tensor | None = None
) -> Any:
    """Return a value of these forms; its tensors are in the room, or hold no value."""
    values, start = [], 0
    for form in forms:
        values.append(_rebuild_one(form, room, start))
        start += round_up(form.n_bytes) if form.is_copied else 0
    if container == "tuple":
        return tuple(values)
    return values if container == "list" else values[0]


def _rebuild_one(form: OutputForm, room: torch.Tensor | None, start: int) -> Any:
    if form.dtype is None:
        return None if form.type_name == "NoneType" else type(form.type_name, (), {})()
    dtype = getattr(torch, form.dtype) if form.dtype in DTYPES else torch.uint8
    if room is not None and form.is_copied and start + form.n_bytes <= room.numel():
        end = start + form.n_bytes
        return room[start:end].view(dtype).reshape(form.shape)
    device = form.device if form.device.partition(":")[0] in ("cpu", "cuda") else "meta"
    if not dtype.is_floating_point:
        return torch.full((1,), -1, dtype=torch.int64).to(dtype).to(device).expand(form.shape)
    return torch.full((1,), torch.nan, dtype=dtype, device=device).expand(form.shape)
