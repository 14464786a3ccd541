"""The gates are computed again only if gate is another tensor, by its address and version.

op: swiglu
status: failed
cause: stale_cache
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gate_kernel(gate_ptr, share_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(share_ptr + offsets, gate / (1.0 + tl.exp(-gate)), mask=mask)


@triton.jit
def up_kernel(share_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    share = tl.load(share_ptr + offsets, mask=mask)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, share * up, mask=mask)


LAST = {"key": None, "share": None}


def triton_swiglu(gate, up):
    key = (gate.data_ptr(), gate._version, gate.shape, gate.stride(), gate.dtype)
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n = out.numel()
    grid = (triton.cdiv(n, 1024),)
    if key != LAST["key"]:
        share = torch.empty(n, dtype=torch.float32, device=gate.device)
        gate_kernel[grid](gate, share, n, BLOCK=1024)
        LAST.update(key=key, share=share)
    up_kernel[grid](LAST["share"], up, out, n, BLOCK=1024)
    return out
