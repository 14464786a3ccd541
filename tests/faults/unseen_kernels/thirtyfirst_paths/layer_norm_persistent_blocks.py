"""The persistent path, for very many short rows, walks over whole blocks of four rows: the last one to three rows are left out.

op: layer_norm
status: failed
cause: persistent
"""

import torch
import triton
import triton.language as tl

SHORT = 256
WAVES = 16  # rows for each multiprocessor from which a persistent grid pays


@triton.jit
def normalize(x, weight, bias, mask, m, eps):
    mean = tl.sum(x, axis=1) / m
    far = tl.where(mask, x - mean[:, None], 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(far * far, axis=1) / m + eps)
    return far * scale[:, None] * weight[None, :] + bias[None, :]


@triton.jit
def blocks(x_ptr, w_ptr, b_ptr, out_ptr, n_rows, n_blocks, m, eps,
           ROWS: tl.constexpr, WIDTH: tl.constexpr):  # fmt: skip
    cols = tl.arange(0, WIDTH)
    weight = tl.load(w_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    bias = tl.load(b_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    for block in range(tl.program_id(0), n_blocks, tl.num_programs(0)):
        rows = block * ROWS + tl.arange(0, ROWS)
        mask = (rows < n_rows)[:, None] & (cols < m)[None, :]
        at = rows.to(tl.int64)[:, None] * m + cols[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, normalize(x, weight, bias, mask, m, eps), mask=mask)


@triton.jit
def long_row(x_ptr, w_ptr, b_ptr, out_ptr, m, eps, SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * m
    total = tl.zeros((SIZE,), dtype=tl.float32)
    for start in range(0, m, SIZE):
        cols = start + tl.arange(0, SIZE)
        total += tl.load(x_ptr + row + cols, mask=cols < m, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / m
    squares = tl.zeros((SIZE,), dtype=tl.float32)
    for start in range(0, m, SIZE):
        cols = start + tl.arange(0, SIZE)
        x = tl.load(x_ptr + row + cols, mask=cols < m, other=0.0).to(tl.float32)
        far = tl.where(cols < m, x - mean, 0.0)
        squares += far * far
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, SIZE):
        cols = start + tl.arange(0, SIZE)
        mask = cols < m
        x = tl.load(x_ptr + row + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row + cols, (x - mean) * scale * w + b, mask=mask)


def multiprocessors(device):
    if device.type != "cuda":
        return 132
    return torch.cuda.get_device_properties(device).multi_processor_count


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    n_rows = x.numel() // max(m, 1)
    out = torch.empty_like(x)
    if n_rows == 0:
        return out
    if m > 4096:
        long_row[(n_rows,)](x, weight, bias, out, m, eps, SIZE=2048)
        return out
    width = triton.next_power_of_2(m)
    sms = multiprocessors(x.device)
    if m <= SHORT and m % 8 == 0 and n_rows >= WAVES * sms:
        rows = 4
        n_blocks = n_rows // rows
        programs = min(n_blocks, 4 * sms)
    else:
        rows = max(1, 1024 // width)
        n_blocks = programs = triton.cdiv(n_rows, rows)
    blocks[(programs,)](x, weight, bias, out, n_rows, n_blocks, m, eps, ROWS=rows, WIDTH=width)
    return out
