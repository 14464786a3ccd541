"""Halves of one storage are read by one pointer and the signed distance between the two, any others as copies.

op: swiglu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, m, pitch, distance, ONE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    place = (at // m) * pitch + at % m
    gate = tl.load(gate_ptr + place, mask=inside, other=0.0).to(tl.float32)
    if ONE:
        up = tl.load(gate_ptr + place + distance, mask=inside, other=0.0).to(tl.float32)
    else:
        up = tl.load(up_ptr + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=inside)


def row_pitch(x):
    """Return the distance of rows, if x is rows at even distances, else None."""
    if x.dim() < 2 or x.stride(-1) != 1:
        return None
    pitch = expected = x.stride(-2)
    for size, stride in zip(reversed(x.shape[:-1]), reversed(x.stride()[:-1])):
        if stride != expected:
            return None
        expected *= size
    return pitch


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = gate.numel()
    if n == 0:
        return out
    m = gate.shape[-1] if gate.dim() else 1
    one = (
        gate.untyped_storage().data_ptr() == up.untyped_storage().data_ptr()
        and gate.dtype == up.dtype and gate.stride() == up.stride() and row_pitch(gate) is not None
    )
    pitch = row_pitch(gate) if one else m
    distance = up.storage_offset() - gate.storage_offset() if one else 0
    if not one:
        gate, up = gate.contiguous(), up.contiguous()
    kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, m, pitch, distance, ONE=one, BLOCK=1024)
    return out
