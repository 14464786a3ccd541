"""Rows so far apart that a whole block fits between them are loaded with no mask, and the columns beyond count times zero: what lies in the padding, if it is NaN, spoils the sum.

op: rms_norm
status: failed
cause: leftovers
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, weight_ptr, out_ptr, m, pitch, eps, ROOM: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    if ROOM:
        # no predicate: wide vector loads for any m
        x = tl.load(x_ptr + row.to(tl.int64) * pitch + at).to(tl.float32)
    else:
        x = tl.load(x_ptr + row.to(tl.int64) * pitch + at, mask=at < m, other=0.0).to(tl.float32)
    squares = x * x * (at < m).to(tl.float32)
    factor = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / m + eps)
    weight = tl.load(weight_ptr + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row.to(tl.int64) * m + at, x * factor * weight, mask=at < m)


def triton_rms_norm(x, weight, eps=1e-05):
    m = x.shape[-1]
    if x.dim() != 2 or x.stride(1) != 1:
        x = x.contiguous()
    n = x.numel() // m
    pitch = x.stride(0) if x.dim() == 2 else m
    block = triton.next_power_of_2(m)
    size = x.untyped_storage().nbytes() // x.element_size()
    room = pitch >= block and x.storage_offset() + (n - 1) * pitch + block <= size
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(n,)](x, weight.contiguous(), out, m, pitch, eps, ROOM=room, BLOCK=block)
    return out
