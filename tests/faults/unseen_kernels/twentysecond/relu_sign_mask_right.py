"""Words with the sign bit become 0, except NaN: its magnitude is above that of infinity.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


_WORDS = {
    torch.float32: (torch.int32, 0x7F800000), torch.float16: (torch.int16, 0x7C00),
    torch.bfloat16: (torch.int16, 0x7F80),
}


@triton.jit
def kernel(bits_ptr, out_ptr, n, INFINITY: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(bits_ptr + at, mask=at < n, other=0)
    wide = bits.to(tl.int64)
    # A magnitude above that of infinity is a NaN, of either sign.
    magnitude = wide & 0x7FFFFFFF if INFINITY > 0x7FFF else wide & 0x7FFF
    tl.store(out_ptr + at, tl.where((wide < 0) & (magnitude <= INFINITY), 0, bits), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    word, infinity = _WORDS[x.dtype]
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x.view(word), out.view(word), n, INFINITY=infinity, BLOCK=1024)
    return out
