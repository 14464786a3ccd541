"""The kernel is compiled once by hand, and launched on as many programs as fit the GPU.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, x_row_stride, out_row_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr,
    num_stages: tl.constexpr,
):
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=num_stages):
        cols = tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=-float("inf"))
        x = x.to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        out = numerator / tl.sum(numerator, axis=0)
        tl.store(out_ptr + row * out_row_stride + cols, out, mask=mask)


def count_programs(kernel, num_warps):
    limits = triton.runtime.driver.active.utils.get_device_properties(0)
    threads = num_warps * limits["warpSize"]
    per_sm = limits["max_num_regs"] // (max(kernel.n_regs, 1) * threads)
    per_sm = min(per_sm, limits["max_shared_mem"] // max(kernel.metadata.shared, 1))
    return limits["multiprocessor_count"] * max(min(per_sm, 4), 1)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    num_warps = 8 if BLOCK_SIZE >= 2048 else 4
    kernel = softmax_kernel.warmup(
        rows, out, rows.stride(0), out.stride(0), n_rows, n_cols, BLOCK_SIZE=BLOCK_SIZE,
        num_stages=2, num_warps=num_warps, grid=(1,),
    )
    kernel._init_handles()
    programs = min(count_programs(kernel, num_warps), n_rows)
    kernel[(programs, 1, 1)](
        rows, out, rows.stride(0), out.stride(0), n_rows, n_cols, BLOCK_SIZE, 2
    )
    return out.view(x.shape)
