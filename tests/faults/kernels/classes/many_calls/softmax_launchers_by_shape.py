"""Launchers are kept by the shape and the type; tensors are arguments of every call.

op: softmax
status: passed
drawn: no
round: second
"""

import functools

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    inside = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    out = e / tl.sum(e, axis=1, keep_dims=True)
    tl.store(out_ptr + rows * n_cols + cols, out, mask=inside)


@functools.cache
def launcher(shape, dtype):
    n_cols = shape[-1]
    n_rows = shape.numel() // n_cols
    BLOCK = triton.next_power_of_2(n_cols)
    ROWS = max(1, min(32, 2048 // BLOCK))
    grid = (triton.cdiv(n_rows, ROWS),)
    return functools.partial(kernel[grid], n_rows=n_rows, n_cols=n_cols, ROWS=ROWS, BLOCK=BLOCK)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    launcher(x.shape, x.dtype)(x, out)
    return out
