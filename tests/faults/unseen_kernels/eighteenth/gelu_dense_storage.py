"""A tensor with as many elements as its storage counts as dense and is computed in the order of memory: the first half of a batch expanded over the whole has as many, but is no permutation of it.

op: gelu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + at, y, mask=at < n)


def fills_its_storage(x):
    """Return whether x covers its whole storage, in some order of the dimensions."""
    return x.storage_offset() == 0 and x.untyped_storage().nbytes() == x.numel() * x.element_size()


def triton_gelu(x):
    if not fills_its_storage(x):
        x = x.contiguous()
    # The strides of a dense x are preserved: no copy for a transposed or a channels-last one.
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
