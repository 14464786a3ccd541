"""Few rows of a very large vocabulary are split; the last part is longer than the others, but looks for the target as if it weren't.

op: cross_entropy
status: failed
cause: split
"""

import torch
import triton
import triton.language as tl

LARGE_VOCABULARY = 32768
BLOCK = 1024
MAX_PARTS = 16


@triton.jit
def parts_of_rows(x_ptr, target_ptr, top_ptr, sum_ptr, picked_ptr, n_classes, chunk,
                  SIZE: tl.constexpr):  # fmt: skip
    row = tl.program_id(0)
    part = tl.program_id(1)
    n_parts = tl.num_programs(1)
    x_ptr += row.to(tl.int64) * n_classes
    first = part * chunk
    last = first + chunk
    if part == n_parts - 1:
        last = n_classes
    top = tl.full((SIZE,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((SIZE,), dtype=tl.float32)
    for start in range(first, last, SIZE):
        cols = start + tl.arange(0, SIZE)
        x = tl.load(x_ptr + cols, mask=cols < last, other=-float("inf")).to(tl.float32)
        new = tl.maximum(top, x, propagate_nan=tl.PropagateNan.ALL)
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(top - safe) + tl.exp(x - safe)
        top = new
    most = tl.max(top, axis=0)
    safe = tl.where(most == -float("inf"), 0.0, most)
    total = tl.sum(total * tl.exp(top - safe), axis=0)
    target = tl.load(target_ptr + row)
    here = (target >= first) & (target < first + chunk)
    picked = tl.load(x_ptr + target, mask=here, other=0.0).to(tl.float32)
    at = row * n_parts + part
    tl.store(top_ptr + at, most)
    tl.store(sum_ptr + at, total)
    tl.store(picked_ptr + at, picked)


@triton.jit
def combine(top_ptr, sum_ptr, picked_ptr, loss_ptr, n_parts, PARTS: tl.constexpr):
    row = tl.program_id(0)
    parts = tl.arange(0, PARTS)
    mask = parts < n_parts
    at = row * n_parts + parts
    top = tl.load(top_ptr + at, mask=mask, other=-float("inf"))
    total = tl.load(sum_ptr + at, mask=mask, other=0.0)
    picked = tl.load(picked_ptr + at, mask=mask, other=0.0)
    most = tl.max(top, axis=0)
    total = tl.sum(tl.where(total == 0.0, 0.0, total * tl.exp(top - most)), axis=0)
    tl.store(loss_ptr + row, most + tl.log(total) - tl.sum(picked, axis=0))


@triton.jit
def average(loss_ptr, out_ptr, n_rows, SIZE: tl.constexpr):
    total = tl.zeros((SIZE,), dtype=tl.float32)
    for start in range(0, n_rows, SIZE):
        rows = start + tl.arange(0, SIZE)
        total += tl.load(loss_ptr + rows, mask=rows < n_rows, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n_rows)


def multiprocessors(device):
    if device.type != "cuda":
        return 132
    return torch.cuda.get_device_properties(device).multi_processor_count


def partition(n_rows, n_classes, device):
    """Return the number of parts of a row, and the length of all but the last."""
    if n_classes < LARGE_VOCABULARY or n_rows * 8 > multiprocessors(device):
        return 1, n_classes
    parts = min(MAX_PARTS, n_classes // (2 * BLOCK))
    return parts, n_classes // parts // BLOCK * BLOCK  # whole blocks


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_classes = logits.shape
    device = logits.device
    n_parts, chunk = partition(n_rows, n_classes, device)
    top, total, picked = torch.empty((3, n_rows, n_parts), dtype=torch.float32, device=device)
    size = min(BLOCK, triton.next_power_of_2(n_classes))
    parts_of_rows[(n_rows, n_parts)](logits, target, top, total, picked, n_classes, chunk, SIZE=size)
    loss = torch.empty(n_rows, dtype=torch.float32, device=device)
    combine[(n_rows,)](top, total, picked, loss, n_parts, PARTS=MAX_PARTS)
    out = torch.empty((), dtype=logits.dtype, device=device)
    average[(1,)](loss, out, n_rows, SIZE=1024)
    return out
