"""The partial sums of long rows lie in torch's default dtype: after torch.set_default_dtype(torch.bfloat16) they are rounded to it.

op: sum
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, length, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    end = tl.minimum((part + 1) * length, m)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(part * length, end, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < end, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * tl.num_programs(1) + part, tl.sum(total, axis=0))


def triton_sum(x):
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n, m = out.numel(), x.shape[-1]
    if not n:
        return out
    # Few long rows: several programs for each, and their sums are added by the same kernel.
    parts = min(64, triton.cdiv(m, 2048)) if n < 256 else 1
    if parts == 1:
        kernel[(n, 1)](x, out, m, m, BLOCK=1024)
    else:
        length = triton.cdiv(triton.cdiv(m, parts), 1024) * 1024
        parts = triton.cdiv(m, length)
        sums = torch.empty((n, parts), device=x.device)
        kernel[(n, parts)](x, sums, m, length, BLOCK=1024)
        kernel[(n, 1)](sums, out, parts, parts, BLOCK=64)
    return out
