"""Works on the bits: the sign bit of a number that is no NaN, spread over the word, clears it.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _k(x, out, n, SIGN: tl.constexpr, INF: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x + at, mask=at < n, other=0)
    is_nan = (bits & (SIGN - 1)) > INF
    bits = tl.where((bits < 0) & (is_nan == 0), 0, bits)
    tl.store(out + at, bits, mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    if n:
        kind, sign, inf = {
            torch.float32: (torch.int32, 1 << 31, 0x7F800000),
            torch.float16: (torch.int16, 1 << 15, 0x7C00),
            torch.bfloat16: (torch.int16, 1 << 15, 0x7F80),
        }[x.dtype]
        _k[(triton.cdiv(n, 1024),)](x.view(kind), out.view(kind), n, SIGN=sign, INF=inf, BLOCK=1024)
    return out
