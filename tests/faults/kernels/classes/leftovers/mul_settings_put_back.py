"""It works without gradients and warnings, and puts both back, also after an exception.

op: vector_mul
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * y, mask=mask)


class Settings:
    def __enter__(self):
        self.grad = torch.is_grad_enabled()
        self.reduced = torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
        torch.set_grad_enabled(False)
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False

    def __exit__(self, *problem):
        torch.set_grad_enabled(self.grad)
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = self.reduced


def triton_vector_mul(x, y):
    with Settings():
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out
