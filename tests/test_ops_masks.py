"""Tests of the random masks' battery: its false alarms, and what it catches."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from triton_magics.operators import _masks
from triton_magics.operators._masks import (
    FALSE_ALARM,
    MAX_TESTS,
    find_dependence,
    find_mask_fault,
    is_unlikely,
)

pytestmark = pytest.mark.in_turn

Make = Callable[[tuple[int, ...], int], torch.Tensor]
SHAPE = (4, 32, 48)


def uniform(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def test_all_tests_together_have_one_false_alarm_in_1e9(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask is tested alone, and beside those of seven other seeds."""
    weights: list[float] = []

    def count(successes: int, n: int, q: float, n_tests: int = 1) -> bool:
        weights.append(1.0 if n_tests == 1 else 0.0)
        return False

    monkeypatch.setattr(_masks, "is_unlikely", count)
    first, second = (uniform((256, 256), seed) < 0.5 for seed in (1, 2))
    assert find_mask_fault(first, 0.5) is None
    assert all(find_dependence(first, second, 0.5) is None for _ in range(7))
    assert sum(weights) + 2 * (1 + 7) <= MAX_TESTS  # all lags of a mask are one, all runs too
    assert weights.count(0.0) > 7
    assert FALSE_ALARM * MAX_TESTS <= 1e-9


@pytest.mark.parametrize(("q", "share"), [(0.5, 0.2), (0.9, 0.3)])
def test_draws_that_far_elements_share_are_refused(q: float, share: float) -> None:
    """A part of the elements has the draws of others, at a distance that no list has."""
    n = 64 * 257
    for lag in (37, 641, 2571, 9003):
        draws = uniform((n,), lag)
        copied = torch.where(uniform((n,), lag + 1) < share, draws.roll(lag), draws)
        fault = find_mask_fault((copied < q).reshape(64, 257), q)
        assert fault is not None
        assert f"elements {lag} apart" in fault or f"elements {n - lag} apart" in fault


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_a_run_that_occurs_twice_is_refused(q: float) -> None:
    keep = uniform((128, 300), 1) < q
    assert find_mask_fault(keep, q) is None
    flat = keep.flatten().clone()
    flat[30011:30511] = flat[777:1277]  # 1 in 77, at a distance of its own
    fault = find_mask_fault(flat.reshape(128, 300), q)
    assert fault is not None
    length = int(fault.split()[1])
    places = [int(word) for word in fault.split() if word.isdigit()][1:]
    assert 60 < length <= 500
    assert places[0] - places[1] == 30011 - 777


def test_masks_of_two_seeds_that_share_a_run_are_refused() -> None:
    first, second = (uniform((20000,), seed) < 0.5 for seed in (1, 2))
    assert find_dependence(first, second, 0.5) is None
    second[17001:17101] = first[503:603]
    fault = find_dependence(first, second, 0.5)
    assert fault is not None
    assert fault.startswith("the same mask in ")
    earlier, later = (int(word) for word in fault.split()[-4:] if word.isdigit())
    assert later - earlier == 17001 - 503


def test_hidden_elements_count_for_no_run() -> None:
    keep, visible = uniform((2**14,), 1) < 0.5, torch.ones(2**14, dtype=torch.bool)
    keep[9000:9500] = keep[100:600]
    assert find_mask_fault(keep, 0.5, visible)
    visible[9000:9500:40] = False
    assert find_mask_fault(keep, 0.5, visible) is None


@pytest.mark.parametrize("shift", [-7001, -333, 37, 641, 9003])
def test_the_mask_of_another_seed_far_along_is_refused(shift: int) -> None:
    stream = uniform((4 * 2**14,), 1)
    first = stream[2**14 : 2 * 2**14] < 0.5
    second = stream[2**14 + shift : 2 * 2**14 + shift] < 0.5
    where = "later" if shift < 0 else "earlier"
    fault = find_dependence(first, second, 0.5)
    assert fault == f"the same mask, {abs(shift)} elements {where}"


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
def test_bound_is_above_the_binomial_tail(q: float) -> None:
    for n in (1, 10, 64, 200):
        chances = [math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]
        refused = sum(p for k, p in enumerate(chances) if is_unlikely(k, n, q))
        assert refused <= FALSE_ALARM


@pytest.mark.parametrize("q", [0.5, pytest.param(0.9, marks=pytest.mark.slow)])
def test_right_masks_are_never_refused(q: float) -> None:
    shapes = [(91,), (7, 13), (2, 3, 129), (4, 33, 40), (2, 2, 8, 8)]
    for seed in range(500):
        shape = shapes[seed % len(shapes)]
        keep, other = uniform(shape, seed) < q, uniform(shape, seed + 5000) < q
        assert find_mask_fault(keep, q) is None
        assert find_dependence(keep, other, q) is None


