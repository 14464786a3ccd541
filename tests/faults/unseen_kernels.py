"""Validate kernels that are not in the corpus, and print a line for each.

    python tests/faults/unseen_kernels.py state range [--budget 30] [--seed 7] [--jobs 8] [--gpu]

The names are folders of `unseen_kernels`, or files. Authors who had not read the checks wrote them:
`state`, `range`, `parameters`, `lengths` and `near_by` (right ones) on 2026-11-27 for four classes,
`fifth` for every op, `set_a` for elementwise ops, softmax, norms; on 2026-11-28 `sixth` for every
op, `sixth_classes` for layouts, for what a program carries on and for special values, `seventh` and
`eighth` for every op, `eighth_launches` and `ninth_launches` for paths of the wrapper and for the
geometry of launches, `tenth`, `eleventh` and `twelfth` for layouts, state, random numbers, values,
`thirteenth` and `fifteenth` for every op, `fourteenth` and `sixteenth` for most of them; on
2026-11-29 `seventeenth` to `twentyfirst` for every op, `twentyfirst_classes` for parameters, parts
of a row and values that are not finite, `twentyfirst_after` for four classes that had rules then,
`twentysecond` for every op,
`twentysecond_after` for three classes that had rules then, `twentythird` for every op,
`twentythird_after` and `twentythird_wider` for four classes each that had rules then,
`twentyfourth` for every op, `twentyfourth_after` for four classes that had rules then,
`twentyfifth` for most ops; on 2026-11-30 `twentysixth` for every op,
`twentysixth_after` for four classes that had rules then, `twentyseventh` to `thirtythird` for
every op, `twentyeighth_after` to `thirtieth_after` for four classes each, `thirtyfirst_paths` and
`thirtyfirst_after` for paths of the wrapper, `thirtysecond_classes` for parts of rows, strides
and paths, `thirtysecond_after` for levels and strides, which had rules then, `thirtysecond_last`,
`ordinary` and `ordinary_after` for explanations: mistakes that show in most inputs; on 2026-12-01
`thirtyfourth` and `thirtyfifth` for most ops.
A script `NAME.witness.py` shows the fault of a kernel without the checks. A GPU needs no budget.
"""

from __future__ import annotations

import os
import sys

if "--gpu" not in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

import argparse
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
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
    if missing := [str(p) for p in starts if not p.exists()]:
        raise SystemExit(f"there is no {missing[0]}: name folders of {FOLDER}, or files")
    files = [p for s in starts for p in (sorted(s.glob("*.py")) if s.is_dir() else [s])]
    return [p for p in files if not p.name.startswith(".") and not p.name.endswith(".witness.py")]


def validate(path: Path, seed: int, budget_s: float) -> str:
    """Return a line on a kernel: what it is, the verdict, its first failed case and the cause."""
    start_s = time.monotonic()
    is_right = "\nstatus: passed" in path.read_text()
    own = in_child(judge_by_validation, path, seed, budget_s, judges=True) or {}
    failed = own.get("failed", [])
    first = {k: v for k, v in failed[0].items() if k in Case.model_fields} if failed else {}
    words = (
        f"{path.parent.name}/{path.stem}", "right" if is_right else "wrong",
        own.get("status", "crashed"), f"{own.get('ran')} of {own.get('planned')} cases",
        f"{time.monotonic() - start_s:.0f} s", Case(**first).label if first else "",
        own.get("message") or "" if is_right or not failed else "",
        own.get("cause") or "", own.get("pattern") or "",
    )  # fmt: skip
    return " · ".join(words).rstrip(" ·")


def main() -> None:
    """Print a line for each kernel as its verdict comes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--budget", type=float, default=30.0, help="CPU seconds a kernel")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--gpu", action="store_true", help="on the GPU, not in the interpreter")
    options = parser.parse_args()
    stop_at_first_failure()
    torch.set_num_threads(1)
    paths = list_kernels(options.names)
    with ThreadPoolExecutor(options.jobs) as pool:
        lines = [pool.submit(validate, p, options.seed, options.budget) for p in paths]
        for line in as_completed(lines):
            print(line.result(), flush=True)


if __name__ == "__main__":
    main()
