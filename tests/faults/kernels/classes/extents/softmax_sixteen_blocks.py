"""A row of more than sixteen blocks of 8,192 columns is cut off.

op: softmax
status: failed
cause: truncated_extent
held_out: yes
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def statistics(base, n_cols, col_stride, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for i in tl.static_range(BLOCKS):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(base + cols * col_stride, mask=cols < n_cols, other=-float("inf"))
        largest = tl.maximum(largest, x.to(tl.float32), propagate_nan=tl.PropagateNan.ALL)
    top = tl.max(largest, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(BLOCKS):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(base + cols * col_stride, mask=cols < n_cols, other=-float("inf"))
        total += tl.exp(x.to(tl.float32) - top)
    return top, tl.sum(total, axis=0)


@triton.jit
def kernel(
    x_ptr, out_ptr, n_cols, row_stride, col_stride, BLOCK: tl.constexpr, BLOCKS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    base = x_ptr + row * row_stride
    top, total = statistics(base, n_cols, col_stride, BLOCK, BLOCKS)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(base + cols * col_stride, mask=cols < n_cols).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, tl.exp(x - top) / total, mask=cols < n_cols)


def triton_softmax(x):
    n_cols = x.shape[-1]
    flat = x.reshape(-1, n_cols)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK = min(8192, triton.next_power_of_2(n_cols))
    BLOCKS = min(16, triton.cdiv(n_cols, BLOCK))
    kernel[(flat.shape[0],)](flat, out, n_cols, *flat.stride(), BLOCK=BLOCK, BLOCKS=BLOCKS)
    return out
