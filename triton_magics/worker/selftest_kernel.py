"""An addition that lasts as long as it is told to: what the self-test times."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl


@triton.jit
def _spinning_add(  # type: ignore[no-untyped-def]  # noqa: PLR0917 (a kernel's)
    x_ptr,
    y_ptr,
    out_ptr,
    n_elements,
    alpha,
    cycles,
    BLOCK: tl.constexpr,  # noqa: N803
):
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


def spinning(cycles: int) -> Callable[..., torch.Tensor]:
    """vector_add, in at least so many cycles of the SM's clock."""

    def add(x: torch.Tensor, y: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
        out = torch.empty_like(x)
        n_elements = out.numel()
        grid = (triton.cdiv(n_elements, 1024),)
        _spinning_add[grid](x, y, out, n_elements, alpha, cycles, BLOCK=1024)
        return out

    return add
