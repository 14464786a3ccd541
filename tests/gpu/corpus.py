"""Runs every kernel of the fault corpus on the GPU; prints its verdicts as JSON.

A process of its own, because Triton decides once per process between GPU and interpreter, and
because a kernel here may leave the GPU's context unusable.
"""

from __future__ import annotations

import json
import sys

import torch

from tests.worker.harness import KERNELS, cases_for, run_cases, told
from triton_magics.model import Case


def verdicts() -> dict[str, list[str]]:
    """Statuses of every kernel's cases; bfloat16 too, which only a GPU can run."""
    device = torch.device("cuda", 0)
    found = {}
    for path in sorted(KERNELS.glob("*.py")):
        op = told(path, "op")
        shape = (33, 29, 45) if op == "matmul" else (7, 13)
        cases = (*cases_for(op), Case(shape=shape, dtype="bfloat16", seed=9))
        found[path.stem] = [r.status.value for r in run_cases(path, *cases, device=device)]
    return found


if __name__ == "__main__":
    json.dump(verdicts(), sys.stdout)
