"""x and y at the same address are taken for the same tensor; y may be another view from there, such as x.t() or the first row of x, expanded.

op: vector_add
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, SAME: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    if SAME:
        y = x
    else:
        y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    # A tensor added to itself is read once: two thirds of the traffic.
    same = x.data_ptr() == y.data_ptr()
    x = x.contiguous()
    y = x if same else y.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        add_kernel[(triton.cdiv(n_elements, 1024),)](
            x, y, out, n_elements, float(alpha), SAME=same, BLOCK=1024
        )
    return out
