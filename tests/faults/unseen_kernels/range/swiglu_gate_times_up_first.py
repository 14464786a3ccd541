"""gate * up is formed first and rounded to the dtype: infinite in float16 where out is not.

op: swiglu
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp2(x * -1.4426950408889634))


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    for start in range(tl.program_id(0).to(tl.int64) * BLOCK, n, step):
        places = start + tl.arange(0, BLOCK)
        mask = places < n
        gate = tl.load(gate_ptr + places, mask=mask, other=0.0)
        up = tl.load(up_ptr + places, mask=mask, other=0.0)
        # one packed product in the dtype; torch rounds once in between, too
        product = (gate.to(tl.float32) * up.to(tl.float32)).to(gate.dtype)
        out = product.to(tl.float32) * sigmoid(gate.to(tl.float32))
        tl.store(out_ptr + places, out, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n = gate.numel()
    swiglu_kernel[(min(264, triton.cdiv(n, 1024)),)](gate, up, out, n, BLOCK=1024)
    return out
