"""Tests of random masks, with a stated rate of false alarms; for the `check` of a random op.

A mask keeps each element with probability q, independently of everything else. Each test compares
a number of successes with a binomial distribution: its tail is at most 2 * exp(-n * KL(k/n || q))
(Chernoff), for any n. Its pairs of elements never share one, so that the bound holds for each lag
too. One test calls a right mask wrong with a probability of at most `FALSE_ALARM`; a mask has fewer
than `MAX_TESTS` of them, so all tests together do so with at most 1e-9. A Fourier transform tells
which lags are worth a test. All lags together count as one: each of those that correlate most gets
its part of that probability. So do all pairs of mirrored places, and all pairs that differ by an
exclusive or.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator
from operator import itemgetter

import torch

from triton_magics.operators._mask_pairs import most_coupled

FALSE_ALARM = 1e-12
MAX_TESTS = 1000
STEPS = (2, 3, 4, 5)
N_MOST = 4  # lags that correlate most, runs with equal numbers
SUSPICIOUS = 3.0  # standard deviations; a dependence that a test calls one has 5 at its lag
ON_CPU = 2**18  # elements; a GPU takes three times as long for the thousand operations on them
BASE = 0x2545F4914F6CDD1D  # odd, so that it has an inverse modulo 2^64
INVERSE = (pow(BASE, -1, 2**64) + 2**63) % 2**64 - 2**63


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch's operations on the CPU take one thread: on short masks others only wait."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@_one_thread()
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
    if keep.numel() <= ON_CPU:
        keep, readable = keep.cpu(), readable.cpu()
    successes, n = int((keep & readable).sum()), int(readable.sum())
    if is_unlikely(successes, n, q):
        share = successes / n  # of dependent elements it is often far from q
        if 0 < share < 1 and (dependence := _find_lag(keep, share, readable)):
            return dependence
        spread = 7 * math.sqrt(n * q * (1 - q)) + 1
        return f"{successes} of {n} elements were kept: should be {n * q:.0f} ± {spread:.0f}"
    if not 0 < q < 1:
        return None
    if dependence := _find_lag(keep, q, readable):
        return dependence
    if pairs := _find_coupled(keep, keep, readable, q):
        return f"elements {pairs} share their random numbers"
    if repeat := _find_repeat(keep.flatten(), readable.flatten(), q):
        return "the {} elements from {} on have the mask of those from {} on".format(*repeat)
    return None


@_one_thread()
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
    if first.numel() <= ON_CPU:
        first, second, readable = first.cpu(), second.cpu(), readable.cpu()
    a, b, s = first.flatten(), second.flatten(), readable.flatten()
    n = len(a)
    if not 0 < q < 1:
        return None
    usual = (0, *_lags(n), *_strides(first.shape))
    if dependence := _find_shift(a, b, s, q, usual) or _find_stretch(a, b, s, q):
        return dependence
    if pairs := _find_coupled(first, second, readable, q):
        return f"the same random numbers in elements {pairs}"
    between = torch.zeros_like(s[:1])  # no run goes from one mask to the other
    if repeat := _find_repeat(torch.cat((a, between, b)), torch.cat((s, between, s)), q):
        length, later, earlier = repeat
        return f"the same mask in {length} elements from {earlier} and {later - n - 1} on"
    return None


def _find_coupled(
    first: torch.Tensor, second: torch.Tensor, readable: torch.Tensor, q: float
) -> str | None:
    """Return which pairs of places of two masks depend on each other, in words; None: no pairs."""
    for pairs in most_coupled(first, second, readable, q):
        if _are_dependent(pairs.first, pairs.second, pairs.readable, q, pairs.n_tests):
            return pairs.where
    return None


def _find_repeat(
    keep: torch.Tensor, readable: torch.Tensor, q: float
) -> tuple[int, int, int] | None:
    """Return the length of a run that occurs twice, and its places, the later one first.

    Two runs of a right mask are equal with a probability of at most max(q, 1 - q)^length, whether
    they overlap or not. They are so long that all pairs together are one test.
    """
    n = len(keep)
    chances = 2 * math.log(max(n, 2)) - math.log(FALSE_ALARM)
    length = math.ceil(-chances / math.log(max(q, 1 - q)))
    if n < 2 * length:
        return None
    hidden = (~readable).long().cumsum(0)
    hidden = torch.cat((hidden.new_zeros(1), hidden))
    starts = (hidden[length:] == hidden[:-length]).nonzero().flatten()
    hashes = _hash_runs(keep, length)[starts]
    ordered, places = hashes.sort(stable=True)
    equal = (ordered[1:] == ordered[:-1]).nonzero().flatten()[:N_MOST]
    for i in equal.tolist():
        earlier, later = int(starts[places[i]]), int(starts[places[i + 1]])
        if torch.equal(keep[earlier : earlier + length], keep[later : later + length]):
            return length, later, earlier
    return None


def _hash_runs(keep: torch.Tensor, length: int) -> torch.Tensor:
    """Return a number for each run of so many elements, equal for equal runs: modulo 2^64.

    It is the value of a polynomial at `BASE`, from differences of sums over all elements.
    """
    powers = torch.full_like(keep, BASE, dtype=torch.int64).cumprod(0)
    sums = torch.cat((powers.new_zeros(1), (keep * powers).cumsum(0)))
    inverse = torch.full_like(powers, INVERSE).cumprod(0)
    return (sums[length:] - sums[:-length]) * inverse[: len(sums) - length]


def _find_shift(
    a: torch.Tensor, b: torch.Tensor, s: torch.Tensor, q: float, usual: Iterable[int]
) -> str | None:
    """Return the shift at which one mask follows the other; None: there is no such shift."""
    ways = ((a, b, "later"), (b, a, "earlier"))
    tests = ((*each, x, y, where) for x, y, where in ways for each in _tests(x, y, s, q, usual))
    for n_tests, shift, x, y, where in sorted(tests, key=itemgetter(0, 1)):
        n = len(x) - shift
        if _are_dependent(x[:n], y[shift:], s[:n] & s[shift:], q, n_tests):
            return f"the same mask, {shift} elements {where}" if shift else "dependent masks"
    return None


def _find_stretch(a: torch.Tensor, b: torch.Tensor, s: torch.Tensor, q: float) -> str | None:
    """Return how every second to fifth element of one mask gives the other; None: it does not."""
    for step, (x, y) in itertools.product(STEPS, ((a, b), (b, a))):
        for start in range(step):
            parts, visible = x[start::step], s[start::step]
            both = visible & s[: len(parts)]
            if _are_dependent(parts, y[: len(parts)], both, q):
                return f"the same mask, of every {step} elements one"
    return None


def is_unlikely(successes: int, n: int, q: float, n_tests: int = 1) -> bool:
    """Return whether a binomial distribution gives so few or so many successes too rarely.

    Args:
        successes, n, q: of the distribution.
        n_tests: that share the probability of a false alarm.
    """
    limit = math.log(FALSE_ALARM / n_tests)
    return n > 0 and math.log(2) - n * _divergence(successes / n, q) < limit


def _divergence(share: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of two probabilities of success, in nats."""
    total = 0.0
    for observed, expected in ((share, q), (1 - share, 1 - q)):
        if observed > 0:
            total += math.inf if expected <= 0 else observed * math.log(observed / expected)
    return total


