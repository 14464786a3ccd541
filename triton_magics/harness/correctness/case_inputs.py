"""The inputs of a case: what an op's `make_inputs` returns, with the case's values and layouts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from triton_magics import exception_text, operators
from triton_magics.harness import layouts
from triton_magics.harness.correctness.case_values import (
    apply_values,
    find_parts,
    nan_in_parts,
    shape_of_whole,
    split_in_parts,
    view_inputs,
)
from triton_magics.harness.correctness.guard_bands import (
    INTEGERS,
    MAX_COPIED_BYTES,
    Allocate,
    GuardedMemory,
    allocate_bytes,
    allocate_guarded,
    lie_alike,
)
from triton_magics.harness.correctness.special_values import special_of
from triton_magics.harness.load import UserFault
from triton_magics.harness.process.device import CPU, META
from triton_magics.model import CONTIGUOUS, Case

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
FEW_ELEMENTS = 2**15  # of the largest input, and of the product of a shape's sizes


@dataclass(frozen=True)
class CaseInputs:
    """The inputs of a case: the version's arguments, their guard bands, and a pristine copy.

    Attributes:
        staged: the bytes of the guarded memory, where the pristine copy is on the CPU and the
            arguments are not; else None.
    """

    arguments: tuple[Any, ...]
    guards: tuple[GuardedMemory, ...]
    pristine: tuple[Any, ...]
    mutates: tuple[int, ...] = ()
    staged: tuple[torch.Tensor, ...] | None = None

    @property
    def unchanged(self) -> tuple[Any, ...]:
        """Return the inputs that the op does not declare in MUTATES."""
        return tuple(x for i, x in enumerate(self.arguments) if i not in self.mutates)

    @property
    def largest(self) -> int:
        """Return the number of elements of the largest input."""
        return max((x.numel() for x in self.pristine if isinstance(x, torch.Tensor)), default=0)

    @cached_property
    def beside_arguments(self) -> CaseInputs:
        """Return them with the pristine copy on the device of the arguments."""
        tensors = [x for x in self.arguments if isinstance(x, torch.Tensor)]
        if self.staged is None or not tensors:
            return self
        return replace(self, pristine=to_device(self.pristine, tensors[0].device), staged=None)

    def are_untouched(self) -> bool:
        """Return whether all their memory is as it was staged; False also where that is unknown."""
        if self.staged is None:
            return False
        memory = zip((guarded.buffer for guarded in self.guards), self.staged, strict=True)
        unguarded = [
            (x, own)
            for x, own in zip(self.arguments, self.pristine, strict=True)
            if isinstance(x, torch.Tensor) and x.dtype == torch.bool
        ]
        return all(torch.equal(x.cpu(), own) for x, own in (*memory, *unguarded))

    def reset(self) -> None:
        """Restore the inputs that the op changes."""
        for i in self.mutates:
            layouts.write(self.arguments[i], self.pristine[i])

    def find_changed_input(self) -> str | None:
        """Return a message on the first input that the version wrote to; NaN equals itself."""
        for i, (current, original) in enumerate(zip(self.arguments, self.pristine, strict=True)):
            if i in self.mutates or not isinstance(original, torch.Tensor):
                continue
            if not is_bitwise_equal(current, original):
                return f"input {i} was changed by the call"
        return None

    def apart(self, allocate: Allocate = allocate_bytes) -> CaseInputs:
        """Return the same values with the same strides, each input in memory of its own."""
        arguments, guards = list(self.arguments), []
        for i, x in enumerate(self.arguments):
            if isinstance(x, torch.Tensor) and x.numel() and x.dtype != torch.bool:
                shape, stride = tuple(x.shape), x.stride()
                tensor, guarded = allocate_guarded(
                    shape, stride, x, f"input {i}", allocate=allocate
                )
                layouts.write(tensor, self.pristine[i])
                arguments[i] = tensor
                guards.append(guarded)
        return CaseInputs(tuple(arguments), tuple(guards), self.pristine, self.mutates)


def is_bitwise_equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors are equal bit for bit (shape and dtype included)."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.dtype.is_floating_point:
        return bool(torch.equal(a, b))
    as_int = INTEGERS[a.element_size()]
    left, right = (x.detach().contiguous().view(as_int) for x in (a, b))
    if a.device != CPU or b.device != CPU or a.nbytes > MAX_COPIED_BYTES:
        return bool(torch.equal(left, right))
    return bool(left.numpy().tobytes() == right.numpy().tobytes())  # a quarter of the time


def to_device(values: Sequence[Any], device: torch.device) -> tuple[Any, ...]:
    """Return the values with tensors on a device; one that is there twice is one there, too."""
    moved = {id(x): x.to(device) for x in values if isinstance(x, torch.Tensor)}
    return tuple(moved.get(id(x), x) for x in values)


def has_few_elements(op: operators.Op, case: Case) -> bool:
    """Return whether a CPU draws and judges a case sooner than a GPU launches its kernels."""
    if math.prod(case.shape) > FEW_ELEMENTS:  # the outputs may be as large
        return False
    largest = operators.largest_known_input(op, case.shape)
    return largest is not None and largest <= FEW_ELEMENTS


def make_pristine(op: operators.Op, case: Case, device: torch.device) -> tuple[Any, ...]:
    """Return the op's contiguous inputs for a case, with the case's values.

    Few elements are drawn on the CPU, so they are the same numbers with and without a GPU.

    Raises:
        UserFault: the op's `make_inputs` raised, or its function for these values.
    """
    if device.type == "cuda" and has_few_elements(op, case):
        with suppress(UserFault):  # an op may know a GPU only
            return to_device(_draw(op, case, CPU), device)
    return _draw(op, case, device)


def _draw(op: operators.Op, case: Case, device: torch.device) -> tuple[Any, ...]:
    generator = torch.Generator(device=device)
    generator.manual_seed(case.seed)
    own = op.values.get(case.special)
    try:
        make = own or op.make_inputs
        inputs = make(case.shape, DTYPES[case.dtype], device, generator)
    except torch.OutOfMemoryError:
        raise
    except BaseException as error:  # exit() too: the code is the user's own
        function, message = "VALUES" if own else "make_inputs", exception_text.one_line(error)
        raise UserFault(f"{op.name}: {function} failed for {case.label}: {message}") from error
    changed = inputs if own else apply_values(inputs, case, generator)
    special = special_of(case.special)
    if special and special.of_parts:
        changed = nan_in_parts(changed, op.independent, generator)
    if not op.defined_for_minus_inf:
        changed = tuple(map(_without_minus_inf, changed))
    values = [x if i in op.structured else changed[i] for i, x in enumerate(inputs)]
    scalars = dict(case.scalars)
    return tuple(
        layouts.equal_where_shared(x, layout_of_input(op, case, i, name))
        if isinstance(x, torch.Tensor)
        else scalars.get(name, x)
        for i, (name, x) in enumerate(zip(op.input_names(len(values)), values, strict=True))
    )


def _without_minus_inf(x: Any) -> Any:
    """Return a tensor with infinity in place of minus infinity; anything else as it is."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point() or x.itemsize == 1:
        return x
    return x.masked_fill(x == -math.inf, math.inf)


