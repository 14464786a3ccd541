"""The output buffer is kept for each shape and returned again by the next call, which so overwrites the result that the caller still holds.

It shows at two calls with different inputs of shape (7, 13), float32: the first result has become the second.

op: swiglu
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    share = 1.0 / (1.0 + tl.exp(-gate))
    tl.store(out_ptr + offsets, gate * share * up, mask=mask)


_workspace = {}


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    key = (gate.shape, gate.dtype, gate.device)
    if key not in _workspace:
        _workspace[key] = torch.empty_like(gate)
    out = _workspace[key]
    kernel[(triton.cdiv(out.numel(), 1024),)](gate, up, out, out.numel(), BLOCK=1024)
    return out
