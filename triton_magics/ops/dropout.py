"""out = x / (1 - p) where kept, 0 elsewhere; each element is kept with probability 1 - p.

The mask follows from the seed alone: the same seed gives the same mask, another seed another one.
Any shape. The output is random, so `check` judges it instead of a comparison with the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn import functional as F

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1), (257, 1023),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
DEFINED_FOR_NONFINITE = False
# A dropped zero looks like a kept one.
REGIMES_SKIP = ("zeros",)
PROBABILITIES = (0.5, 0.1, 0.0)
BY_CHANCE = 1e-9  # a sound mask looks wrong less often than this
PIECE = 2**21  # elements that are looked at in float64 at once
SIGMAS = 6.0  # the same for a normal distribution, two-sided: 2e-9


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, float, int]:
    """Normal x; p, one of a few, but 0.5 at the sizes: p = 0 is no work to be timed; a seed."""
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    choice = int(torch.randint(len(PROBABILITIES), (), device=device, generator=generator))
    p = 0.5 if tuple(shape) in SIZES.values() else PROBABILITIES[choice]
    seed = int(torch.randint(2**31 - 1, (), device=device, generator=generator))
    return x, p, seed


def reference(x: torch.Tensor, p: float = 0.5, seed: int = 0) -> torch.Tensor:
    """The same shape and dtype as x; torch has its own generator and takes no seed here."""
    return F.dropout(x, p, training=True)


def flops(x: torch.Tensor, p: float = 0.5, seed: int = 0) -> int:
    """One multiplication an element; the random numbers are not counted."""
    return x.numel()


def check(
    inputs: tuple[torch.Tensor, float, int],
    output: torch.Tensor,
    call: Callable[..., torch.Tensor] | None = None,
) -> str | None:
    """What is wrong with an output, or None.

    Args:
        inputs: x, p and seed.
        output: what a version made of them.
        call: runs the version again on given inputs; without it the seed can't be checked.
    """
    x, p, seed = inputs
    if p == 0:
        return None if torch.equal(x, output) else "p = 0 must give x itself"
    problem = _wrong_scale(x, p, output) or _wrong_share(x, p, output) or _repeats(x, p, output)
    if problem or call is None:
        return problem
    if not torch.equal(call(x, p, seed), output):
        return f"two calls with the seed {seed} gave different masks"
    same = torch.equal(call(x, p, seed + 1) != 0, output != 0)
    if same and _all_agree_by_chance(_visible(x).sum().item(), p) < BY_CHANCE:
        return f"the seeds {seed} and {seed + 1} gave the same mask"
    return None


def _visible(x: torch.Tensor) -> torch.Tensor:
    """Where a kept element differs from a dropped one; below the normal numbers it may not."""
    return x.abs() >= torch.finfo(x.dtype).tiny


def _wrong_scale(x: torch.Tensor, p: float, output: torch.Tensor) -> str | None:
    """Every element is 0 or x / (1 - p), within two roundings of the dtype."""
    wrong, first = 0, 0
    for start in range(0, x.numel(), PIECE):
        here = _off_scale(x.flatten()[start : start + PIECE], p, output.flatten()[start:])
        first = first if wrong or not len(here) else start + int(here[0])
        wrong += len(here)
    if not wrong:
        return None
    index = [int(i) for i in torch.unravel_index(torch.tensor(first), x.shape)]
    was, right = output[tuple(index)].item(), _scaled(x[tuple(index)], p).item()
    return (
        f"{wrong} of {x.numel()} elements are neither 0 nor x / (1 - p), p = {p}: "
        f"out{index} is {was:.6g}, should be 0 or {right:.6g}"
    )


def _scaled(x: torch.Tensor, p: float) -> torch.Tensor:
    return (x.double() / (1 - p)).to(x.dtype).double()


def _off_scale(x: torch.Tensor, p: float, output: torch.Tensor) -> torch.Tensor:
    """Places of the wrong ones; all are flat, output may be longer."""
    limits, expected, got = torch.finfo(x.dtype), _scaled(x, p), output[: len(x)].double()
    near = (got - expected).abs() <= 2 * limits.eps * expected.abs() + limits.tiny
    return (~(near | (got == expected) | (got == 0))).nonzero().flatten()


def _wrong_share(x: torch.Tensor, p: float, output: torch.Tensor) -> str | None:
    """The number of kept elements lies within its binomial bound."""
    visible = _visible(x)
    n = int(visible.sum())
    kept = int((visible & (output != 0)).sum())
    allowed = SIGMAS * math.sqrt(n * p * (1 - p)) + 1
    if abs(kept - n * (1 - p)) <= allowed:
        return None
    return f"{kept} of {n} elements were kept, p = {p}: should be {n * (1 - p):.0f} ± {allowed:.0f}"


def _repeats(x: torch.Tensor, p: float, output: torch.Tensor) -> str | None:
    """The mask is not the same block after block, nor row after row."""
    if not _visible(x).all():
        return None
    mask = (output != 0).flatten()
    lags = {2**i for i in range(5, mask.numel().bit_length())} | set(x.shape[-1:])
    for lag in sorted(lags):
        pairs = mask.numel() - lag
        if _all_agree_by_chance(pairs, p) < BY_CHANCE and torch.equal(mask[lag:], mask[:-lag]):
            return f"the mask repeats itself every {lag} elements"
    return None


def _all_agree_by_chance(pairs: float, p: float) -> float:
    """Probability that two independent masks agree in so many places."""
    return (p * p + (1 - p) * (1 - p)) ** max(pairs, 0)