def make_meta(op: operators.Op, case: Case) -> tuple[Any, ...]:
    """Return the inputs without memory; made on the CPU first if the op reads what it draws.

    Raises:
        Exception: `make_inputs` raised.
    """
    try:
        inputs = operators.inputs_without_memory(op, case.shape, case.dtype)
    except (RuntimeError, NotImplementedError):
        inputs = make_pristine(op, case, torch.device("cpu"))
    return tuple(x.to(META) if isinstance(x, torch.Tensor) else x for x in inputs)


def layout_of_input(op: operators.Op, case: Case, i: int, name: str) -> str:
    """Return the layout of an input; a structured one is never expanded, which repeats values."""
    layout = case.layout_of(name)
    return CONTIGUOUS if layouts.repeats_values(layout) and i in op.structured else layout


def make_inputs(
    op: operators.Op, case: Case, device: torch.device, *, allocate: Allocate = allocate_bytes
) -> CaseInputs:
    """Return the inputs of a case, each in its layout, between guard bands."""
    return place_inputs(op, case, make_pristine(op, case, device), allocate)


def count_placed(op: operators.Op, case: Case, pristine: tuple[Any, ...]) -> int:
    """Return the elements of memory, gaps included, that the inputs take in their layouts."""
    count = 0
    for i, (name, x) in enumerate(zip(op.input_names(len(pristine)), pristine, strict=True)):
        if isinstance(x, torch.Tensor) and x.numel():
            shape = tuple(x.shape)
            at = layouts.place(shape, layout_of_input(op, case, i, name))
            count += layouts.span(shape, at.stride) if at else x.numel()
    return count


