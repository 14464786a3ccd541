"""The check of dropout takes every sound mask, and no other."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from triton_magics.operators import dropout

pytestmark = pytest.mark.in_turn


def version(x, p, seed):
    """Return a correct dropout: the mask follows from the seed."""
    if p == 0:
        return x.clone()
    draws = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed))
    return torch.where(draws >= p, x / (1 - p), torch.zeros_like(x))


def run_dropout(p=0.5, shape=(127, 129), dtype=torch.float32):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3)).to(dtype)
    return (x, p, 7), version(x, p, 7)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1), (7, 13), (1000, 1), (127, 129)])
def test_dropout_accepts_a_sound_mask(p, dtype, shape):
    inputs, output = run_dropout(p, shape, dtype)
    assert dropout.check(inputs, output, version) is None


def test_dropout_accepts_what_torch_makes():
    inputs, _ = run_dropout(0.1)
    torch.manual_seed(0)
    assert dropout.check(inputs, dropout.reference(*inputs)) is None


def test_dropout_rarely_refuses_a_sound_mask():
    for seed in range(100):
        x = torch.ones(7, 13)
        assert dropout.check((x, 0.1, seed), version(x, 0.1, seed), version) is None


def test_dropout_accepts_numbers_at_the_ends_of_the_dtype():
    x = torch.tensor([60000.0, 1e-7, -60000.0, 0.0] * 64, dtype=torch.float16)
    assert dropout.check((x, 0.5, 0), version(x, 0.5, 0), version) is None


def with_threshold(bits):
    """Return a dropout that decides by a number of so many bits."""

    def call(x, p, seed):
        generator = torch.Generator().manual_seed(seed)
        draws = torch.randint(2**bits, x.shape, generator=generator)
        return torch.where(draws >= round(p * 2**bits), x / (1 - p), torch.zeros_like(x))

    return call


@pytest.mark.parametrize(
    ("bits", "problem"),
    [(8, "p = 0.001: 65536 of 65536 elements were kept: should be 65470 ± 58"), (24, None)],
)
def test_dropout_refuses_a_threshold_too_coarse_for_rare_events(bits, problem):
    call = with_threshold(bits)
    (x, p, seed), _ = run_dropout(shape=(256, 256))
    assert dropout.check((x, p, seed), call(x, p, seed), call) == problem


def test_dropout_refuses_a_threshold_of_15_bits_on_a_large_input():
    call, x = with_threshold(15), torch.ones(4_500_000)
    assert dropout.check((x, 0.5, 7), call(x, 0.5, 7), call) == (
        "p = 1e-05: 4500000 of 4500000 elements were kept: should be 4499955"
    )


WRONG = {
    "unscaled": (lambda x, out: torch.where(out != 0, x, out), "neither 0 nor x"),
    "scaled by p": (lambda x, out: out * 1.001, "neither 0 nor x"),
    "nan": (lambda x, out: torch.full_like(out, float("nan")), "neither 0 nor x"),
    "never drops": (lambda x, out: x / 0.5, "16383 of 16383 elements were kept"),
    "drops all": (lambda x, out: torch.zeros_like(x), "0 of 16383 elements were kept"),
    "keeps p of them": (lambda x, out: version(x, 0.55, 7) * 0.45 / 0.5, "elements were kept"),
    "one mask for all rows": (
        lambda x, out: torch.where(out[:1] != 0, x / 0.5, 0.0),
        "apart in dimension 0 share their random numbers|elements were kept",
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_dropout_refuses(fault):
    spoil, message = WRONG[fault]
    inputs, output = run_dropout()
    problem = dropout.check(inputs, spoil(inputs[0], output), version)
    assert problem
    assert any(part in problem for part in message.split("|"))


def test_dropout_refuses_a_mask_that_every_block_repeats():
    x = torch.randn(8192, generator=torch.Generator().manual_seed(3))
    keep = (torch.arange(64) % 2 == 0).repeat(128)
    assert dropout.check((x, 0.5, 0), torch.where(keep, 2 * x, 0.0)) == (
        "elements 1 apart in dimension 0 share their random numbers"
    )


def test_dropout_refuses_a_mask_wrong_for_a_few_probabilities():
    def call(x, p, seed):
        out = version(x, p, seed)
        if 0.06 < p < 0.1:  # the last third of each block keeps everything
            out.view(-1, 4096)[:, 2700:] = x.view(-1, 4096)[:, 2700:] / (1 - p)
        return out

    x = torch.randn(8, 4096, generator=torch.Generator().manual_seed(1)).flatten()
    seeds = range(16)
    problems = [dropout.check((x, 0.5, seed), call(x, 0.5, seed), call) for seed in seeds]
    refused = [problem for problem in problems if problem]
    assert all(problem.startswith("p = 0.0") for problem in refused)
    assert 4 <= len(refused) < len(seeds)  # half of them draw such a p
    assert all(dropout.check((x, 0.5, s), version(x, 0.5, s), version) is None for s in range(3))


def test_dropout_refuses_another_mask_for_one_seed():
    inputs, output = run_dropout()
    problem = dropout.check(inputs, output, lambda x, p, seed: version(x, p, seed + 1))
    assert problem == "two calls with the seed 7 gave different masks"


def test_dropout_refuses_one_mask_for_all_seeds():
    inputs, output = run_dropout()
    problem = dropout.check(inputs, output, lambda x, p, seed: version(x, p, 7))
    assert problem == "the seeds 7 and 8 gave dependent masks"


def test_dropout_with_p_zero_is_the_identity():
    x = torch.randn(7)
    assert dropout.check((x, 0.0, 1), x.clone()) is None
    assert dropout.check((x, 0.0, 1), x * 1.0001) == "p = 0 must give x itself"


def test_dropout_refuses_a_seed_that_is_the_step_of_the_stream():
    stream = torch.rand(2**17 - 1, generator=torch.Generator().manual_seed(1))

    def call(x, p, seed):
        places = (torch.arange(1, x.numel() + 1) * (2 * seed + 1)) % len(stream)
        return torch.where(stream[places].view(x.shape) >= p, x / (1 - p), torch.zeros_like(x))

    (x, p, _), _ = run_dropout()
    seed = 1234567
    problem = dropout.check((x, p, seed), call(x, p, seed), call)
    assert problem == "the seeds 0 and 1 gave the same mask, of every 3 elements one"


SEEDS_AS_USED = {
    "all bits": lambda seed: seed,
    "halves added": lambda seed: (seed + (seed >> 32)) % 2**32,
    "exclusive or of the halves": lambda seed: (seed ^ (seed >> 32)) % 2**32,
    "31 bits": lambda seed: seed % 2**31,
    "32 bits": lambda seed: seed % 2**32,
}


@pytest.mark.parametrize("fold", SEEDS_AS_USED)
def test_dropout_refuses_seeds_of_which_a_part_counts(fold):
    def call(x, p, seed):
        generator = np.random.Generator(np.random.Philox(SEEDS_AS_USED[fold](seed)))
        draws = torch.from_numpy(generator.random(tuple(x.shape)))
        return torch.where(draws >= p, x / (1 - p), torch.zeros_like(x))

    (x, p, seed), _ = run_dropout()
    problem = dropout.check((x, p, seed), call(x, p, seed), call)
    if fold == "all bits":
        assert problem is None
        return
    assert problem is not None
    assert problem.startswith("the seeds ")


def test_dropout_refuses_a_bit_of_neighbours_at_a_quarter():
    def call(x, p, seed):
        if p not in (0.25, 0.75):
            return version(x, p, seed)
        bits = torch.randint(2, (x.numel() + 1,), generator=torch.Generator().manual_seed(seed))
        draws = (2 * bits[:-1] + bits[1:]).view(x.shape) / 4
        return torch.where(draws >= p, x / (1 - p), torch.zeros_like(x))

    inputs, output = run_dropout()
    problem = dropout.check(inputs, output, call)
    assert problem is not None
    assert problem.startswith("p = 0.25: ")
