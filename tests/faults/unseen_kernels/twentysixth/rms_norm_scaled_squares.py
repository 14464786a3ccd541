"""Right: each row is divided by a power of two near its largest value before it is squared, and eps by its square.

op: rms_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, m, weight_stride, rest, eps, BLOCK: tl.constexpr):
    row = tl.num_programs(0) - 1 - tl.program_id(0).to(tl.int64)
    x_ptr += row * m
    out_ptr += row * m
    top = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        top = tl.maximum(top, tl.abs(x))
    # The exponent alone. Rows below one stay: their eps would overflow.
    bits = tl.max(top, axis=0).to(tl.int32, bitcast=True) & 0x7F800000
    scale = tl.minimum(tl.maximum(bits.to(tl.float32, bitcast=True), 1.0), 1.3292279957849159e36)
    inverse = 1.0 / scale  # exact, and not subnormal: the scale is 2^120 at most
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32) * inverse
        total += x * x
    root = tl.sqrt(tl.sum(total, axis=0) * rest + eps * inverse * inverse)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32) * inverse
        weight = tl.load(weight_ptr + cols * weight_stride, mask=cols < m, other=0.0)
        y = x / root * weight.to(tl.float32)
        tl.store(out_ptr + cols, y.to(out_ptr.dtype.element_ty), mask=cols < m)


def triton_rms_norm(x, weight, eps=1e-5):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    block = min(1024, triton.next_power_of_2(m))
    kernel[(x.numel() // m,)](
        x, weight, out, m, weight.stride(0), 1.0 / m, float(eps), BLOCK=block
    )
    return out
