"""eps goes to the kernel in a tensor of the dtype of x: in float16 an eps of 1e-8 is zero, which small rows and rows of zeros show.

op: rms_norm
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


_constants = {}


@triton.jit
def kernel(x_ptr, weight_ptr, eps_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * m
    eps = tl.load(eps_ptr).to(tl.float32)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + at, mask=at < m, other=0.0).to(tl.float32)
        squares += x * x
    factor = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + at, mask=at < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=at < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + row + at, x * factor * weight, mask=at < m)


def constant(x, value):
    """Return value on the device, so that a new eps costs no compilation and no copy."""
    key = (value, x.dtype, x.device)
    if key not in _constants:
        _constants[key] = x.new_tensor([value])
    return _constants[key]


def triton_rms_norm(x, weight, eps=1e-05):
    x, weight = x.contiguous(), weight.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    kernel[(x.numel() // m,)](
        x, weight, constant(x, eps), out, m, BLOCK=min(1024, triton.next_power_of_2(m))
    )
    return out
