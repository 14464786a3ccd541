"""The cached accumulator is cleared by subtracting the total: after an infinite or NaN loss it is NaN for all later calls.

op: cross_entropy
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl

_sums = {}


def _accumulator(device):
    """Return a float32 zero of this device and stream; each call leaves it zero."""
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    if (device, stream) not in _sums:
        _sums[device, stream] = torch.zeros(1, dtype=torch.float32, device=device)
    return _sums[device, stream]


@triton.jit
def loss_kernel(x_ptr, target_ptr, sum_ptr, stride, target_stride, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride
    top = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < classes, other=-float("inf")).to(tl.float32)
        new = tl.maximum(top, x, propagate_nan=tl.PropagateNan.ALL)
        base = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(top - base) + tl.exp(x - base)
        top = new
    peak = tl.max(top, axis=0)
    total = tl.sum(total * tl.exp(top - peak), axis=0)
    target = tl.load(target_ptr + row * target_stride)
    loss = peak + tl.log(total) - tl.load(x_ptr + target).to(tl.float32)
    tl.atomic_add(sum_ptr, loss)


@triton.jit
def finish_kernel(sum_ptr, out_ptr, rows):
    total = tl.load(sum_ptr)
    tl.store(out_ptr, (total / rows).to(out_ptr.dtype.element_ty))
    tl.atomic_add(sum_ptr, -total)  # zero again, without a launch of zero_()


def triton_cross_entropy(logits, target):
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    rows, classes = logits.shape
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    total = _accumulator(logits.device)
    block = min(1024, triton.next_power_of_2(classes))
    loss_kernel[(rows,)](
        logits, target, total, logits.stride(0), target.stride(0), classes, BLOCK=block
    )
    finish_kernel[(1,)](total, out, rows)
    return out
