"""Tests of random masks, with a stated rate of false alarms; for the `check` of a random op.

A mask keeps each element with probability q, independently of everything else. Each test compares
a number of successes with a binomial distribution: its tail is at most 2 * exp(-n * KL(k/n || q))
(Chernoff), for any n. Its pairs of elements never share one, so that the bound holds for each lag
too. One test calls a right mask wrong with a probability of at most `FALSE_ALARM`; a mask has fewer
than `MAX_TESTS` of them, so all tests together do so with at most 1e-9.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import torch

FALSE_ALARM = 1e-12
MAX_TESTS = 1000
STEPS = (2, 3, 4, 5)


def find_mask_fault(
    keep: torch.Tensor, q: float, visible: torch.Tensor | None = None
) -> str | None:
    """Return what is wrong with one mask, None if nothing is.

    Args:
        keep: True where an element is kept; any shape.
        q: probability that an element is kept, 0 to 1.
        visible: False where a kept element looks like a dropped one; None: nowhere.
    """
    readable = torch.ones_like(keep) if visible is None else visible
    successes, n = int((keep & readable).sum()), int(readable.sum())
    if is_unlikely(successes, n, q):
        share = successes / n  # of dependent elements it is often far from q
        if 0 < share < 1 and (dependence := _find_lag(keep, share, readable)):
            return dependence
        spread = 7 * math.sqrt(n * q * (1 - q)) + 1
        return f"{successes} of {n} elements were kept: should be {n * q:.0f} ± {spread:.0f}"
    return _find_lag(keep, q, readable) if 0 < q < 1 else None


def find_dependence(
    first: torch.Tensor, second: torch.Tensor, q: float, visible: torch.Tensor | None = None
) -> str | None:
    """Return how two masks of one shape depend on each other, None if they look independent.

    The second may also be the first one moved or stretched: a seed that only shifts the stream, or
    is its step.

    Args:
        first: of one call.
        second: of a call with another seed.
        q: probability that an element is kept; 0 and 1 leave nothing to compare.
        visible: False where a kept element looks like a dropped one; None: nowhere.
    """
    readable = torch.ones_like(first) if visible is None else visible
    a, b, s = first.flatten(), second.flatten(), readable.flatten()
    n = len(a)
    if not 0 < q < 1:
        return None
    for shift in (0, *_lags(n), *_strides(first.shape)):
        for x, y, where in ((a, b, "later"), (b, a, "earlier")):
            both = s[: n - shift] & s[shift:]
            if _are_dependent(x[: n - shift], y[shift:], both, q):
                return f"the same mask, {shift} elements {where}" if shift else "dependent masks"
    return _find_stretch(a, b, s, q)


def _find_stretch(a: torch.Tensor, b: torch.Tensor, s: torch.Tensor, q: float) -> str | None:
    """Return how every second to fifth element of one mask gives the other; None: it does not."""
    for step, (x, y) in itertools.product(STEPS, ((a, b), (b, a))):
        for start in range(step):
            parts, visible = x[start::step], s[start::step]
            both = visible & s[: len(parts)]
            if _are_dependent(parts, y[: len(parts)], both, q):
                return f"the same mask, of every {step} elements one"
    return None


def is_unlikely(successes: int, n: int, q: float) -> bool:
    """Return whether a binomial distribution gives so few or so many successes too rarely."""
    return n > 0 and math.log(2) - n * _divergence(successes / n, q) < math.log(FALSE_ALARM)


def _divergence(share: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of two probabilities of success, in nats."""
    total = 0.0
    for observed, expected in ((share, q), (1 - share, 1 - q)):
        if observed > 0:
            total += math.inf if expected <= 0 else observed * math.log(observed / expected)
    return total


def _are_dependent(first: torch.Tensor, second: torch.Tensor, both: torch.Tensor, q: float) -> bool:
    """Test pairs that share no element: the second is kept as often after the rarer first value."""
    rare = (~first if q >= 0.5 else first) & both
    return is_unlikely(int((second & rare).sum()), int(rare.sum()), q)


def _find_lag(keep: torch.Tensor, q: float, readable: torch.Tensor) -> str | None:
    """Return the first distance at which elements depend on each other, along each dimension."""
    for dim in range(keep.dim()):
        rows = keep.movedim(dim, -1), readable.movedim(dim, -1)
        for lag in _lags(keep.shape[dim]):
            if _lag_is_unlikely(*rows, lag, q):
                return f"elements {lag} apart in dimension {dim} share their random numbers"
    flat = keep.flatten(), readable.flatten()
    for lag in _lags(keep.numel()) if keep.dim() > 1 else ():
        if _lag_is_unlikely(*flat, lag, q):
            return f"elements {lag} apart in memory share their random numbers"
    return None


def _lag_is_unlikely(keep: torch.Tensor, readable: torch.Tensor, lag: int, q: float) -> bool:
    """Test the pairs at a distance in two halves: in each half no two pairs share an element."""
    first, second = keep[..., :-lag], keep[..., lag:]
    both = readable[..., :-lag] & readable[..., lag:]
    odd = torch.arange(first.shape[-1], device=keep.device) // lag % 2 == 1
    return any(_are_dependent(first, second, both & half, q) for half in (odd, ~odd))


def _lags(n: int) -> Iterator[int]:
    """Yield 1 to 8, then the powers of two and three times them, below n."""
    most = max(n, 1).bit_length()
    lags = {*range(1, 9), *(2**i for i in range(most)), *(3 * 2**i for i in range(most))}
    yield from sorted(lag for lag in lags if lag < n)


def _strides(shape: torch.Size) -> tuple[int, ...]:
    """Return the distances in memory of neighbors in each dimension."""
    strides = {math.prod(shape[i + 1 :]) for i in range(len(shape))}
    return tuple(s for s in strides if s < math.prod(shape))
