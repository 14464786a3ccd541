"""Count the wrong reductions that only composed values show, of the rounds of unseen kernels.

    python tests/benchmarks/composed_power.py [ROUND ...] [--json PATH] [--seed 11]

Each kernel runs in the composed cases of a plan without a GPU, and in the same ones with usual values.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

import argparse
import functools
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from common import report  # noqa: E402

from tests.faults.corpus_files import needs  # noqa: E402
from tests.harness.kit import field_of, run_cases  # noqa: E402
from triton_magics import operators  # noqa: E402
from triton_magics.execution.job_refs import OpRef  # noqa: E402
from triton_magics.execution.job_requests import PlanJob  # noqa: E402
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases  # noqa: E402
from triton_magics.model import PLAIN, Case  # noqa: E402

FOLDER = ROOT / "tests" / "faults" / "unseen_kernels"
DEVICE = DeviceFacts(is_interpreted=True, refused={"bfloat16": "it computes it wrongly"})


@functools.cache
def composed_cases(op: str, seed: int) -> tuple[Case, ...]:
    """Return the cases of composed rows of an op that is a reduction; none of another."""
    if op not in operators.names() or operators.load(op).op_class != "reduction":
        return ()
    job = PlanJob(op=OpRef(name=op), plan="full", seed=seed, device_kind="interpreter")
    plan = plan_cases(operators.load(op), job, DEVICE)
    return tuple(c for c in plan.cases if "composed" in c.special and c.dtype != "bfloat16")


def is_shown(path: Path, cases: tuple[Case, ...]) -> bool:
    """Return whether one of the cases is wrong."""
    return any(result.status.failed for result in run_cases(path, *cases))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    rounds = args.rounds or sorted(p.name for p in FOLDER.iterdir() if p.is_dir())
    counts: Counter[str] = Counter()
    for path in (p for name in rounds for p in sorted((FOLDER / name).glob("*.py"))):
        if path.name.endswith(".witness.py"):
            continue
        is_wrong = "\nstatus: failed" in path.read_text() and needs(path) != "gpu"
        cases = composed_cases(field_of(path, "op"), args.seed) if is_wrong else ()
        if not cases:
            continue
        plain = tuple(case.evolve(special=PLAIN) for case in cases)
        shown = is_shown(path, cases), is_shown(path, plain)
        counts["kernels"] += 1
        counts["in composed values"] += shown[0]
        counts["in usual ones too"] += all(shown)
        counts["in composed values alone"] += shown == (True, False)
    report("Wrong reductions that composed values show", [dict(counts)], seed=args.seed)


if __name__ == "__main__":
    main()
