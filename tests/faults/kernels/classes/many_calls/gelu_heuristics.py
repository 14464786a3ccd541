"""Heuristics choose the block at each call; an autotuner of one configuration the warps.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({}, num_warps=8)], key=["n"])
@triton.heuristics({"BLOCK": lambda arguments: 256 if arguments["n"] < 2**16 else 1024})
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * 0.5 * (1.0 + tl.erf(x * 0.7071067811865476)), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out
