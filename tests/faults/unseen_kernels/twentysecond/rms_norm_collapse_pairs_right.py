"""Leading dimensions are walked with one row stride only if every neighbouring pair of them collapses; else the tensor is copied.

op: rms_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, stride, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < m, other=0.0).to(tl.float32)
        total += x * x
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < m, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * m + cols, x * scale * w, mask=cols < m)


def row_stride(x):
    """Return the distance between rows if all rows lie at equal distances, else None."""
    if x.stride(-1) != 1:
        return None
    if x.dim() == 1:
        return x.shape[0]
    for i in range(x.dim() - 2):
        if x.stride(i) != x.shape[i + 1] * x.stride(i + 1):
            return None
    return x.stride(-2)


def triton_rms_norm(x, weight, eps=1e-05):
    stride = row_stride(x)
    if stride is None:
        x = x.contiguous()
        stride = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    m = x.shape[-1]
    kernel[(x.numel() // m,)](
        x, weight.contiguous(), out, stride, m, eps, BLOCK=min(2048, triton.next_power_of_2(m))
    )
    return out
