"""Partial maxima and sums live in a scratch kept between calls, filled with neutral ones only when it is made.

op: softmax
status: failed
cause: state
"""

import functools

import torch
import triton
import triton.language as tl

SPLITS = 32


@triton.jit
def _partial(x_ptr, top_ptr, sum_ptr, n_cols, SPAN: tl.constexpr, SPLITS: tl.constexpr):
    row, split = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = split * SPAN + tl.arange(0, SPAN)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    safe = tl.where(top == -float("inf"), 0.0, top)
    tl.store(top_ptr + row * SPLITS + split, top)
    tl.store(sum_ptr + row * SPLITS + split, tl.sum(tl.exp(x - safe), axis=0))


@triton.jit
def _finish(x_ptr, top_ptr, sum_ptr, out_ptr, n_cols, SPAN: tl.constexpr, SPLITS: tl.constexpr):
    row, split = tl.program_id(0).to(tl.int64), tl.program_id(1)
    slots = row * SPLITS + tl.arange(0, SPLITS)
    tops = tl.load(top_ptr + slots)
    sums = tl.load(sum_ptr + slots)
    top = tl.max(tops, axis=0)
    total = tl.sum(sums * tl.exp(tops - top), axis=0)
    cols = split * SPAN + tl.arange(0, SPAN)
    m = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=m, other=-float("inf")).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, tl.exp(x - top) / total, mask=m)


@functools.lru_cache(maxsize=64)
def _scratch(n_rows, device):
    # Slots that no program fills count for nothing.
    top = torch.full((n_rows, SPLITS), -float("inf"), device=device)
    return top, torch.zeros((n_rows, SPLITS), device=device)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    span = max(256, triton.next_power_of_2(triton.cdiv(n_cols, SPLITS)))
    grid = (n_rows, triton.cdiv(n_cols, span))
    top, total = _scratch(n_rows, x.device)
    _partial[grid](rows, top, total, n_cols, SPAN=span, SPLITS=SPLITS)
    _finish[grid](rows, top, total, out, n_cols, SPAN=span, SPLITS=SPLITS)
    return out.view(x.shape)
