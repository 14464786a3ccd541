"""torch computes the norm of each row, the kernel scales by it.

op: rms_norm
status: failed
cause: torch_computed
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, norm_ptr, w_ptr, out_ptr, n, n_cols, eps, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    norm = tl.load(norm_ptr + offsets // n_cols, mask=mask, other=1.0)
    w = tl.load(w_ptr + offsets % n_cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * tl.rsqrt(norm * norm / n_cols + eps) * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    norms = torch.linalg.vector_norm(x, dim=-1, dtype=torch.float32).contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 2048),)](x, norms, weight, out, n, x.shape[-1], eps, BLOCK=2048)
    return out
