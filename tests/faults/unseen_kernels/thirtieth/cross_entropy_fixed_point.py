"""The losses are added as fixed-point int64, for a fixed result: a sum past 2^27 wraps around.

op: cross_entropy
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def losses(x_ptr, target_ptr, sum_ptr, odd_ptr, sx, sc, st, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        at = x_ptr + row * sx + cols.to(tl.int64) * sc
        top = tl.maximum(top, tl.load(at, mask=cols < classes, other=-float("inf")).to(tl.float32))
    peak = tl.max(top, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        at = x_ptr + row * sx + cols.to(tl.int64) * sc
        x = tl.load(at, mask=cols < classes, other=-float("inf")).to(tl.float32)
        total += tl.exp(x - peak)
    target = tl.load(target_ptr + row * st)
    chosen = tl.load(x_ptr + row * sx + target * sc).to(tl.float32)
    loss = (peak - chosen) + tl.log(tl.sum(total, axis=0))
    # Integers add up to the same in any order. 36 bits after the point are enough for small losses.
    if tl.abs(loss) < float("inf"):
        tl.atomic_add(sum_ptr, (loss * 68719476736.0).to(tl.int64))
    else:
        tl.atomic_add(odd_ptr, loss)


@triton.jit
def finish(sum_ptr, odd_ptr, out_ptr, rows):
    total = tl.load(sum_ptr).to(tl.float64) / 68719476736.0 / rows
    tl.store(out_ptr, (total + tl.load(odd_ptr)).to(tl.float32))


def triton_cross_entropy(logits, target):
    rows, classes = logits.shape
    total = torch.zeros((), dtype=torch.int64, device=logits.device)
    odd = torch.zeros((), dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    block = min(2048, triton.next_power_of_2(classes))
    losses[(rows,)](
        logits, target, total, odd, *logits.stride(), target.stride(0), classes, BLOCK=block
    )
    finish[(1,)](total, odd, out, rows)
    return out
