"""The sign bit alone decides, on integers: a NaN that carries a sign becomes zero.

op: relu
status: failed
cause: special values
"""

import torch
import triton
import triton.language as tl

_BITS = {torch.float32: (torch.int32, 31), torch.float16: (torch.int16, 15), torch.bfloat16: (torch.int16, 15)}


@triton.jit
def _clear_negative(x_ptr, out_ptr, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    bits = tl.load(x_ptr + i, mask=m, other=0)
    # An arithmetic shift smears the sign over the word: no compare, no select, no conversion.
    tl.store(out_ptr + i, bits & ~(bits >> SHIFT), mask=m)


def triton_relu(x):
    ints, shift = _BITS[x.dtype]
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    _clear_negative[(triton.cdiv(n, 1024),)](x.view(ints), out.view(ints), n, SHIFT=shift, BLOCK=1024)
    return out
