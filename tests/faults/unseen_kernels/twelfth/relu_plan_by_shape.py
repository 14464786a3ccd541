"""The first call with a shape decides that the tensor may be read as one flat array: a transposed one of the same shape comes out transposed.

op: relu
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_plans = {}


@triton.jit
def flat(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.where(x < 0, 0.0, x), mask=at < n)


@triton.jit
def rowwise(x_ptr, out_ptr, xr, xc, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * xr + cols * xc, mask=cols < n_cols)
    tl.store(out_ptr + row * n_cols + cols, tl.where(x < 0, 0.0, x), mask=cols < n_cols)


def plan_of(x):
    key = (x.shape, x.dtype, x.device)
    if key not in _plans:
        n_cols = x.shape[-1] if x.dim() else 1
        if x.is_contiguous():
            block = 1024 if x.numel() > 1024 else triton.next_power_of_2(max(x.numel(), 1))
            _plans[key] = (True, (triton.cdiv(x.numel(), block),), block)
        else:
            _plans[key] = (False, (x.numel() // n_cols,), triton.next_power_of_2(n_cols))
    return _plans[key]


def triton_relu(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    is_flat, grid, block = plan_of(x)
    if is_flat:
        flat[grid](x, out, x.numel(), BLOCK=block)
    else:
        rows = x.reshape(-1, x.shape[-1])
        rowwise[grid](rows, out, rows.stride(0), rows.stride(1), x.shape[-1], BLOCK=block)
    return out
