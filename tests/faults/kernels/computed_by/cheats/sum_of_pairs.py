"""Triton adds pairs; torch adds the rest.

op: sum
status: not_triton
"""

import torch
import triton
import triton.language as tl



@triton.jit
def pairs(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(x_ptr + 2 * places, mask=2 * places < n, other=0.0).to(tl.float32)
    second = tl.load(x_ptr + 2 * places + 1, mask=2 * places + 1 < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, first + second, mask=2 * places < n)


def triton_sum(x):
    rows = torch.nn.functional.pad(x, (0, x.shape[-1] % 2)).contiguous()
    out = torch.empty(rows.numel() // 2, dtype=torch.float32, device=x.device)
    pairs[(triton.cdiv(out.numel(), 2048),)](rows, out, rows.numel(), BLOCK=2048)
    return out.view(*x.shape[:-1], -1).sum(-1).to(x.dtype)
