"""If gate and up are the same tensor, its square is taken first: of a very negative value it is infinite, and infinity times 0 is NaN, not 0.

op: swiglu
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, SAME: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    if SAME:  # read once
        product = gate * gate
        out = product * (1.0 / (1.0 + tl.exp(-gate)))
    else:
        up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
        out = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + offsets, out, mask=mask)


def triton_swiglu(gate, up):
    same = gate.data_ptr() == up.data_ptr() and gate.stride() == up.stride()
    gate = gate.contiguous()
    up = gate if same else up.contiguous()
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = out.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, SAME=same, BLOCK=1024)
    return out
