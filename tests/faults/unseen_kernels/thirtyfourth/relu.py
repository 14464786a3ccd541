"""Integers only: clears the bits where the sign is set, unless the bits are those of a NaN.

op: relu
status: passed
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, out, n, TOP: tl.constexpr, INF: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x + at, mask=at < n, other=0)
    keep = (bits >= 0) | ((bits & TOP) > INF)
    tl.store(out + at, tl.where(keep, bits, 0), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        ints = torch.int32 if x.dtype == torch.float32 else torch.int16
        top = 0x7FFFFFFF if ints == torch.int32 else 0x7FFF
        inf = {torch.float32: 0x7F800000, torch.float16: 0x7C00, torch.bfloat16: 0x7F80}[x.dtype]
        flat = x.view(-1).view(ints)
        _kernel[(triton.cdiv(x.numel(), 512),)](flat, out.view(-1).view(ints), x.numel(), TOP=top, INF=inf, BLOCK=512)
    return out
