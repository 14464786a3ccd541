"""A tensor that has as many elements as its storage is taken for dense; one row of a table expanded to the table's shape is not.

op: relu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside, other=0.0)
    tl.store(out_ptr + offs, tl.where(x < 0, 0.0, x), mask=inside)


def _fills_its_storage(x):
    return x.storage_offset() == 0 and x.untyped_storage().nbytes() == x.numel() * x.element_size()


def triton_relu(x):
    n = x.numel()
    if x.is_contiguous() or not _fills_its_storage(x):
        x = x.contiguous()
        out = torch.empty_like(x)
    else:  # transposed and permuted tensors: the order of storage does for both sides
        out = torch.empty_like(x, memory_format=torch.preserve_format)
    kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
