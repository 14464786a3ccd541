"""A registered implementation computes row by row in NumPy; Triton copies.

op: softmax
status: not_triton
"""

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def copy(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), BLOCK=4096)
    return out


library = torch.library.Library("computed_by_rows", "DEF")
library.define("rows(Tensor x) -> Tensor")


def rows(x):
    out = torch.empty_like(x, device="cpu")
    for source, target in zip(x.cpu().numpy(), out.numpy(), strict=True):
        top = np.exp(source.astype(np.float32) - source.max())
        target[...] = top / top.sum()
    return out.to(x.device)


library.impl("rows", rows, "CompositeExplicitAutograd")


def triton_softmax(x):
    wide = x.contiguous().view(-1, x.shape[-1])
    return copy(torch.ops.computed_by_rows.rows(wide)).view(x.shape)
