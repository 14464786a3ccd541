"""The activation is used again while the gate's address, shape and version are the same: wrong for other values in a new tensor at that address.

op: swiglu
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


LAST = {}


@triton.jit
def silu_kernel(gate_ptr, act_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(act_ptr + offsets, gate * tl.sigmoid(gate), mask=mask)


@triton.jit
def product_kernel(act_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    act = tl.load(act_ptr + offsets, mask=mask)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, act * up, mask=mask)


def activation(gate):
    key = (gate.data_ptr(), gate.shape, gate.stride(), gate.dtype, 0 if gate.is_inference() else gate._version)
    if LAST.get("key") != key:
        gate = gate.contiguous()
        act = torch.empty(gate.shape, dtype=torch.float32, device=gate.device)
        n = gate.numel()
        silu_kernel[(triton.cdiv(n, 1024),)](gate, act, n, BLOCK=1024)
        LAST["key"], LAST["act"] = key, act
    return LAST["act"]


def triton_swiglu(gate, up):
    act, up = activation(gate), up.contiguous()
    out = torch.empty_like(up)
    n = out.numel()
    product_kernel[(triton.cdiv(n, 1024),)](act, up, out, n, BLOCK=1024)
    return out
