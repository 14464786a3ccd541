"""alpha lies in a buffer for each dtype that is filled when alpha changes; the last alpha is one for all dtypes, so a buffer stays old after a call in another dtype.

op: vector_add
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_buffers = {}
_last = None


@triton.jit
def kernel(x_ptr, y_ptr, alpha_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    alpha = tl.load(alpha_ptr)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)


def on_device(alpha, dtype, device):
    global _last
    key = (dtype, device)
    if key not in _buffers:
        _buffers[key] = torch.full((1,), alpha, dtype=torch.float32, device=device)
    elif alpha != _last:
        _buffers[key].fill_(alpha)
    _last = alpha
    return _buffers[key]


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, y, on_device(alpha, x.dtype, x.device), out, n, BLOCK=1024)
    return out
