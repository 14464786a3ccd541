"""Run every cell of `tests/faults/cells` with five checks, and write one row each.

    python tests/faults/cell_table.py --into docs/measured/cells.json
    python tests/faults/cell_table.py --only segfaults sleeps

The checks: the verdict and its words; the deadline; the next job within half a second; nothing left
(processes, locks, a damaged store); the notebook's process as it was. Ends with 1 if one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.execution_kit import PROCESS_TAG, wait_until
from tests.faults.engine.fault_lab import (
    CLASSES,
    FILES,
    GRACE_S,
    RIGHT,
    Fault,
    FaultLab,
    shown,
    verdict,
)
from tests.faults.next_job import all_ready
from tests.faults.pairs import SOON_S, Parent, left

CHECKS = ("verdict", "deadline", "next job", "nothing left", "parent unharmed")


def make_row(faults: FaultLab, fault: Fault) -> dict[str, Any]:
    """Run a cell; return its class, verdict, times, and the checks that failed."""
    parent, n_events = Parent.now(faults), faults.n_events()
    value, seconds = faults.do(fault)
    text = shown(value)
    started = time.monotonic()
    next_job = faults.lab.run("relu", "v1", shape=(4, 4))
    next_s = time.monotonic() - started
    remains = list(left(faults, n_events))
    changed = parent.settle(faults)
    results = {
        "verdict": fault.status in ("any", verdict(value))
        and bool(re.search(fault.sees, text))
        and "\x1b" not in text,
        "deadline": seconds < fault.timeout_s + GRACE_S,
        "next job": next_job.status == "passed" and next_s < SOON_S,
        "nothing left": not remains,
        "parent unharmed": not changed,
    }
    return {
        "cell": fault.path.stem, "class": fault.kind, "verb": fault.says("by", "run"),
        "verdict": verdict(value), "seconds": round(seconds, 2), "next_job_s": round(next_s, 3),
        "failed": [name for name in CHECKS if not results[name]],
        "details": [*remains, *changed, *([] if results["verdict"] else [text[:600]])],
    }  # fmt: skip


def write_table(rows: Iterable[dict[str, Any]]) -> str:
    """Return one line for each class."""
    rows = list(rows)
    lines = ["| class | cells | all five checks hold | next job, median s | longest s |"]
    lines.append("|---|---|---|---|---|")
    for kind in CLASSES:
        of_kind = [row for row in rows if row["class"] == kind]
        if of_kind:
            next_s = [row["next_job_s"] for row in of_kind]
            n_sound = sum(not row["failed"] for row in of_kind)
            lines.append(
                f"| {kind} | {len(of_kind)} | {n_sound} | {statistics.median(next_s):.2f} "
                f"| {max(next_s):.2f} |"
            )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", help="names of cells")
    parser.add_argument("--into", type=Path, help="a JSON file of the rows")
    options = parser.parse_args()
    into = options.into and options.into.absolute()
    os.environ[PROCESS_TAG] = process_tag = uuid.uuid4().hex
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_MAGICS_CACHE"] = f"{folder}/cache"
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        os.chdir(workspace)
        faults = FaultLab(workspace, process_tag)
        try:
            faults.lab.write("relu", "v1", RIGHT)  # starts the processes that compile
            for path in FILES:
                if not options.only or path.stem in options.only:
                    wait_until(lambda: all_ready(faults), within_s=60)
                    rows.append(make_row(faults, Fault(path)))
                    if rows[-1]["failed"]:
                        print(json.dumps(rows[-1], indent=1), flush=True)
        finally:
            faults.lab.close()
            os.chdir("/")
    print(write_table(rows))
    if into:
        into.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    return int(any(row["failed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
