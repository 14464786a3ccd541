"""Long rows find their maximum by an integer atomic on the float's bits; wrong for rows without a positive number.

op: softmax
status: failed
cause: value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def short(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    p = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, p / tl.sum(p, axis=0), mask=mask)


@triton.jit
def largest(x_ptr, keys_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    tl.atomic_max(keys_ptr + row, tl.max(x, axis=0).to(tl.int32, bitcast=True))


@triton.jit
def total(x_ptr, keys_ptr, totals_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    top = tl.load(keys_ptr + row).to(tl.float32, bitcast=True)
    tl.atomic_add(totals_ptr + row, tl.sum(tl.exp(x - top), axis=0))


@triton.jit
def write(x_ptr, keys_ptr, totals_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    top = tl.load(keys_ptr + row).to(tl.float32, bitcast=True)
    p = tl.exp(x - top) / tl.load(totals_ptr + row)
    tl.store(out_ptr + row * n_cols + cols, p, mask=mask)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    if n_cols <= 512:
        short[(n_rows,)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
        return out
    keys = torch.full((n_rows,), -float("inf"), device=x.device).view(torch.int32)
    totals = torch.zeros(n_rows, dtype=torch.float32, device=x.device)
    grid = (n_rows, triton.cdiv(n_cols, 512))
    largest[grid](x, keys, n_cols, BLOCK=512)
    total[grid](x, keys, totals, n_cols, BLOCK=512)
    write[grid](x, keys, totals, out, n_cols, BLOCK=512)
    return out
