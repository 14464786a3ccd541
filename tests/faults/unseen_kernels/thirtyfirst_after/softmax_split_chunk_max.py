"""Few long rows are split in chunks over programs; a chunk that is all -inf makes its row NaN.

op: softmax
status: failed
cause: split
"""

import torch
import triton
import triton.language as tl

CHUNK = 4096
LONG = 4 * CHUNK
MULTIPROCESSORS = 132


@triton.jit
def whole_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * n_cols
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + base + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + base + cols, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def online_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * n_cols
    m = -float("inf")
    s = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        scale = tl.where(m == m_new, 1.0, tl.exp(m - m_new))
        s = s * scale + tl.sum(tl.where(x == -float("inf"), 0.0, tl.exp(x - m_new)), axis=0)
        m = m_new
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + base + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + base + cols, tl.exp(x - m) / s, mask=mask)


@triton.jit
def parts_kernel(x_ptr, max_ptr, sum_ptr, n_cols, n_parts, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x_ptr += row.to(tl.int64) * n_cols
    x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    tl.store(max_ptr + row * n_parts + part, m)
    tl.store(sum_ptr + row * n_parts + part, tl.sum(tl.exp(x - m), axis=0))


@triton.jit
def write_kernel(
    x_ptr, out_ptr, max_ptr, sum_ptr, n_cols, n_parts, BLOCK: tl.constexpr, PARTS: tl.constexpr
):
    row, part = tl.program_id(0), tl.program_id(1)
    parts = tl.arange(0, PARTS)
    maxima = tl.load(max_ptr + row * n_parts + parts, mask=parts < n_parts, other=-float("inf"))
    sums = tl.load(sum_ptr + row * n_parts + parts, mask=parts < n_parts, other=0.0)
    m = tl.max(maxima, axis=0)
    s = tl.sum(sums * tl.exp(maxima - m), axis=0)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    base = row.to(tl.int64) * n_cols
    x = tl.load(x_ptr + base + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    tl.store(out_ptr + base + cols, tl.exp(x - m) / s, mask=cols < n_cols)


def multiprocessors(device):
    if device.type != "cuda":
        return MULTIPROCESSORS
    return torch.cuda.get_device_properties(device).multi_processor_count


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    if n_cols >= LONG and n_rows * 8 < multiprocessors(x.device):
        n_parts = triton.cdiv(n_cols, CHUNK)
        maxima = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
        sums = torch.empty_like(maxima)
        grid = (n_rows, n_parts)
        parts_kernel[grid](x, maxima, sums, n_cols, n_parts, BLOCK=CHUNK)
        PARTS = triton.next_power_of_2(n_parts)
        write_kernel[grid](x, out, maxima, sums, n_cols, n_parts, BLOCK=CHUNK, PARTS=PARTS)
    elif n_cols <= 8192:
        whole_kernel[(n_rows,)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    else:
        online_kernel[(n_rows,)](x, out, n_cols, BLOCK=2048)
    return out