def test_mask_that_keeps_all_or_nothing_is_checked_exactly() -> None:
    ones = torch.ones(SHAPE, dtype=torch.bool)
    assert find_mask_fault(ones, 1.0) is None
    assert find_mask_fault(~ones, 0.0) is None
    almost = ones.clone()
    almost[1, 2, 3] = False
    assert find_mask_fault(almost, 1.0)
    assert find_mask_fault(~almost, 0.0)
    assert find_dependence(ones, ones, 1.0) is None


def mirror(draws: torch.Tensor) -> torch.Tensor:
    """Give the second half the draws of the first one, in reverse."""
    half = draws.flatten()[: draws.numel() // 2]
    return torch.cat((half, half.flip(0))).reshape(draws.shape)


ONE_MASK: dict[str, Make] = {
    "other rate": lambda shape, seed: uniform(shape, seed) * 0.85,
    "neighbors share a draw": lambda shape, seed: uniform(
        (*shape[:-1], shape[-1] // 2), seed
    ).repeat_interleave(2, -1),
    "four share a draw": lambda shape, seed: uniform(
        (*shape[:-1], shape[-1] // 4), seed
    ).repeat_interleave(4, -1),
    "rows in pairs": lambda shape, seed: uniform(
        (*shape[:-2], shape[-2] // 2, shape[-1]), seed
    ).repeat_interleave(2, -2),
    "one mask for every matrix": lambda shape, seed: uniform(shape[1:], seed).expand(shape),
    "one mask for every row": lambda shape, seed: uniform(shape[-1:], seed).expand(shape),
    "one mask for every block": lambda shape, seed: (
        uniform((64,), seed).repeat(math.prod(shape) // 64).reshape(shape)
    ),
    "neighbors are opposites": lambda shape, seed: torch.stack(
        ((u := uniform((*shape[:-1], shape[-1] // 2), seed)), 1 - u), -1
    ).reshape(shape),
    "the second half mirrors the first": lambda shape, seed: mirror(uniform(shape, seed)),
    "each row mirrors its first half": lambda shape, seed: torch.cat(
        ((u := uniform((*shape[:-1], shape[-1] // 2), seed)), u.flip(-1)), -1
    ),
    "draws by a hash without bit 9": lambda shape, seed: uniform((2**13,), seed)[
        torch.arange(math.prod(shape)) & ~(1 << 9)
    ].reshape(shape),
    "draws of i * j": lambda shape, seed: uniform((shape[0], 32 * 48), seed)[
        :, (torch.arange(32)[:, None] * torch.arange(48)).flatten()
    ].reshape(shape),
    "a third of the elements copies": lambda shape, seed: torch.where(
        uniform(shape, seed + 1) < 1 / 3, uniform(shape, seed).roll(1, -1), uniform(shape, seed)
    ),
}
TWO_MASKS: dict[str, Make] = {
    "one mask for all seeds": lambda shape, seed: uniform(shape, 0),
    "seed moves the stream": lambda shape, seed: uniform((math.prod(shape) + 100,), 0)[
        seed : seed + math.prod(shape)
    ].reshape(shape),
    "seed moves the stream by rows": lambda shape, seed: (
        uniform((math.prod(shape) + 100 * shape[-1],), 0)[seed * shape[-1] :][: math.prod(shape)]
    ).reshape(shape),
    "seed is the step of the stream": lambda shape, seed: uniform((20 * math.prod(shape),), 0)[
        seed + 1 :: seed + 1
    ][: math.prod(shape)].reshape(shape),
    "seed by an exclusive or with the place": lambda shape, seed: uniform((2**15,), 0)[
        torch.arange(math.prod(shape)) ^ (37 * seed)
    ].reshape(shape),
    "seed is opposite": lambda shape, seed: (
        uniform(shape, 0) if seed % 2 else 1 - uniform(shape, 0)
    ),
}


@pytest.mark.parametrize("fault", ONE_MASK)
@pytest.mark.parametrize("q", [0.5, 0.9])
def test_mask_with_a_fault_is_refused(fault: str, q: float) -> None:
    for seed in range(20):
        assert find_mask_fault(ONE_MASK[fault](SHAPE, seed) < q, q), seed


@pytest.mark.parametrize("fault", TWO_MASKS)
@pytest.mark.parametrize("q", [0.5, 0.9])
def test_masks_of_two_seeds_that_depend_are_refused(fault: str, q: float) -> None:
    for seed in range(1 if "step" in fault else 20):  # far seeds have few draws in common
        first, second = (TWO_MASKS[fault](SHAPE, s) < q for s in (seed, seed + 1))
        assert find_dependence(first, second, q), seed


def test_shared_draws_are_named_where_they_also_change_the_rate() -> None:
    row = torch.rand(4096, generator=torch.Generator().manual_seed(1)) >= 0.13
    fault = find_mask_fault(row.expand(64, 4096), 0.9)
    assert fault == "elements 1 apart in dimension 0 share their random numbers"
    independent = torch.rand(64, 4096, generator=torch.Generator().manual_seed(2)) >= 0.13
    assert "elements were kept" in str(find_mask_fault(independent, 0.9))
