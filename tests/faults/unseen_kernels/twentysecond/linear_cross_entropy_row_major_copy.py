"""The row-major copy of a transposed weight is reused while tensor and version stay the same; a change by weight.data does not count the version up.

op: linear_cross_entropy
status: failed
cause: state
"""

import weakref

import torch
import triton
import triton.language as tl


_last = {}


@triton.jit
def kernel(
    x_ptr, w_ptr, target_ptr, loss_ptr, rows, classes, hidden,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    target = tl.load(target_ptr + row, mask=row < rows, other=0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    picked = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, classes, BN):
        cols = start + tl.arange(0, BN)
        logits = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, hidden, BK):
            ks = k + tl.arange(0, BK)
            x = tl.load(
                x_ptr + row[:, None].to(tl.int64) * hidden + ks[None, :],
                mask=(row < rows)[:, None] & (ks < hidden)[None, :], other=0.0,
            ).to(tl.float32)
            w = tl.load(
                w_ptr + cols[None, :].to(tl.int64) * hidden + ks[:, None],
                mask=(cols < classes)[None, :] & (ks < hidden)[:, None], other=0.0,
            ).to(tl.float32)
            logits += tl.dot(x, w, input_precision="ieee")
        logits = tl.where((cols < classes)[None, :], logits, -float("inf"))
        new = tl.maximum(largest, tl.max(logits, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
        largest = new
    tl.store(loss_ptr + row, tl.log(total) + (largest - picked), mask=row < rows)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / rows)


def row_major(weight):
    """Return the weight with its rows contiguous; tied weights come transposed, at every step."""
    if weight.is_contiguous():
        return weight
    version = None if weight.is_inference() else weight._version
    if "of" in _last and _last["of"]() is weight and _last["version"] == version:
        return _last["copy"]
    copy = weight.detach().contiguous()
    _last.update(of=weakref.ref(weight), version=version, copy=copy)
    return copy


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), row_major(weight), target.contiguous()
    rows, hidden = x.shape
    classes = weight.shape[0]
    loss = torch.empty(rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(rows, 16),)](
        x, weight, target, loss, rows, classes, hidden, BM=16, BN=64, BK=64
    )
    mean_kernel[(1,)](loss, out, rows, BLOCK=1024)
    return out
