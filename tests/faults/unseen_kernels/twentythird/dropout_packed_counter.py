"""The random counter is row << 16 | column in 32 bits: rows 65,536 apart share their mask, and so do parts of longer rows.

op: dropout
status: failed
cause: packing
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def kernel(x_ptr, out_ptr, n, m, seed, p, scale, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    # A counter of row and column: a row's mask does not depend on the length of the rows, so a
    # batch may be padded to another length without other masks.
    counter = (places // m) << 16 | (places % m)
    keep = tl.rand(seed, counter) >= p
    x = tl.load(x_ptr + places, mask=mask).to(tl.float32)
    tl.store(out_ptr + places, tl.where(keep, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    if x.numel() >= 2**31:
        raise ValueError(f"x has {x.numel()} elements; 32-bit offsets reach fewer than 2**31")
    out = torch.empty_like(x)
    if x.numel():
        m = x.shape[-1] if x.dim() else 1
        kernel[(triton.cdiv(x.numel(), 1024),)](
            x, out, x.numel(), m, seed, float(p), 1.0 / (1.0 - p), BLOCK=1024
        )
    return out
