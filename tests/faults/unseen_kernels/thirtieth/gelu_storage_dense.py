"""A tensor counts as dense where its storage has as many elements: every second one, repeated twice, has too.

op: gelu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + at, y, mask=at < n)


def triton_gelu(x):
    # A permuted tensor without gaps needs no copy: the output gets the same order in memory.
    if x.untyped_storage().nbytes() != x.numel() * x.element_size():
        x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
