"""Every lane writes the same word of shared memory, then reads it, without a barrier.

op: relu
status: wrong_values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    x = tl.inline_asm_elementwise(
        "{ .shared .align 4 .b32 word; st.shared.b32 [word], $1; ld.shared.b32 $0, [word]; }",
        "=f,f",
        [x],
        dtype=tl.float32,
        is_pure=False,
        pack=1,
    )
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out
