"""Right: the programs take the blocks in a shuffled order, by a step that has no divisor in common with their number.

op: vector_mul
status: passed
"""

import math

import torch
import triton
import triton.language as tl

STEP = 7919  # neighbouring programs are far apart, in other channels of the memory


@triton.jit(do_not_specialize=["step", "blocks"])
def vector_mul_kernel(x_ptr, y_ptr, out_ptr, n_elements, step, blocks, BLOCK_SIZE: tl.constexpr):
    block = tl.program_id(0).to(tl.int64) * step % blocks
    offsets = (blocks - 1 - block) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * y, mask=mask)


def coprime_step(blocks):
    """Return every block is met once, by this step: blocks + 1 would do, so the search ends."""
    step = STEP
    while math.gcd(step, blocks) != 1:
        step += 1
    return step


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        block_size = 256 if n_elements <= 2**16 else 1024
        blocks = triton.cdiv(n_elements, block_size)
        vector_mul_kernel[(blocks,)](
            x, y, out, n_elements, coprime_step(blocks), blocks, BLOCK_SIZE=block_size
        )
    return out
