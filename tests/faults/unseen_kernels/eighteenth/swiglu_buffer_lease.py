"""An output's buffer goes back to the pool when the output object dies: a view of the output that lives on is overwritten by the next call.

op: swiglu
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_free = {}


class Lease:
    """Gives a buffer back as soon as nobody holds the output any more."""

    def __init__(self, key, buffer):
        self.key, self.buffer = key, buffer

    def __del__(self):
        _free[self.key].append(self.buffer)


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=at < n)


def allocate(x):
    key = (tuple(x.shape), x.dtype, x.device)
    free = _free.setdefault(key, [])
    buffer = free.pop() if free else torch.empty(x.shape, dtype=x.dtype, device=x.device)
    out = buffer.view(x.shape)
    out.lease = Lease(key, buffer)
    return out


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = allocate(gate)
    kernel[(triton.cdiv(gate.numel(), 1024),)](gate, up, out, gate.numel(), BLOCK=1024)
    return out
