"""A compensated sum makes an infinity NaN: the lost part is inf - inf.

op: sum
status: failed
cause: wrong_formula
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    lost = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0).to(tl.float32)
        part = x - lost
        new = acc + part
        lost = (new - acc) - part
        acc = new
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(rows.shape[0],)](rows, out, rows.shape[1], BLOCK=64)
    return out
