"""Validate kernels that are not in the corpus, and print a line for each.

    python tests/faults/unseen_kernels.py state range [--budget 30] [--seed 7]

The names are folders of `unseen_kernels`, or files. Authors who had not read the checks wrote them:
`state`, `range`, `parameters`, `lengths` and `near_by` (right ones) on 2026-11-27 for four classes,
`fifth` for every op, `set_a` for elementwise ops, softmax and norms. A script `NAME.witness.py`
shows the fault of a kernel without the checks.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.faults.corpus import stop_at_first_failure
from tests.faults.corpus_judges import judge_by_validation
from tests.faults.corpus_processes import in_child
from triton_magics.model import Case

FOLDER = Path(__file__).with_suffix("")


def list_kernels(names: Iterable[str]) -> list[Path]:
    """Return the kernels of these folders, and these files."""
    starts = [FOLDER / name if (FOLDER / name).exists() else Path(name) for name in names]
    files = [p for s in starts for p in (sorted(s.glob("*.py")) if s.is_dir() else [s])]
    return [path for path in files if not path.name.endswith(".witness.py")]


def main() -> None:
    """Print for each kernel what it is, the verdict, and its first failed case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--budget", type=float, default=30.0, help="CPU seconds a kernel")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    stop_at_first_failure()
    torch.set_num_threads(1)
    for path in list_kernels(options.names):
        start_s = time.monotonic()
        is_right = "\nstatus: passed" in path.read_text()
        own = in_child(judge_by_validation, path, options.seed, options.budget, judges=True) or {}
        failed = own.get("failed", [])
        first = {k: v for k, v in failed[0].items() if k in Case.model_fields} if failed else {}
        label = Case(**first).label if first else ""
        print(
            f"{path.parent.name}/{path.stem}", "right" if is_right else "wrong",
            own.get("status", "crashed"), f"{own.get('ran')} of {own.get('planned')} cases",
            f"{time.monotonic() - start_s:.0f} s", label, sep=" · ", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
