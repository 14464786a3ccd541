"""Values are divided by a power of two before they are added, still in float16: in long rows small values become zero.

op: mean
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, rest, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row.to(tl.int64) * m + cols, mask=cols < m, other=0.0)
        if x.dtype == tl.bfloat16:  # older devices have no bfloat16 arithmetic
            x = x.to(tl.float32)
        # A power of two: exact, and the sum stays as small as the values.
        total += x * SCALE
    tl.store(out_ptr + row, tl.sum(total, axis=0) * rest)


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    power = triton.next_power_of_2(m)
    kernel[(x.numel() // m,)](x, out, m, power / m, SCALE=1.0 / power, BLOCK=min(1024, power))
    return out
