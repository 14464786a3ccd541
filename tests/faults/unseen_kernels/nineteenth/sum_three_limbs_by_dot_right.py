"""Rows are added by products with ones, each value as the exact sum of three numbers of eight bits and the range of float32.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, rows, m, BM: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    ones = tl.full((BK, 16), 1.0, dtype=tl.float32)
    acc = tl.zeros((BM, 16), dtype=tl.float32)
    for start in range(0, m, BK):
        at = start + tl.arange(0, BK)
        mask = (row < rows)[:, None] & (at < m)[None, :]
        x = tl.load(x_ptr + row[:, None] * m + at[None, :], mask=mask, other=0.0).to(tl.float32)
        finite = tl.abs(x) < float("inf")
        # cut, not rounded: the first part of the largest float32 stays finite
        high = (x.to(tl.int32, bitcast=True) & -65536).to(tl.float32, bitcast=True)
        high = tl.where(finite, high, x)
        rest = tl.where(finite, x - high, 0.0)
        middle = (rest.to(tl.int32, bitcast=True) & -65536).to(tl.float32, bitcast=True)
        low = rest - middle
        # eight bits each: TF32 holds them exactly
        acc += tl.dot(low, ones, input_precision="tf32") + tl.dot(middle, ones, input_precision="tf32")
        acc += tl.dot(high, ones, input_precision="tf32")
    # all 16 columns are the same: one of them
    total = tl.sum(tl.where(tl.arange(0, 16)[None, :] == 0, acc, 0.0), axis=1)
    tl.store(out_ptr + row, total, mask=row < rows)


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(rows, 16),)](x, out, rows, m, BM=16, BK=128)
    return out
