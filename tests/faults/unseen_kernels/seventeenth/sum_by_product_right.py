"""The tile of rows is multiplied by a matrix of ones on the tensor cores, in float32 without TF32, and one column of the product is taken.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, rows, cols, BM: tl.constexpr, BK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    ones = tl.full((BK, 16), 1.0, dtype=tl.float32)
    acc = tl.zeros((BM, 16), dtype=tl.float32)
    for start in range(0, cols, BK):
        cs = start + tl.arange(0, BK)
        mask = (at < rows)[:, None] & (cs < cols)[None, :]
        x = tl.load(x_ptr + at[:, None] * cols + cs[None, :], mask=mask, other=0.0).to(tl.float32)
        acc += tl.dot(x, ones, input_precision="ieee")
    first = (tl.arange(0, 16) == 0)[None, :]
    tl.store(out_ptr + at, tl.sum(tl.where(first, acc, 0.0), axis=1), mask=at < rows)


def triton_sum(x):
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    rows = out.numel()
    kernel[(triton.cdiv(rows, 16),)](x, out, rows, x.shape[-1], BM=16, BK=64)
    return out
