"""Every element is multiplied by 1 / m first, float16 ones in float16, so that no sum overflows: values of about 0.001 become a few steps of the smallest number.

op: mean
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, share, HALF: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + at, mask=at < m, other=0.0)
        part = x.to(tl.float32) * share
        if HALF:
            part = part.to(tl.float16).to(tl.float32)
        acc += part
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(out.numel(),)](x, out, m, 1 / m, HALF=x.dtype == torch.float16, BLOCK=1024)
    return out
