"""The float32 copy of the weight is kept while the tensor and its version stay: a change through .data has no version.

op: rms_norm
status: failed
cause: stale
"""

import weakref

import torch
import triton
import triton.language as tl

_copies = {}


@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    start_of_row = tl.program_id(0).to(tl.int64) * m
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start_of_row + cols, mask=cols < m, other=0.0).to(tl.float32)
        squares += x * x
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < m
        x = tl.load(x_ptr + start_of_row + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0)
        tl.store(out_ptr + start_of_row + cols, x * scale * weight, mask=mask)


def wide_copy(weight):
    """Return the weight in float32, contiguous; a layer calls with the same parameter each time."""
    if weight.dtype == torch.float32 and weight.is_contiguous():
        return weight
    if weight.is_inference():  # has no version
        return weight.float().contiguous()
    entry = _copies.get(id(weight))
    if entry is not None:
        owner, version, place, copy = entry
        if owner() is weight and version == weight._version and place == weight.data_ptr():
            return copy
    copy = weight.detach().float().contiguous()
    key = id(weight)
    owner = weakref.ref(weight, lambda _: _copies.pop(key, None))
    _copies[key] = owner, weight._version, weight.data_ptr(), copy
    return copy


def triton_rms_norm(x, weight, eps=1e-05):
    x = x.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    if x.numel():
        BLOCK = min(triton.next_power_of_2(m), 2048)
        kernel[(x.numel() // m,)](x, wide_copy(weight), out, m, eps, BLOCK=BLOCK)
    return out
