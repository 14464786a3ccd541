"""A row is not read on once its sum is infinite: an infinity of the other sign or a NaN after it is not mask.

op: sum
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, stride_r, stride_c, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_r
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    start = 0
    # Masked scores have many infinite rows: nothing that follows changes those.
    going = True
    while going:
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols.to(tl.int64) * stride_c, mask=cols < m, other=0.0)
        total += x.to(tl.float32)
        start += BLOCK
        going = (start < m) & (tl.max(tl.abs(total), axis=0) < float("inf"))
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def triton_sum(x):
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    rows = x.reshape(out.numel(), m)
    block = min(1024, triton.next_power_of_2(max(m, 1)))
    kernel[(out.numel(),)](rows, out, m, rows.stride(0), rows.stride(1), BLOCK=block)
    return out
