"""The mean is the gradient of a product: autograd adds the rows.

op: mean
status: failed
cause: torch_computed
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def divide_kernel(sum_ptr, out_ptr, n, divisor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(sum_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total / divisor, mask=mask)


def triton_mean(x):
    with torch.enable_grad():
        ones = torch.ones((*x.shape[:-1], 1), device=x.device, requires_grad=True)
        (total,) = torch.autograd.grad(ones.expand(x.shape), ones, grad_outputs=x.detach().float())
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    total = total.contiguous()
    n = out.numel()
    divide_kernel[(triton.cdiv(n, 1024),)](total, out, n, x.shape[-1], BLOCK=1024)
    return out
