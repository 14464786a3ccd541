"""Two dense tensors whose strides are the same numbers, if in another order, are added as they lie in memory.

op: vector_add
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def is_dense(x):
    """Return whether the elements fill a block of memory, in whatever order of the dimensions."""
    expected = 1
    for stride, size in sorted((s, n) for s, n in zip(x.stride(), x.shape) if n > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def triton_vector_add(x, y, alpha=1.0):
    if not (is_dense(x) and is_dense(y) and sorted(x.stride()) == sorted(y.stride())):
        x, y = x.contiguous(), y.contiguous()
    out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(out.numel(), 1024),)](x, y, out, out.numel(), alpha, BLOCK=1024)
    return out
