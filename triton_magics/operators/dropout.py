"""out = x / (1 - p) where kept, 0 elsewhere; each element is kept with probability 1 - p.

The mask follows from the seed alone: the same seed gives the same mask, another seed another one.
Any shape. The output is random, so `check` judges it instead of a comparison with the reference.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterator

import torch
from torch.nn import functional as F

from triton_magics.operators._draws import scalars_of
from triton_magics.operators._masks import find_dependence, find_mask_fault, is_unlikely

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1), (257, 1023),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
DEFINED_FOR_NONFINITE = False
# A dropped zero looks like a kept one.
REGIMES_SKIP = ("zeros", "exact cancellation")
PROBABILITIES = (0.5, 0.1, 0.0)
SCALARS = {"p": PROBABILITIES}
OTHER_PROBABILITIES = (0.0, 0.1, 0.25, 0.75, 0.125)  # the last take few bits of a draw
SEED_BITS = 63
RARE = 0.001  # dropped, or kept: a threshold of a byte is 0 or 256 for it
VERY_RARE = 1e-5  # a threshold of 16 bits is 0 or 65536 for it; only a large input has enough
DRAWN = (0.02, 0.058, 0.17, 0.5)  # one is drawn between each two, each octave as likely
ENOUGH = 40  # rare events that are expected; none of them has a chance of exp(-40)
MODERATE = 2**12  # elements; fewer show no dependence of a part
PIECE = 2**21  # elements that are compared in float64 at once
MANY = 2**16  # elements; larger masks are compared with one other seed only
FACTS = {
    "torch_equivalent": "torch.nn.functional.dropout(x, p, training=True)",
    "signature": "triton_dropout(x, p=0.5, seed=0)",
    "formula": "out = x / (1 - p) where kept, else 0; kept with probability 1 - p",
    "description": (
        "Sets random elements to zero and scales the others. The mask follows from the seed."
    ),
    "input_shapes": "x: any shape; p: a number in [0, 1); seed: an int from 0 to 2^63 - 1",
    "output_shape": "the shape of x",
    "complexity": "n flops and n random numbers; 2·n·itemsize bytes",
    "memory_pattern": "reads x once, writes out once; the mask is computed, not stored",
    "bound": "memory",
    "tips": (
        (
            "tl.rand(seed, offsets) with the offset in the whole tensor: with the offset in the "
            "block, each block gets the same mask."
        ),
        "Keep where rand >= p; p = 0 keeps everything.",
        (
            "The seed is a run-time argument: the same seed gives the same mask, another seed "
            "another one."
        ),
        "Judged by its share of kept elements, their scale and the seed, not by torch's mask.",
        "tl.rand4x makes four numbers for the price of one.",
    ),
    "techniques": ("coalescing", "kernel_fusion", "tiling", "autotune"),
    "pattern": "elementwise",
}
VERSION_HINTS = {
    "v1": {
        "technique": (
            "One to one: tl.rand at the element's place in the whole tensor, keep where it is >= p"
        ),
        "block_hint": "BLOCK_SIZE 1024",
    },
    "v2": {
        "technique": (
            "Tiling: several blocks a program, or BLOCK_SIZE searched with triton.autotune"
        ),
        "block_hint": "BLOCK_SIZE 256 to 1024",
    },
    "v3": {
        "technique": (
            "Memory coalescing with tl.rand4x: four blocks of random numbers from one call, each "
            "block contiguous"
        ),
        "block_hint": "BLOCK_SIZE 256 to 512, four blocks a program",
    },
    "v4": {
        "technique": "tl.rand4x and autotune together",
        "block_hint": "configs from BLOCK_SIZE 256 to 2048, num_warps 4 to 8",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, float, int]:
    """Return normal x, p, and a seed; p is one of a few, at the sizes 0.5: p = 0 is no work."""
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    draw = scalars_of(generator)
    p = 0.5 if tuple(shape) in SIZES.values() else draw.choice(PROBABILITIES)
    return x, p, draw.randrange(2**31 - 1)


def reference(x: torch.Tensor, p: float = 0.5, seed: int = 0) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as x; torch ignores the seed."""
    return F.dropout(x, p, training=True)


def flops(x: torch.Tensor, p: float = 0.5, seed: int = 0) -> int:
    """Count one multiplication an element, and nothing for the random numbers."""
    return x.numel()


def check(
    inputs: tuple[torch.Tensor, float, int],
    output: torch.Tensor,
    call: Callable[..., torch.Tensor] | None = None,
) -> str | None:
    """Describe an error in an output; None: it is correct.

    Args:
        inputs: x, p and seed.
        output: of a version.
        call: runs the version again on other inputs; without it the seed can't be checked.
    """
    x, p, seed = inputs
    if p == 0:
        return None if torch.equal(x, output) else "p = 0 must give x itself"
    visible = _visible(x)
    problem = _wrong_scale(x, p, output) or find_mask_fault(output != 0, 1 - p, visible)
    if problem or call is None:
        return problem
    if not torch.equal(call(x, p, seed), output):
        return f"two calls with the seed {seed} gave different masks"
    wrong_rate = _wrong_rate(x, seed, call) or _wrong_rare_rate(x, seed, call)
    return wrong_rate or _dependent_seeds(inputs, output, call)


