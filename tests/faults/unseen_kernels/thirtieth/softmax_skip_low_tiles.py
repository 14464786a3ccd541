"""A tile whose maximum is more than 104 below the running maximum is left out of the sum: a NaN in such a tile is lost.

op: softmax
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n_cols
    out_ptr += row * n_cols
    m = -float("inf")
    s = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        top = tl.max(x, axis=0)
        # exp(-104) is zero, even as a denormal: such a tile cannot change the sum. Most tiles of
        # masked scores are like that, and exp is what costs.
        if not (top < m - 104.0):
            m_new = tl.maximum(m, top)
            base = tl.where(m_new == -float("inf"), 0.0, m_new)
            shrink = tl.where(m == m_new, 1.0, tl.exp(m - base))
            s = s * shrink + tl.sum(tl.exp(x - base), axis=0)
            m = m_new
    base = tl.where(m == -float("inf"), 0.0, m)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols, tl.exp(x - base) / s, mask=mask)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        n_cols = x.shape[-1]
        BLOCK = min(1024, triton.next_power_of_2(n_cols))
        kernel[(x.numel() // n_cols,)](x, out, n_cols, BLOCK=BLOCK)
    return out
