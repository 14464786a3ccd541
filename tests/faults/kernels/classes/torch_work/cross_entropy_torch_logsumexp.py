"""torch takes logsumexp; Triton subtracts the target's logit.

op: cross_entropy
status: failed
cause: torch_computed
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(logits_ptr, target_ptr, whole_ptr, loss_ptr, n_cols):
    row = tl.program_id(0).to(tl.int64)
    picked = tl.load(logits_ptr + row * n_cols + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.load(whole_ptr + row) - picked)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    whole = torch.logsumexp(logits.float(), dim=-1)
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    kernel[(n_rows,)](logits, target, whole, loss, n_cols)
    return loss.mean().to(logits.dtype)