def _wrong_rate(x: torch.Tensor, seed: int, call: Callable[..., torch.Tensor]) -> str | None:
    """Check other probabilities on a small input: the rate follows p, and p = 0 gives x itself.

    Some are drawn, as a kernel may take another path for a part of them. Rare ones where so many
    elements would be dropped or kept that none is no chance.
    """
    rare = (RARE, 1 - RARE) if x.numel() * RARE > ENOUGH else ()
    drawn = _draw_probabilities(seed) if x.numel() > MODERATE else ()
    for p in (*OTHER_PROBABILITIES, *drawn, *rare) if x.numel() <= MANY else ():
        output = call(x, p, seed)
        if p == 0 and not torch.equal(x, output):
            return "p = 0 must give x itself"
        if p and (fault := find_mask_fault(output != 0, 1 - p, _visible(x))):
            return f"p = {p}: {fault}"
    return None


def _wrong_rare_rate(x: torch.Tensor, seed: int, call: Callable[..., torch.Tensor]) -> str | None:
    """Check probabilities near 0 and 1 on a large input: the number of elements follows p."""
    if x.numel() * VERY_RARE <= ENOUGH:
        return None
    visible = _visible(x)
    n = int(visible.sum())
    for p in (VERY_RARE, 1 - VERY_RARE):
        count = int(((call(x, p, seed) != 0) & visible).sum())
        if is_unlikely(count, n, 1 - p):
            return f"p = {p}: {count} of {n} elements were kept: should be {n * (1 - p):.0f}"
    return None


def _draw_probabilities(seed: int) -> Iterator[float]:
    """Yield some small probabilities, and a large one."""
    draw = random.Random(f"{seed} p")  # noqa: S311 (replayed from the seed)
    for ends in itertools.pairwise(DRAWN):
        yield math.exp(draw.uniform(*map(math.log, ends)))
    yield 1 - math.exp(draw.uniform(math.log(DRAWN[0]), math.log(DRAWN[-1])))


def _dependent_seeds(
    inputs: tuple[torch.Tensor, float, int],
    output: torch.Tensor,
    call: Callable[..., torch.Tensor],
) -> str | None:
    """Check that other seeds give independent masks."""
    x, p, seed = inputs
    visible = _visible(x)
    for other in _other_seeds(seed, x.numel()):
        mask = call(x, p, other) != 0
        if fault := find_dependence(output != 0, mask, 1 - p, visible):
            return f"the seeds {seed} and {other} gave {fault}"
    if not MODERATE < x.numel() <= MANY:
        return None
    masks = functools.cache(lambda seed: call(x, p, seed) != 0)
    pairs = [*itertools.combinations(range(3), 2)]  # the seeds that people use most
    is_torchs = x.device.type == "cpu" and _is_torchs(x, p, seed, output != 0)
    # To a compiler a seed of 64 bits has another type, so one dtype has them.
    if x.dtype == torch.float32 and not is_torchs:
        pairs += _wide_seeds(seed)
    for one, other in pairs:
        if fault := find_dependence(masks(one), masks(other), 1 - p, visible):
            return f"the seeds {one} and {other} gave {fault}"
    return None


def _is_torchs(x: torch.Tensor, p: float, seed: int, mask: torch.Tensor) -> bool:
    """Return whether a mask is torch's on the CPU, where its generator takes 32 bits of a seed."""
    drawn = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) >= p
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        own = F.dropout(torch.ones_like(x), p) != 0
    return torch.equal(mask, drawn & _visible(x)) or torch.equal(mask, own & _visible(x))


def _wide_seeds(seed: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of seeds of 63 bits, such as (layer << 32) + step.

    The second has the halves of the first exchanged, or differs from it in one bit: a sum or an
    exclusive or of the halves, or a part of the bits, does not tell all of them apart.
    """
    draw = random.Random(seed)  # noqa: S311 (replayed from the seed)
    high, low = (draw.getrandbits(31) for _ in range(2))
    wide = high << 32 | low
    yield wide, low << 32 | high
    for bits in (range(32), range(32, SEED_BITS)):
        yield wide, wide ^ 1 << draw.choice(bits)


def _other_seeds(seed: int, n_elements: int) -> tuple[int, ...]:
    """Return seeds near by, and on small inputs ones that differ in a high bit only."""
    near = (seed + 1,)
    return (*near, seed + 2, seed ^ 2**10, seed ^ 2**20) if n_elements <= MANY else near


def _visible(x: torch.Tensor) -> torch.Tensor:
    """Return the places where a kept element differs from a dropped one: the normal numbers."""
    return x.abs() >= torch.finfo(x.dtype).tiny


def _wrong_scale(x: torch.Tensor, p: float, output: torch.Tensor) -> str | None:
    """Check that every element is 0 or x / (1 - p), within two roundings of the dtype."""
    wrong, first = 0, 0
    for start in range(0, x.numel(), PIECE):
        here = _off_scale(x.flatten()[start : start + PIECE], p, output.flatten()[start:])
        first = first if wrong or not len(here) else start + int(here[0])
        wrong += len(here)
    if not wrong:
        return None
    index = [int(i) for i in torch.unravel_index(torch.tensor(first), x.shape)]
    was, right = output[tuple(index)].item(), _scale(x[tuple(index)], p).item()
    return (
        f"{wrong} of {x.numel()} elements are neither 0 nor x / (1 - p), p = {p}: "
        f"out{index} is {was:.6g}, should be 0 or {right:.6g}"
    )


def _scale(x: torch.Tensor, p: float) -> torch.Tensor:
    return (x.double() / (1 - p)).to(x.dtype).double()


def _off_scale(x: torch.Tensor, p: float, output: torch.Tensor) -> torch.Tensor:
    """Return the places of the wrong ones; all are flat, output may be longer."""
    limits, expected, got = torch.finfo(x.dtype), _scale(x, p), output[: len(x)].double()
    near = (got - expected).abs() <= 2 * limits.eps * expected.abs() + limits.tiny
    return (~(near | (got == expected) | (got == 0))).nonzero().flatten()
