"""Overlapping windows (unfold) share the sums of their steps; with every second column of a window and an odd step the step is rounded down.

op: sum
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(x_ptr, parts_ptr, n_parts, batch_stride, col_stride, shift, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Sums of `shift` columns each, one for every step."""
    batch = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.arange(0, WIDTH)
    mask = (part < n_parts)[:, None] & (cols < shift)[None, :]
    at = batch * batch_stride + (part[:, None].to(tl.int64) * shift + cols[None, :]) * col_stride
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(parts_ptr + batch * n_parts + part, tl.sum(x, axis=1), mask=part < n_parts)


@triton.jit
def windows_kernel(parts_ptr, out_ptr, n_parts, frames, steps, BLOCK: tl.constexpr):
    batch = tl.program_id(0).to(tl.int64)
    frame = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = frame < frames
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(steps):
        total += tl.load(parts_ptr + batch * n_parts + frame + i, mask=mask, other=0.0)
    tl.store(out_ptr + batch * frames + frame, total, mask=mask)


@triton.jit
def rows_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def triton_sum(x):
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if not x.numel():
        return out.zero_()
    if x.dim() == 3 and x.shape[1] > 1 and m > 1 and 0 < x.stride(2) <= x.stride(1) < m * x.stride(2):
        batch, frames, _ = x.shape
        shift = x.stride(1) // x.stride(2)  # columns between two windows
        if m % shift == 0:
            steps = m // shift
            n_parts = frames + steps - 1
            parts = torch.empty((batch, n_parts), dtype=torch.float32, device=x.device)
            WIDTH = triton.next_power_of_2(shift)
            BLOCK = max(1, 1024 // WIDTH)
            parts_kernel[(batch, triton.cdiv(n_parts, BLOCK))](
                x, parts, n_parts, x.stride(0), x.stride(2), shift, WIDTH=WIDTH, BLOCK=BLOCK
            )
            windows_kernel[(batch, triton.cdiv(frames, 256))](parts, out, n_parts, frames, steps, BLOCK=256)
            return out
    x = x.contiguous()
    rows_kernel[(out.numel(),)](x, out, m, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
