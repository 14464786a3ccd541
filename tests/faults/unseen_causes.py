"""Grade the explanations of faults that were written after the rules, to tune none of them.

    python tests/faults/unseen_causes.py [--round second] [--only REGEX] [--json PATH]

The faults are in `unseen_faults.py`. Whoever changes the explanations writes a new round of them
afterwards, and grades it once before looking at an answer.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))
os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402

from tests.faults.corpus import stop_at_first_failure  # noqa: E402
from tests.faults.corpus_causes import explanation_of, grade_explanation  # noqa: E402
from tests.faults.corpus_processes import in_child  # noqa: E402
from tests.faults.unseen_faults import ROUNDS, Fault, source_of  # noqa: E402
from tests.faults.unseen_ops import OPS  # noqa: E402
from tests.harness import own_kit  # noqa: E402
from tests.harness.kit import run_validation  # noqa: E402
from triton_magics.execution.job_refs import OpRef  # noqa: E402
from triton_magics.model import Validation  # noqa: E402
from triton_magics.rendering.views.causes import cause_text  # noqa: E402

BUDGET_S = 10.0


def _validate_own(fault: Fault) -> Validation:
    """Return the validation of a kernel of an op that the project does not ship."""
    op = OpRef.own(fault[0], OPS[fault[0]][0])
    return own_kit.validate(op, source_of(fault), plan="full", budget_s=BUDGET_S)


def grade(fault: Fault) -> dict[str, Any]:
    """Return the grade of a fault's first explanation, with its text."""
    name, cause, old, new = fault
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{Path(name).name}.py"
        path.write_text(source_of(fault))
        answer = _validate_own(fault) if name in OPS else run_validation(path, budget_s=BUDGET_S)
    row = {"kernel": name, "change": f"{old} -> {new}", "cause": cause}
    failed = answer.failed_cases
    if not failed:
        return {**row, "grade": "not caught"}
    first = failed[0]
    cause_named = first.mismatch.cause if first.mismatch else None
    text = cause_text(cause_named) if cause_named else f"{first.status.value} {first.reason or ''}"
    return {
        **row, "grade": grade_explanation(cause, explanation_of(first)), "explanation": text,
        "case": first.case.label,
    }  # fmt: skip


def main() -> int:
    """Print the grade of each fault, and the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round", choices=ROUNDS, default=[*ROUNDS][-1])
    parser.add_argument("--only", default="", help="regular expression on kernel and change")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    stop_at_first_failure()
    torch.set_num_threads(1)
    started, rows = time.monotonic(), []
    for fault in ROUNDS[options.round]:
        if not re.search(options.only, " ".join(fault)):
            continue
        row = in_child(grade, fault, judges=True) or {
            "grade": "died",
            "kernel": fault[0],
            "cause": fault[1],
        }
        rows.append(row)
        print(f"{row['grade']:12}{row['kernel']}: {row.get('change')}")
        print(f"{'':12}{row['cause']}; {row.get('case')}: {row.get('explanation')}", flush=True)
    grades = [row["grade"] for row in rows]
    counts = {g: grades.count(g) for g in dict.fromkeys(grades)}
    shares = ", ".join(f"{g} {n} ({n / len(grades):.0%})" for g, n in counts.items())
    print(f"\n{len(grades)} faults in {time.monotonic() - started:.0f} s: {shares}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
