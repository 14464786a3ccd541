"""A tensor with as many elements as its storage is taken in the storage's order: right for permuted ones, wrong for a part that is broadcast to that number.

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
    tl.store(out_ptr + at, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=at < n)


def fills_its_storage(x):
    return x.untyped_storage().nbytes() == x.numel() * x.element_size()


def triton_gelu(x):
    if not fills_its_storage(x):  # permutations of a whole tensor need no copy
        x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
