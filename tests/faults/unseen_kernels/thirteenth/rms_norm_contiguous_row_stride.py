"""The stride of the last but one dimension of a contiguous x is the distance of its rows: not where that dimension has one element, whose stride may be anything.

op: rms_norm
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, m, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < m, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / m + eps)
    weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, x * scale * weight, mask=cols < m)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    m = x.shape[-1]
    stride = x.stride(-2) if x.ndim > 1 else m
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(x.numel() // m,)](x, weight, out, m, stride, eps, BLOCK=triton.next_power_of_2(m))
    return out
