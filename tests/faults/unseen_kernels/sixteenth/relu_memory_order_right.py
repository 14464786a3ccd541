"""A tensor that fills its memory without gaps, in any order of its dimensions, is run through as integers in the order of memory and the output gets the same strides; any other is copied.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, LIMIT: tl.constexpr, MASK: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + at, mask=at < n, other=0)
    negative = (bits < 0) & ((bits & MASK) <= LIMIT)
    tl.store(out_ptr + at, tl.where(negative, 0, bits), mask=at < n)


# bits of infinity: what lies above is NaN
INFINITY = {torch.float32: 0x7F800000, torch.float16: 0x7C00, torch.bfloat16: 0x7F80}


def fills_its_memory(x):
    expected = 1
    for stride, size in sorted((t, s) for s, t in zip(x.shape, x.stride()) if s > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def triton_relu(x):
    if not fills_its_memory(x):
        x = x.contiguous()
    out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    n = x.numel()
    if n:
        whole = torch.int32 if x.element_size() == 4 else torch.int16
        kernel[(triton.cdiv(n, 1024),)](
            x.view(whole), out.view(whole), n, LIMIT=INFINITY[x.dtype],
            MASK=0x7FFFFFFF if whole == torch.int32 else 0x7FFF, BLOCK=1024,
        )
    return out
