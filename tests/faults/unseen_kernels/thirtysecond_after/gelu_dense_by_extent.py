"""A tensor counts as dense when its longest extent is its number of elements: an expanded column of a matrix of that width does too.

op: gelu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places, mask=places < n).to(tl.float32)
    out = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + places, out, mask=places < n)


def triton_gelu(x):
    n = x.numel()
    if not n:
        return torch.empty_like(x)
    # Any order of the dimensions will do, as long as there are no gaps: walk the memory as it lies.
    if max((size * stride for size, stride in zip(x.shape, x.stride())), default=1) == n:
        out = torch.empty_strided(x.shape, sorted_strides(x), dtype=x.dtype, device=x.device)
    else:
        x = x.contiguous()
        out = torch.empty_like(x)
    BLOCK = 1024
    kernel[(triton.cdiv(n, BLOCK),)](x, out, n, BLOCK=BLOCK)
    return out


def sorted_strides(x):
    """Strides of a dense tensor whose dimensions lie in memory in the order of x's."""
    strides = [0] * x.dim()
    step = 1
    for i in sorted(range(x.dim()), key=lambda i: (x.stride(i), -i)):
        strides[i] = step
        step *= x.shape[i]
    return strides
