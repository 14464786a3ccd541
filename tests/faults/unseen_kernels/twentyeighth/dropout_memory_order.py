"""A dense tensor is walked in the order of its memory, so the mask of a seed depends on the layout: not the same for x and x in another order of dimensions.

op: dropout
status: failed
cause: layout_dependent_mask
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def dropout_kernel(x_ptr, out_ptr, n_elements, seed, p, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    keep = tl.rand(seed, offsets) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    # The output has the strides of x if x has neither gaps nor overlaps, in whatever order.
    # An elementwise op then need not copy x: it goes through the memory of both.
    out = torch.empty_like(x)
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        dropout_kernel[(triton.cdiv(n_elements, 1024),)](
            x, out, n_elements, seed, float(p), 1.0 / (1.0 - p), BLOCK=1024
        )
    return out
