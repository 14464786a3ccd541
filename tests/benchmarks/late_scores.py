"""Count the full plans with a case whose last keys far outweigh the first, without a GPU.

    python tests/benchmarks/late_scores.py [--seeds 8]

A kernel of attention that takes the scores of its first tile as the reference must see scores far above
them, also in a last tile that is masked. Counted are plans for a GPU with a case where, for some query, a
weight of the keys after the last whole tile of 128 is 2**15 times every weight of the first 128 keys.
"""

from __future__ import annotations

import argparse
import math

import torch

from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.model import Case

TILE = 128
MOST_KEYS = 1100  # of more keys the scores take long without a GPU
LARGE = 15.0  # powers of two


def excess(op: operators.Op, case: Case) -> float:
    """Return the largest excess of a last key over the first tile, in powers of two."""
    q, k, _, *scalars = make_pristine(op, case, torch.device("cpu"))
    scores = q.double() @ k.double().mT * q.shape[-1] ** -0.5 / math.log(2)
    if scalars and scalars[0]:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    whole = scores.shape[-1] // TILE * TILE
    return float((scores[..., whole:].amax(-1) - scores[..., :TILE].amax(-1)).max())


def has_last_tile(case: Case) -> bool:
    """Return whether the keys of a case, few enough, don't fill the last of several tiles."""
    keys = case.shape[-2]
    return TILE < keys <= MOST_KEYS and keys % TILE > 0 and math.prod(case.shape[:-2]) <= 64


def main() -> None:
    """Print the plans of each op."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    seeds = range(1, parser.parse_args().seeds + 1)
    for name in ("attention", "mha"):
        op, ref, counts = operators.load(name), OpRef(name=name), []
        for seed in seeds:
            job = PlanJob(op=ref, plan="full", seed=seed, device_kind="gpu")
            cases = plan_cases(op, job, DeviceFacts()).cases
            counts.append(sum(excess(op, c) > LARGE for c in cases if has_last_tile(c)))
        print(f"{name}: {sum(map(bool, counts))} of {len(seeds)} plans; cases of each: {counts}")


if __name__ == "__main__":
    main()
