"""A launcher is made once for a width and dtype, with the eps of that call: wrong for small x and another eps later.

op: rms_norm
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


LAUNCHERS = {}


@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(out_ptr + row * n + cols, x * scale * weight, mask=mask)


def make_launcher(n, eps):
    BLOCK = triton.next_power_of_2(n)
    warps = min(16, max(1, BLOCK // 256))

    def launch(x, weight, out):
        kernel[(x.numel() // n,)](x, weight, out, n, eps, BLOCK=BLOCK, num_warps=warps)

    return launch


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    key = (x.shape[-1], x.dtype, x.device)
    if key not in LAUNCHERS:
        LAUNCHERS[key] = make_launcher(x.shape[-1], eps)
    LAUNCHERS[key](x, weight, out)
    return out
