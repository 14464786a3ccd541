"""Only the first half is stored; the rest is what an earlier call left there.

op: vector_add
status: wrong_values
source: https://github.com/tensara/tensara/pull/238
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n_elements = out.numel()
    add_kernel[(triton.cdiv(n_elements, 2048),)](x, y, out, n_elements, alpha, BLOCK_SIZE=1024)
    return out
