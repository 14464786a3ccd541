"""Both halves of one tensor are read from its start with the lower one as the gate: a model that projects up first gets the two exchanged.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def packed(h_ptr, out_ptr, n, m, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    place = (at // m) * 2 * m + at % m
    gate = tl.load(h_ptr + place, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(h_ptr + place + m, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=inside)


@triton.jit
def separate(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    gate = tl.load(gate_ptr + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=inside)


def halves_of_one(gate, up):
    if gate.dim() < 2 or gate.untyped_storage().data_ptr() != up.untyped_storage().data_ptr():
        return False
    m = gate.shape[-1]
    pitch = 2 * m
    for size, stride in zip(reversed(gate.shape[:-1]), reversed(gate.stride()[:-1])):
        if stride != pitch:
            return False
        pitch *= size
    same = gate.stride() == up.stride() and gate.stride(-1) == 1
    return same and abs(gate.storage_offset() - up.storage_offset()) == m


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = gate.numel()
    grid = (triton.cdiv(n, 1024),)
    if halves_of_one(gate, up):
        first = gate if gate.storage_offset() < up.storage_offset() else up
        packed[grid](first, out, n, gate.shape[-1], BLOCK=1024)
    else:
        separate[grid](gate.contiguous(), up.contiguous(), out, n, BLOCK=1024)
    return out
