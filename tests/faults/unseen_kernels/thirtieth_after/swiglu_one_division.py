"""gate * up is one product in float16 before the division: it overflows where the result is small.

op: swiglu
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < n, other=0.0)
    up = tl.load(up_ptr + at, mask=at < n, other=0.0)
    if gate.dtype == tl.bfloat16:  # older devices have no bfloat16 arithmetic
        gate = gate.to(tl.float32)
        up = up.to(tl.float32)
    # In float16 the product is of two values a register; only the exponential and the division need float32.
    product = gate * up
    divisor = 1.0 + tl.exp(-gate.to(tl.float32))
    tl.store(out_ptr + at, product.to(tl.float32) / divisor, mask=at < n)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n = out.numel()
    kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out
