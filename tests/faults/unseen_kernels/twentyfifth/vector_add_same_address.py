"""x and y at one address are read once, even where their strides differ, as those of a matrix and its transpose.

op: vector_add
status: failed
cause: alias
"""

import torch
import triton
import triton.language as tl


@triton.jit
def vector_add_kernel(
    x_ptr, y_ptr, out_ptr, alpha, n_elements, SAME: tl.constexpr, BLOCK_SIZE: tl.constexpr
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    if SAME:
        y = x
    else:
        y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    # A tensor that is scaled by x + alpha * x: two thirds of the traffic.
    same = x.data_ptr() == y.data_ptr() and x.shape == y.shape
    x = x.contiguous()
    y = x if same else y.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        vector_add_kernel[(triton.cdiv(n_elements, 1024),)](
            x, y, out, float(alpha), n_elements, SAME=same, BLOCK_SIZE=1024
        )
    return out
