"""Each program stores the mean of its rows and the programs' means are averaged: the last program may have fewer rows, which then weigh more.

op: cross_entropy
status: failed
cause: weighting
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 256


@triton.jit
def part(x_ptr, target_ptr, means_ptr, n, classes, row_stride, col_stride, t_stride, CHUNK, BLOCK: tl.constexpr):
    first = tl.program_id(0) * CHUNK
    last = tl.minimum(first + CHUNK, n)
    total = 0.0
    for i in range(0, last - first):
        row = (first + i).to(tl.int64)
        here = x_ptr + row * row_stride
        top = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
        for start in range(0, classes, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(here + cols * col_stride, mask=cols < classes, other=float("-inf")).to(tl.float32)
            top = tl.maximum(top, x)
        largest = tl.max(top, axis=0)
        sums = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, classes, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(here + cols * col_stride, mask=cols < classes, other=float("-inf")).to(tl.float32)
            sums += tl.exp(x - largest)
        target = tl.load(target_ptr + row * t_stride)
        chosen = tl.load(here + target * col_stride).to(tl.float32)
        total += tl.log(tl.sum(sums, axis=0)) + (largest - chosen)
    tl.store(means_ptr + tl.program_id(0), total / (last - first))


@triton.jit
def finish(means_ptr, out_ptr, programs, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    means = tl.load(means_ptr + places, mask=places < programs, other=0.0)
    tl.store(out_ptr, tl.sum(means, axis=0) / programs)


def triton_cross_entropy(logits, target):
    n, classes = logits.shape
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    chunk = triton.cdiv(n, PROGRAMS)
    programs = triton.cdiv(n, chunk)
    means = torch.empty(programs, dtype=torch.float32, device=logits.device)
    block = min(2048, triton.next_power_of_2(classes))
    part[(programs,)](
        logits, target, means, n, classes, *logits.stride(), target.stride(0), chunk, BLOCK=block,
    )
    finish[(1,)](means, out, programs, BLOCK=triton.next_power_of_2(programs))
    return out