def place_staged(
    op: operators.Op,
    case: Case,
    pristine: tuple[Any, ...],
    device: torch.device,
    allocate: Allocate,
) -> CaseInputs:
    """Place inputs of the CPU on a device: made there, and copied in one piece for each guard."""
    here = place_inputs(op, case, pristine, allocate_bytes)
    copies = _DeviceCopies(device)
    guards = tuple(copies.copy_guarded(guarded, allocate) for guarded in here.guards)
    arguments = tuple(copies.copy(x) if isinstance(x, torch.Tensor) else x for x in here.arguments)
    staged = tuple(guarded.buffer for guarded in here.guards)
    return CaseInputs(arguments, guards, pristine, op.mutates, staged)


class _DeviceCopies:
    """Tensors on a device that lie in memory as those of the CPU do."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffers: dict[int, torch.Tensor] = {}
        self._copied: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # with what it is of

    def copy_guarded(self, guarded: GuardedMemory, allocate: Allocate) -> GuardedMemory:
        """Return the memory with its bands on the device."""
        buffer = allocate(guarded.buffer.numel(), self._device)
        buffer.copy_(guarded.buffer)
        self._buffers[guarded.buffer.untyped_storage().data_ptr()] = buffer
        gaps = guarded.with_gaps
        own_gaps = None if gaps is None else self.copy(gaps)
        return replace(guarded, buffer=buffer, with_gaps=own_gaps)

    def copy(self, x: torch.Tensor) -> torch.Tensor:
        """Return the tensor on the device: in its guarded memory if it has some.

        One tensor is one there, and a view of it is a view of that.
        """
        if id(x) not in self._copied:
            self._copied[id(x)] = x, self._copy(x)
        return self._copied[id(x)][1]

    def _copy(self, x: torch.Tensor) -> torch.Tensor:
        buffer = self._buffers.get(x.untyped_storage().data_ptr())
        if buffer is None:
            return x.to(self._device, copy=True)
        if x._base is not None:
            return self.copy(x._base).as_strided(x.shape, x.stride(), x.storage_offset())
        return lie_alike(x, buffer)


def place_inputs(
    op: operators.Op, case: Case, pristine: tuple[Any, ...], allocate: Allocate
) -> CaseInputs:
    """Copy the contiguous inputs of a case into its layouts, between guard bands.

    Inputs that are one tensor in the case are one argument, or views of it.
    """
    arguments: list[Any] = []
    guards: list[GuardedMemory] = []
    names = op.input_names(len(pristine))
    for i, (name, x) in enumerate(zip(names, pristine, strict=True)):
        same = next((j for j in range(i) if pristine[j] is x), None)
        if not isinstance(x, torch.Tensor):
            arguments.append(x)
        elif same is not None:
            arguments.append(arguments[same])
        elif not x.numel() or x.dtype == torch.bool:
            arguments.append(x.clone())
        else:
            shape = tuple(x.shape)
            layout = layout_of_input(op, case, i, name)
            at = layouts.place(shape, layout) or layouts.place(shape, CONTIGUOUS)
            assert at
            tensor, guarded = allocate_guarded(
                shape, at.stride, x, f"input {i}", offset=at.offset, allocate=allocate
            )
            layouts.write(tensor, x)
            arguments.append(tensor)
            guards.append(guarded)
    special = special_of(case.special)
    own = tuple(arguments)
    if special and special.is_view:
        own = view_inputs(pristine, own, special)
    if special and special.splits and (parts := find_parts(pristine, special)):
        shape, like = shape_of_whole(pristine, parts, special), pristine[next(iter(parts))]
        at = layouts.place(shape, CONTIGUOUS)
        assert at
        whole, guarded = allocate_guarded(shape, at.stride, like, "the inputs", allocate=allocate)
        guards.append(guarded)
        views = split_in_parts(whole, pristine, parts, special)
        for i, view in views.items():
            layouts.write(view, pristine[i])
        own = tuple(views.get(i, x) for i, x in enumerate(own))
    return CaseInputs(own, tuple(guards), pristine, op.mutates)
