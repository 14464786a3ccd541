"""A persistent program keeps its running maximum from row to row: a row far below an earlier one of it vanishes.

op: softmax
status: failed
cause: state
"""

import functools

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, cols, stride, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        in_ptr = x_ptr + tl.cast(row, tl.int64) * stride
        total = tl.zeros((), dtype=tl.float32)
        for start in range(0, cols, BLOCK):
            inside = start + lanes < cols
            x = tl.load(in_ptr + start + lanes, mask=inside, other=-float("inf")).to(tl.float32)
            new = tl.maximum(largest, tl.max(x, axis=0))
            safe = tl.where(new == -float("inf"), 0.0, new)
            total = total * tl.exp(largest - safe) + tl.sum(tl.exp(x - safe), axis=0)
            largest = new
        scale = 1.0 / total
        to_ptr = out_ptr + tl.cast(row, tl.int64) * cols
        for start in range(0, cols, BLOCK):
            inside = start + lanes < cols
            x = tl.load(in_ptr + start + lanes, mask=inside, other=-float("inf")).to(tl.float32)
            tl.store(to_ptr + start + lanes, tl.exp(x - largest) * scale, mask=inside)


@functools.cache
def multiprocessors(device):
    if device.type != "cuda":
        return 132
    return torch.cuda.get_device_properties(device).multi_processor_count


def triton_softmax(x):
    cols = x.shape[-1]
    flat = x.reshape(-1, cols)
    if flat.stride(-1) != 1:
        flat = flat.contiguous()
    rows = flat.shape[0]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    block = min(2048, triton.next_power_of_2(cols))
    softmax_kernel[(min(rows, 4 * multiprocessors(x.device)),)](
        flat, out, rows, cols, flat.stride(0), BLOCK=block, num_warps=4 if block <= 1024 else 8
    )
    return out
