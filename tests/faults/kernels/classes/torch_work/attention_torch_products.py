"""torch multiplies twice; Triton takes the softmax in between.

op: attention
status: failed
cause: torch_computed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(s_ptr, n_cols, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    s = tl.load(s_ptr + row * n_cols + cols, mask=mask, other=-float("inf")) * scale
    numerator = tl.exp(s - tl.max(s, axis=0))
    tl.store(s_ptr + row * n_cols + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


def triton_attention(q, k, v):
    scores = torch.matmul(q.float(), k.float().transpose(-1, -2)).contiguous()
    n_cols = scores.shape[-1]
    kernel[(scores.numel() // n_cols,)](
        scores, n_cols, q.shape[-1] ** -0.5, BLOCK=triton.next_power_of_2(n_cols)
    )
    return torch.matmul(scores, v.float()).to(q.dtype)
