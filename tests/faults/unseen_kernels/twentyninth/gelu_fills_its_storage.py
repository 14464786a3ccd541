"""A view with as many elements as its storage is read in memory order: an expanded one need not hold each of them.

op: gelu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK_SIZE
    offsets = start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=mask)


def fills_its_storage(x):
    """Return whether x is all of its memory, in any order: transposed, permuted, channels last."""
    return x.storage_offset() == 0 and x.untyped_storage().nbytes() == x.numel() * x.element_size()


def triton_gelu(x):
    if not fills_its_storage(x):
        x = x.contiguous()
    # Element by element, the order is all one: no copy for a permuted x, whose strides out gets.
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        BLOCK_SIZE = 1024 if n_elements <= 2**18 else 4096
        gelu_kernel[(triton.cdiv(n_elements, BLOCK_SIZE),)](x, out, n_elements, BLOCK_SIZE=BLOCK_SIZE)
    return out
