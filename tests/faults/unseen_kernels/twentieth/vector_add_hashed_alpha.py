"""Alpha is a stored tensor, by the hash of its value and device, and Python's hashes of -1 and -2 are equal: alpha -2 after -1 adds -1 times y.

op: vector_add
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_alphas = {}


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, alpha_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    alpha = tl.load(alpha_ptr)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)


def on_device(alpha, device):
    """Alpha as a tensor: the launch is the same for every value, so that a graph can be captured."""
    key = hash((float(alpha), str(device)))
    if key not in _alphas:
        _alphas[key] = torch.tensor(float(alpha), dtype=torch.float32, device=device)
    return _alphas[key]


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, on_device(alpha, x.device), x.numel(), BLOCK=1024)
    return out