def _are_dependent(
    first: torch.Tensor, second: torch.Tensor, both: torch.Tensor, q: float, n_tests: int = 1
) -> bool:
    """Test pairs that share no element: the second is kept as often after the rarer first value."""
    rare = (~first if q >= 0.5 else first) & both
    return is_unlikely(int((second & rare).sum()), int(rare.sum()), q, n_tests)


def _tests(
    first: torch.Tensor,
    second: torch.Tensor,
    readable: torch.Tensor,
    q: float,
    usual: Iterable[int],
    *,
    any_lag: bool = True,
) -> list[tuple[int, int]]:
    """Return the tests of two masks of rows that are worth it: (tests that share an alarm, lag).

    Of the usual lags they are those at which the second mask correlates with the first one, and of
    all lags above 0 those where it does most.
    """
    n = first.shape[-1]
    masks = (first,) if first is second else (first, second)
    spectra = [torch.fft.rfft((m.float() - q) * readable, 2 * n) for m in masks]
    spectrum = (spectra[0].conj() * spectra[-1]).reshape(-1, n + 1).sum(0)
    sums = torch.fft.irfft(spectrum, 2 * n)[:n]  # over the pairs at each lag
    pairs = torch.arange(n, 0, -1, device=sums.device)
    scores = sums.abs() / pairs.sqrt()
    spread = q * (1 - q) * (first.numel() / n) ** 0.5 * readable.float().mean()
    is_suspicious = (scores > SUSPICIOUS * spread).tolist()
    tests = [(1, lag) for lag in usual if is_suspicious[lag]]
    most = scores[1:].topk(min(N_MOST, n - 1)).indices.tolist() if any_lag else ()
    return [*tests, *((2 * n, 1 + lag) for lag in most)]


def _find_lag(keep: torch.Tensor, q: float, readable: torch.Tensor) -> str | None:
    """Return the first distance at which elements depend on each other, along each dimension."""
    for dim in range(keep.dim()):
        rows, own = keep.movedim(dim, -1), readable.movedim(dim, -1)
        for _, lag in _tests(rows, rows, own, q, _lags(keep.shape[dim]), any_lag=False):
            if _lag_is_unlikely(rows, own, lag, q):
                return f"elements {lag} apart in dimension {dim} share their random numbers"
    flat, own, n = keep.flatten(), readable.flatten(), keep.numel()
    for n_tests, lag in _tests(flat, flat, own, q, _lags(n) if keep.dim() > 1 else ()):
        if _lag_is_unlikely(flat, own, lag, q, n_tests):
            return f"elements {lag} apart in memory share their random numbers"
    return None


def _lag_is_unlikely(
    keep: torch.Tensor, readable: torch.Tensor, lag: int, q: float, n_tests: int = 1
) -> bool:
    """Test the pairs at a distance in two halves: in each half no two pairs share an element."""
    first, second = keep[..., :-lag], keep[..., lag:]
    both = readable[..., :-lag] & readable[..., lag:]
    odd = torch.arange(first.shape[-1], device=keep.device) // lag % 2 == 1
    halves = (both & half for half in (odd, ~odd))
    return any(_are_dependent(first, second, half, q, n_tests) for half in halves)


def _lags(n: int) -> Iterator[int]:
    """Yield 1 to 8, then the powers of two and three times them, below n."""
    most = max(n, 1).bit_length()
    lags = {*range(1, 9), *(2**i for i in range(most)), *(3 * 2**i for i in range(most))}
    yield from sorted(lag for lag in lags if lag < n)


def _strides(shape: torch.Size) -> tuple[int, ...]:
    """Return the distances in memory of neighbors in each dimension."""
    strides = {math.prod(shape[i + 1 :]) for i in range(len(shape))}
    return tuple(s for s in strides if s < math.prod(shape))
