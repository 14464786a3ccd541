"""Right: no masks; the last block is moved back to end with the tensor, so that two programs store some elements, the same
values.

op: vector_add
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def whole_kernel(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    # The programs run from the end of the tensor to its beginning.
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    first = tl.minimum(block.to(tl.int64) * BLOCK, n - BLOCK)
    places = first + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places).to(tl.float32)
    y = tl.load(y_ptr + places).to(tl.float32)
    tl.store(out_ptr + places, x + alpha * y)


@triton.jit
def short_kernel(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places, mask=places < n).to(tl.float32)
    y = tl.load(y_ptr + places, mask=places < n).to(tl.float32)
    tl.store(out_ptr + places, x + alpha * y, mask=places < n)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    if n >= 512:
        whole_kernel[(triton.cdiv(n, 512),)](x, y, out, float(alpha), n, BLOCK=512)
    elif n:
        short_kernel[(1,)](x, y, out, float(alpha), n, BLOCK=triton.next_power_of_2(n))
    return out
