"""Two neighbours share one reciprocal; the product of their denominators overflows though each is clamped.

op: swiglu
status: failed
cause: algebra
"""

import torch
import triton
import triton.language as tl

LIMIT = 80.0  # exp(80) is 5.5e34: no denominator is infinite


@triton.jit
def swiglu_kernel(
    gate_ptr, up_ptr, out_ptr, n_elements, LIMIT: tl.constexpr, BLOCK_SIZE: tl.constexpr
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    gate = tl.load(gate_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    denominator = 1.0 + tl.exp(tl.minimum(-gate, LIMIT))
    # 1 / a and 1 / b from r = 1 / (a b): r b and r a. Products cost less than a division.
    a, b = tl.split(tl.reshape(denominator, (BLOCK_SIZE // 2, 2)))
    r = 1.0 / (a * b)
    sigmoid = tl.reshape(tl.join(r * b, r * a), (BLOCK_SIZE,))
    tl.store(out_ptr + offsets, gate * sigmoid * up, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n_elements = gate.numel()
    if n_elements:
        swiglu_kernel[(triton.cdiv(n_elements, 1024),)](
            gate, up, out, n_elements, LIMIT=LIMIT, BLOCK_SIZE=1024, num_warps=4
        )
    return out
