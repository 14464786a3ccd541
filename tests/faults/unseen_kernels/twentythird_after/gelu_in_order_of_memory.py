"""Right: a dense x in any order of dimensions is computed in its order of memory, and the result has x's strides, as torch's has; other layouts are copied first.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=mask)


def is_dense(x):
    """Return whether the elements fill one piece of memory from x's first one on, each its own place."""
    expected = 1
    for stride, size in sorted(zip(x.stride(), x.shape)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def triton_gelu(x):
    if not x.numel():
        return torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not is_dense(x):
        x = x.contiguous()
    out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
