"""Run every kernel of the fault corpus on the GPU and print its verdicts as JSON.

A process of its own, because Triton decides once per process between GPU and interpreter, and
because a kernel here may leave the GPU's context unusable.
"""

from __future__ import annotations

import json
import sys

import torch

from tests.harness.kit import KERNELS, cases_for, field_of, run_cases


def verdicts() -> dict[str, list[str]]:
    """Return the statuses of every kernel's cases, with further ones, which only a GPU can run."""
    device = torch.device("cuda", 0)
    statuses = {}
    for path in sorted(KERNELS.glob("*.py")):
        op = field_of(path, "op")
        cases = cases_for(op)
        cases = (*cases, cases[0].evolve(dtype="bfloat16", seed=9))
        if len(cases[0].shape) == 3:  # enough programs for a race between threads to show
            cases = (*cases, cases[0].evolve(shape=(384, 500, 65), dtype="float16", seed=12))
        statuses[path.stem] = [r.status.value for r in run_cases(path, *cases, device=device)]
    return statuses


if __name__ == "__main__":
    json.dump(verdicts(), sys.stdout)
