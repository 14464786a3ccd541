"""The maxima of the call before are the guess for this one; only a guess too low is noticed.

op: softmax
status: failed
cause: stale_state
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
    e = tl.exp(x - guess)  # does not wait for the maximum
    largest = tl.max(x, axis=0)
    if largest - guess > 60.0:  # the guess was too low: e may be infinite
        e = tl.exp(x - largest)
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
