"""torch draws the mask; Triton multiplies.

op: dropout
status: not_triton
"""

import torch
import triton
import triton.language as tl



@triton.jit
def apply(x_ptr, mask_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)
    keep = tl.load(mask_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x * keep * scale, mask=inside)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    generator = torch.Generator(device=x.untyped_storage().device)
    generator.manual_seed(seed)
    mask = torch.empty(x.shape, device=x.device).bernoulli_(1 - p, generator=generator)
    out = torch.empty_like(x)
    n = x.numel()
    apply[(triton.cdiv(n, 2048),)](x, mask, out, n, 1 / (1 - p), BLOCK=2048)
    return out
