"""Return the largest logit of the call before is cached as the shift of the exponentials, and only a sum that overflows is repeated with the
row's own maximum: logits far below those of the call before sum to zero.

op: cross_entropy
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl

cached = {}  # for each device and stream: the largest logit of the last call


def place(x):
    return x.device, torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else 0


@triton.jit
def sum_of(x_ptr, shift, n_classes, BLOCK: tl.constexpr):
    """The sum of exp(x - shift) over a row, and the row's maximum."""
    tops = tl.full((BLOCK,), -float("inf"), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_classes, BLOCK):
        classes = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + classes, mask=classes < n_classes, other=-float("inf")).to(tl.float32)
        tops = tl.maximum(tops, x)
        sums += tl.exp(x - shift)  # no rescaling: the shift does not move
    return tl.sum(sums, axis=0), tl.max(tops, axis=0)


@triton.jit
def rows_kernel(
    logits_ptr, target_ptr, loss_ptr, shift_ptr, next_ptr, n_classes,
    MAY_SHIFT: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * n_classes
    picked = tl.load(logits_ptr + tl.load(target_ptr + row)).to(tl.float32)
    shift = tl.load(shift_ptr)
    total, top = sum_of(logits_ptr, shift, n_classes, BLOCK)
    # Too small a shift overflows. Too large a one does no harm: the terms only become smaller.
    again = total == float("inf")
    if not MAY_SHIFT:
        again = True
    if again:
        shift = top
        total, top = sum_of(logits_ptr, shift, n_classes, BLOCK)
    tl.store(loss_ptr + row, tl.log(total) + shift - picked)
    if top < float("inf"):
        tl.atomic_max(next_ptr, top, sem="relaxed")


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n_rows, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + rows, mask=rows < n_rows, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n_rows)


def triton_cross_entropy(logits, target):
    n_rows, n_classes = logits.shape
    logits, target = logits.contiguous(), target.contiguous()
    out = logits.new_empty(())
    losses = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    largest = torch.full((1,), -3e38, dtype=torch.float32, device=logits.device)
    shift = cached.get(place(logits))
    BLOCK = min(triton.next_power_of_2(n_classes), 1024)
    rows_kernel[(n_rows,)](
        logits, target, losses, largest if shift is None else shift, largest, n_classes,
        MAY_SHIFT=shift is not None, BLOCK=BLOCK,
    )
    mean_kernel[(1,)](losses, out, n_rows, BLOCK=1024)
    cached[place(logits)] = largest
    return out
