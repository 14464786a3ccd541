"""Four kernels behind functions of their own.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def max_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    tl.store(out_ptr + row, tl.max(x.to(tl.float32), axis=0))


@triton.jit
def exp_kernel(x_ptr, max_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, tl.exp(x - tl.load(max_ptr + row)), mask=mask)


@triton.jit
def sum_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(x.to(tl.float32), axis=0))


@triton.jit
def divide_kernel(x_ptr, sum_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask)
    tl.store(out_ptr + row * n_cols + cols, x / tl.load(sum_ptr + row), mask=mask)


def launch_max(x):
    out = torch.empty(len(x), dtype=torch.float32, device=x.device)
    max_kernel[(len(x),)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def launch_exp(x, largest):
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    exp_kernel[(len(x),)](x, largest, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def launch_sum(x):
    out = torch.empty(len(x), dtype=torch.float32, device=x.device)
    sum_kernel[(len(x),)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def launch_divide(x, total, dtype):
    out = torch.empty(x.shape, dtype=dtype, device=x.device)
    divide_kernel[(len(x),)](x, total, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    numerators = launch_exp(rows, launch_max(rows))
    return launch_divide(numerators, launch_sum(numerators), x.dtype).view(x.shape)
