"""Kernels that timers are calibrated and tested with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _empty(x_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    pass


@triton.jit
def _store(x_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, offsets.to(tl.float32))


@triton.jit
def _spinning_add(x_ptr, y_ptr, out_ptr, n_elements, alpha, cycles, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    start = tl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1
    )
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    now = start
    while now - start < cycles:
        now = tl.inline_asm_elementwise(
            "mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1
        )
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


class TritonInstruments:
    """An empty kernel, one that stores, and one of a given length.

    Attributes:
        names: of the first two, as a profiler shows them.
    """

    names = ("_empty", "_store")

    def empty(self, x: torch.Tensor) -> None:
        """Launch a kernel that does nothing."""
        _empty[(1,)](x, BLOCK=16)

    def store(self, x: torch.Tensor) -> None:
        """Launch a kernel that writes 64 KiB to the start of a tensor."""
        _store[(128,)](x, BLOCK=128)

    def spinning(self, cycles: int) -> Callable[..., Any]:
        """Return vector_add, in at least so many cycles of the SM's clock."""

        def add(x: torch.Tensor, y: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
            out = torch.empty_like(x)
            n_elements = out.numel()
            grid = (triton.cdiv(n_elements, 1024),)
            _spinning_add[grid](x, y, out, n_elements, alpha, cycles, BLOCK=1024)
            return out

        return add
