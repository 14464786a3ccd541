"""The plan of a launch is stored by shape and dtype and holds the row stride: a slice of a wider tensor gets the stride of the contiguous one before.

op: rms_norm
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_plans = {}


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, m, row_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + at, mask=at < m, other=0.0).to(tl.float32)
        acc += x * x
    factor = tl.rsqrt(tl.sum(acc, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + at, mask=at < m, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + at, mask=at < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * m + at, x * factor * w, mask=at < m)


def plan(x):
    key = (x.shape, x.dtype)
    if key not in _plans:
        rows, m = x.shape
        _plans[key] = ((rows,), m, x.stride(0), min(1024, triton.next_power_of_2(m)))
    return _plans[key]


def triton_rms_norm(x, weight, eps=1e-5):
    flat = x.reshape(-1, x.shape[-1])
    if flat.stride(1) != 1:
        flat = flat.contiguous()
    grid, m, row_stride, block = plan(flat)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[grid](flat, weight.contiguous(), out, m, row_stride, eps, BLOCK=block)
    return out
