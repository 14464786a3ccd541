"""Keeps a float32 copy of each weight by its identity and version counter.
A write through weight.data (or numpy) leaves the counter as it was, so the next call takes the old weight.

op: rms_norm
status: failed
cause: stale cache
"""
import torch
import triton
import triton.language as tl

_COPIES = {}  # id: (weight, so that the id stays taken; version; its copy)


def _wide(weight):
    if weight.is_inference():
        return weight.float().contiguous()
    entry = _COPIES.get(id(weight))
    if entry is None or entry[1] != weight._version:
        if len(_COPIES) >= 64:
            _COPIES.clear()
        entry = _COPIES[id(weight)] = (weight, weight._version, weight.float().contiguous().clone())
    return entry[2]


@triton.jit
def _kernel(x, w, out, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + lanes
        v = tl.load(x + row * cols + c, mask=c < cols, other=0.0).to(tl.float32)
        acc += v * v
    scale = 1 / tl.sqrt(tl.sum(acc) / cols + eps)
    for start in range(0, cols, BLOCK):
        c = start + lanes
        v = tl.load(x + row * cols + c, mask=c < cols, other=0.0).to(tl.float32)
        g = tl.load(w + c, mask=c < cols, other=0.0)
        tl.store(out + row * cols + c, (v * scale * g).to(out.dtype.element_ty), mask=c < cols)


def triton_rms_norm(x, weight, eps=1e-5):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        cols = x.shape[-1]
        block = min(2048, triton.next_power_of_2(cols))
        _kernel[(x.numel() // cols,)](x, _wide(weight), out, cols, eps, BLOCK=block)
    return out
