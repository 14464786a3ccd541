"""Nothing wrong: the output is a view of a buffer that is rounded up to whole blocks, so that no store needs a mask.

op: relu
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl
BLOCK = 512


@triton.jit
def kernel(x_ptr, out_ptr, n, n_blocks, BLOCK: tl.constexpr):
    block = tl.program_id(0).to(tl.int64)
    while block < n_blocks:
        offs = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
        tl.store(out_ptr + offs, tl.where(x <= 0, 0.0, x))  # a NaN is not <= 0: it stays
        block += tl.num_programs(0)


def triton_relu(x):
    x = x.contiguous()
    n = x.numel()
    n_blocks = triton.cdiv(n, BLOCK)
    room = torch.empty(n_blocks * BLOCK, dtype=x.dtype, device=x.device)
    kernel[(min(n_blocks, 132),)](x, room, n, n_blocks, BLOCK=BLOCK)
    return room[:n].view(x.shape)
