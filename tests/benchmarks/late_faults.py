"""Count the full plans that refuse attention whose last keys are mishandled, without a GPU.

    python tests/benchmarks/late_faults.py [--seeds 6] [--tile 128]

The faults are algorithms in torch, tile by tile as a kernel goes. Judged are the cases of plans for a GPU
that have more keys than a tile. `right` is the same algorithm without a fault: each refusal is false.
"""

from __future__ import annotations

import argparse
import math

import torch

from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.model import Case

FAULTS = (
    "right", "first reference, cut off", "masked tile keeps the maximum", "maximum capped",
    "far shrink lost", "last tile not rescaled",
)  # fmt: skip
MOST_KEYS = 1100  # of more keys the scores take long without a GPU
HALF_MAX = 65504.0


def attend(inputs: tuple[torch.Tensor, ...], fault: str, tile: int) -> torch.Tensor:
    """Return attention of [batch, heads, seq, dim], with one fault."""
    q, k, v = (x.float() for x in inputs)
    n, scale = k.shape[-2], q.shape[-1] ** -0.5
    largest = torch.full((*q.shape[:-1], 1), -math.inf)
    total, acc = torch.zeros_like(largest), torch.zeros_like(q)
    for start in range(0, n, tile):
        keys = slice(start, start + tile)
        scores = q @ k[..., keys, :].mT * scale
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        if start and fault == "maximum capped":
            new = torch.minimum(new, largest + 20)
        is_masked = start + tile > n
        if start and (fault == FAULTS[1] or (fault == FAULTS[2] and is_masked)):
            new = largest
        p = torch.exp(scores - new).clamp(max=HALF_MAX if fault in FAULTS[1:3] else 1e30)
        shrink = torch.exp(largest - new)
        if start and fault == "far shrink lost":
            shrink = torch.where(largest - new < -44, 1e-3, shrink)
        is_last = start > 0 and start + tile >= n
        is_left = (new - largest > 8) & (is_last and fault == "last tile not rescaled")
        total = total * shrink + p.sum(-1, keepdim=True)
        acc = acc * torch.where(is_left, 1.0, shrink)
        acc += p.to(inputs[0].dtype).float() @ v[..., keys, :]
        largest = new
    return (acc / total).to(inputs[0].dtype)


def is_refused(
    op: operators.Op, inputs: tuple[torch.Tensor, ...], case: Case, fault: str, tile: int
) -> bool:
    """Return whether the judge refuses the output of a case."""
    got = attend(inputs, fault, tile)
    expectations = oracle.iter_expected(op, inputs, case)
    return not any(e.judge_outputs((got,))[0].is_correct for e in expectations)


def main() -> None:
    """Print the plans that refuse each fault."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--tile", type=int, default=128)
    options = parser.parse_args()
    op, counts = operators.load("attention"), dict.fromkeys(FAULTS, 0)
    for seed in range(11, 11 + options.seeds):
        job = PlanJob(op=OpRef(name="attention"), plan="full", seed=seed, device_kind="gpu")
        cases = [
            (make_pristine(op, case, torch.device("cpu")), case)
            for case in plan_cases(op, job, DeviceFacts()).cases
            if options.tile < case.shape[-2] <= MOST_KEYS and math.prod(case.shape[:-2]) <= 8
        ]
        for fault in FAULTS:
            counts[fault] += any(is_refused(op, x, case, fault, options.tile) for x, case in cases)
    for fault, n_plans in counts.items():
        print(f"{fault}: {n_plans} of {options.seeds} plans")


if __name__ == "__main__":
    main()
