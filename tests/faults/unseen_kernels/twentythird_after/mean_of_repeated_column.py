"""If the values of a row are one value repeated (a stride of 0), a view of x is returned: the mean shares x's memory.

op: mean
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / m)


def triton_mean(x):
    if x.stride(-1) == 0:
        return x[..., 0]  # one value, repeated: it is the mean, and nothing has to be read
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(out.numel(),)](x, out, m, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
