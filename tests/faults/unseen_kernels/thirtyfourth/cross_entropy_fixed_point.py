"""The losses are added in fixed point (int64 atomics, 2^-40: the same in any order); the sum wraps at
2^23. Wrong where the losses of all rows add up to more than 8.4 million.

op: cross_entropy
status: failed
cause: integer overflow
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _rows(x, target, fixed, odd, classes, xr, xc, ts, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    base = x + row * xr
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK).to(tl.int64)
        best = tl.maximum(best, tl.load(base + at * xc, mask=at < classes, other=float("-inf")).to(tl.float32))
    top = tl.max(best, axis=0)
    acc = tl.zeros((BLOCK,), tl.float32)
    goal = tl.load(target + row * ts)
    rest = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK).to(tl.int64)
        value = tl.load(base + at * xc, mask=at < classes, other=float("-inf")).to(tl.float32)
        p = tl.exp(value - top)
        acc += p
        rest += tl.where(at == goal, 0.0, p)
    own = tl.load(base + goal * xc).to(tl.float32)
    total = tl.sum(acc, axis=0)
    others = tl.sum(rest, axis=0)
    # log(1 + rest), by its series where it is small
    small = others * (1.0 - others * (0.5 - others * 0.3333333333))
    loss = tl.where((own == top) & (others < 0.003), small, tl.log(total) + (top - own))
    finite = tl.abs(loss) < float("inf")
    tl.atomic_add(odd, tl.where(finite, 0.0, loss))
    scaled = tl.where(finite, loss, 0.0).to(tl.float64) * 1099511627776.0
    tl.atomic_add(fixed, scaled.to(tl.int64))


@triton.jit
def _mean(fixed, odd, out, rows):
    total = tl.load(fixed).to(tl.float64) / 1099511627776.0
    mean = total / rows + tl.load(odd).to(tl.float64)
    tl.store(out, mean.to(tl.float32).to(out.dtype.element_ty))


def triton_cross_entropy(logits, target):
    rows, classes = logits.shape
    fixed = torch.zeros(1, dtype=torch.int64, device=logits.device)
    odd = torch.zeros(1, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    if rows == 0:
        return out.fill_(float("nan"))
    block = min(1024, triton.next_power_of_2(classes))
    _rows[(rows,)](logits, target, fixed, odd, classes, *logits.stride(), target.stride(0), BLOCK=block)
    _mean[(1,)](fixed, odd, out, rows)
    return out
