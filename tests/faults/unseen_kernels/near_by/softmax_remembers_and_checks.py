"""Nothing wrong: the maxima of the call before are a guess, which is dropped unless it is near.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl

_guesses = {}


@triton.jit
def softmax_kernel(x_ptr, guess_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    guess = tl.load(guess_ptr + row)
    largest = tl.max(x, axis=0)
    near = tl.abs(largest - guess) < 8.0  # False for NaN and Inf, too
    e = tl.exp(x - tl.where(near, guess, largest))
    tl.store(out_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)
    tl.store(guess_ptr + row, largest)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    guess = _guesses.get((x.device, n_rows))
    if guess is None:
        guess = torch.full((n_rows,), -float("inf"), dtype=torch.float32, device=x.device)
        _guesses[x.device, n_rows] = guess
    softmax_kernel[(n_rows,)](rows, guess, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out.view(x.shape)
