"""alpha is handed over as a tensor of x's dtype: past 65,504 it is infinite in float16.

op: vector_add
status: failed
cause: parameter
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, alpha_ptr, out_ptr, n, BLOCK: tl.constexpr, UNROLL: tl.constexpr):
    alpha = tl.load(alpha_ptr).to(tl.float32)
    base = tl.program_id(0).to(tl.int64) * BLOCK * UNROLL
    for i in tl.static_range(UNROLL):
        places = base + i * BLOCK + tl.arange(0, BLOCK)
        mask = places < n
        x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + places, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + places, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    # a pointer, so that another alpha never compiles the kernel again
    factor = torch.tensor([float(alpha)], device=x.device).to(x.dtype)
    add_kernel[(triton.cdiv(n, 4096),)](x, y, factor, out, n, BLOCK=1024, UNROLL=4)
    return out
