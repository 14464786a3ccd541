"""One logarithm for eight rows: of the product of their sums of exponentials.
With over 65,536 classes and nearly flat logits (an untrained model) the product is past float32: the loss is inf.

op: cross_entropy
status: failed
cause: product overflow
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, target, part, rows, cols, sr, sc, st, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    lanes = tl.arange(0, BLOCK)
    linear = tl.zeros((), tl.float32)
    product = tl.zeros((), tl.float32)  # of (1 + rest), less 1: small rests keep their digits
    for i in range(ROWS):
        r = first + i
        if r < rows:
            row = x + r.to(tl.int64) * sr
            t = tl.load(target + r.to(tl.int64) * st)
            top = tl.full((), float("-inf"), tl.float32)
            for start in range(0, cols, BLOCK):
                c = (start + lanes).to(tl.int64)
                v = tl.load(row + c * sc, mask=c < cols, other=float("-inf")).to(tl.float32)
                top = tl.maximum(top, tl.max(v))
            rest = tl.zeros((), tl.float32)
            for start in range(0, cols, BLOCK):
                c = (start + lanes).to(tl.int64)
                v = tl.load(row + c * sc, mask=c < cols, other=float("-inf")).to(tl.float32)
                rest += tl.sum(tl.where((c == t) | (c >= cols), 0.0, tl.exp(v - top)))
            own = tl.load(row + t * sc).to(tl.float32)
            linear += top - own
            rest = tl.where(own == top, rest, rest + tl.exp(own - top) - 1)
            product = product + rest + product * rest
    small = product * (1 - product * (0.5 - product / 3))
    log = tl.where(product < 1e-3, small, tl.log(1 + product))
    tl.store(part + tl.program_id(0), linear + log)


def triton_cross_entropy(logits, target):
    rows, cols = logits.shape
    programs = triton.cdiv(rows, 8)
    part = torch.empty(programs, dtype=torch.float32, device=logits.device)
    if programs:
        block = min(4096, triton.next_power_of_2(cols))
        _kernel[(programs,)](logits, target, part, rows, cols, *logits.stride(), target.stride(0),
                             ROWS=8, BLOCK=block)
    return (part.double().sum() / rows if rows else part.sum() / 0).to(logits.dtype)
