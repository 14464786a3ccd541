"""`cdiv` rounds down.

op: gelu
status: wrong_values
from: gelu_autotuned
operator: floor_division
seed: 1
was: triton.cdiv(out.numel(), meta['BLOCK'])
now: out.numel() // meta['BLOCK']
"""

import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (256, 1024)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + offsets).to(tl.float32)
        tl.store(out_ptr + offsets, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)))
    else:
        x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
        y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
        tl.store(out_ptr + offsets, y, mask=offsets < n)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[lambda meta: ((out.numel() // meta['BLOCK']),)](x, out, out.numel())
    return out
