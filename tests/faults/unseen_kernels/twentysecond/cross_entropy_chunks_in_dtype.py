"""More than 8192 classes are split in chunks whose log-sums are stored in the logits' type: in bfloat16 with large logits the loss is a difference of rounded numbers.

op: cross_entropy
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, target_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * classes + cols, mask=cols < classes, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    picked = tl.load(x_ptr + row * classes + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (largest - picked))


@triton.jit
def chunks_kernel(x_ptr, lse_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    cols = chunk * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * classes + cols, mask=cols < classes, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    shift = tl.where(largest == -float("inf"), 0.0, largest)
    total = tl.sum(tl.exp(x - shift), axis=0)
    tl.store(lse_ptr + row * tl.num_programs(1) + chunk, shift + tl.log(total))


@triton.jit
def join_kernel(x_ptr, target_ptr, lse_ptr, loss_ptr, classes, chunks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    lse = tl.load(lse_ptr + row * chunks + at, mask=at < chunks, other=-float("inf")).to(tl.float32)
    largest = tl.max(lse, axis=0)
    total = tl.sum(tl.exp(lse - largest), axis=0)
    picked = tl.load(x_ptr + row * classes + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (largest - picked))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / rows)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    rows, classes = logits.shape
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    out = logits.new_empty(())
    if classes <= 8192:
        rows_kernel[(rows,)](logits, target, loss, classes, BLOCK=triton.next_power_of_2(classes))
    else:
        chunks = triton.cdiv(classes, 4096)
        lse = logits.new_empty((rows, chunks))
        chunks_kernel[(rows, chunks)](logits, lse, classes, BLOCK=4096)
        join_kernel[(rows,)](
            logits, target, lse, loss, classes, chunks, BLOCK=triton.next_power_of_2(chunks)
        )
    mean_kernel[(1,)](loss, out, rows, BLOCK=1024)
    return out
