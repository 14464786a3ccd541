"""The sign bit clears a number, and a NaN whose sign bit is set as well: it becomes 0.

op: relu
status: failed
cause: bits
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n_elements - start
    x = tl.load(x_ptr + start + lanes, mask=mask)
    # No comparison, so that NaN stays NaN: all ones where the sign bit is set, else zeros.
    if x.dtype == tl.float32:
        bits = x.to(tl.int32, bitcast=True)
        bits = bits & ~(bits >> 31)
    else:
        bits = x.to(tl.int16, bitcast=True)
        bits = bits & ~(bits >> 15)
    tl.store(out_ptr + start + lanes, bits.to(x.dtype, bitcast=True), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        kernel[(triton.cdiv(n_elements, 1024),)](x, out, n_elements, BLOCK=1024)
    return out
