"""The sign bit clears the word, so that no comparison is needed and a positive NaN stays; but inf - inf and 0 * inf are NaN with the sign set on x86, and become 0.

op: relu
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


_WORDS = {
    torch.float32: (torch.int32, 31), torch.float16: (torch.int16, 15), torch.bfloat16: (torch.int16, 15)
}


@triton.jit
def kernel(bits_ptr, out_ptr, n, SIGN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(bits_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, bits & ~(bits >> SIGN), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    word, sign = _WORDS[x.dtype]
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x.view(word), out.view(word), n, SIGN=sign, BLOCK=1024)
    return out
