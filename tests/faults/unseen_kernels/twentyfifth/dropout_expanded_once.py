"""An input expanded over the first dimension is computed once and expanded again, so that all its slices share a mask.

op: dropout
status: failed
cause: expanded
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def dropout_kernel(x_ptr, out_ptr, n_elements, seed, p, scale, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    keep = tl.rand(seed, offsets) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    # Embeddings of positions come expanded over the batch: no need to read and write each copy.
    copies = [d for d in range(x.dim()) if x.stride(d) == 0 and x.shape[d] > 1]
    distinct = x
    for d in copies:
        distinct = distinct.narrow(d, 0, 1)
    distinct = distinct.contiguous()
    out = torch.empty_like(distinct)
    n_elements = out.numel()
    if n_elements:
        dropout_kernel[(triton.cdiv(n_elements, 1024),)](
            distinct, out, n_elements, seed, float(p), 1.0 / (1.0 - p), BLOCK_SIZE=1024
        )
    return out.expand(x.shape).contiguous() if copies else out
