"""Finds for every wrong kernel an input on which it errs by more than ten tolerances.

    python tests/faults/witness.py [--only NAME] [--jobs 2]

Shapes, dtypes, layouts and regimes are drawn at random, without looking at the plan of a
validation. What is found goes to witnesses.json; where nothing is, it may be no fault at all.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
if "--gpu" not in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"

import torch

from tests.faults.corpus_files import needs
from tests.faults.corpus_processes import in_child
from tests.worker.harness import KERNELS, job_for, told
from triton_magics import ops
from triton_magics.model import Case
from triton_magics.worker import oracle
from triton_magics.worker.cases import make_inputs
from triton_magics.worker.guard import broken, guarding
from triton_magics.worker.load import load_version
from triton_magics.worker.pretend import pretending
from triton_magics.worker.resources import this_device

WITNESSES = Path(__file__).parent / "witnesses.json"
REGIMES = ("normal", "normal", "x10", "shifted", "mean_heavy", "large")
SEARCH_S = 12.0


def drawn(op: ops.Op, draw: random.Random) -> Case:
    """Some input; small ones more often."""

    def length(most: int) -> int:
        return max(1, round(math.exp(draw.uniform(0.0, math.log(most)))))

    if op.name == "matmul":
        shape: tuple[int, ...] = (length(150), length(150), length(700))
    elif op.name in ("attention", "mha"):
        shape = (1, draw.randint(1, 2), length(200), draw.choice((16, 32, 48, 64)))
    else:
        shape = (length(60), length(3000))
    regimes = [r for r in REGIMES if r not in op.skip_regimes]
    regimes += ["nonfinite"] * op.defined_for_nonfinite
    return Case(
        shape=shape,
        dtype=draw.choice(("float32", "float32", "float16")),
        seed=draw.getrandbits(31),
        regime=draw.choice(regimes),
        layout=draw.choice(("contiguous", "contiguous", "transposed", "strided")),
    )


def error_of(path: Path, case: Case) -> float | str:
    """The worst error in tolerances; or in a word what else happened."""
    job, device = job_for(path), this_device()
    op, version = ops.load(job.op.name), load_version(job.version)
    inputs = make_inputs(op, case, device)
    try:
        with torch.no_grad(), guarding() as memory, pretending(device):
            got = version.call(*inputs.given)
        if broken([*inputs.guards, *memory.guarded]):
            return "writes outside its tensors"
        if op.check is not None:
            with torch.no_grad(), pretending(device):
                return "its check fails" if op.check(inputs.pristine, got, version.call) else 0.0
        expected = oracle.expect(op, inputs.pristine, case, None, None)
        return float(oracle.judge(got, expected.values[0], expected.allowed[0]).error_share)
    except Exception as error:  # noqa: BLE001 (what it raises is what is looked for)
        return f"raises {type(error).__name__}"


def search(path: Path) -> dict[str, Any] | None:
    """The first input that shows it."""
    draw, op = random.Random(path.stem), ops.load(told(path, "op"))
    deadline = time.monotonic() + SEARCH_S
    for tries in range(1, 400):
        if time.monotonic() > deadline:
            return None
        case = drawn(op, draw)
        error = error_of(path, case)
        if isinstance(error, str) or error > 10:
            shown = error if isinstance(error, str) or math.isfinite(error) else "NaN or infinite"
            shown = round(shown, 1) if isinstance(shown, float) else shown
            return {**case.model_dump(exclude={"size"}), "error": shown, "tries": tries}
    return None


def main() -> int:
    """Searches for those that have no witness yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--into", type=Path, default=WITNESSES)
    given = parser.parse_args()
    torch.set_num_threads(1)
    known = json.loads(given.into.read_text()) if given.into.exists() else {}
    paths = [
        p
        for p in sorted((KERNELS / "wrong").glob("*.py"))
        if given.only in p.stem and p.stem not in known and (needs(p) != "gpu" or given.gpu)
    ]
    with ThreadPoolExecutor(given.jobs) as pool:
        for path, found in zip(paths, pool.map(lambda p: in_child(search, p), paths), strict=True):
            print(f"{path.stem}: {found or 'nothing found'}", flush=True)
            if found:
                known[path.stem] = found
    given.into.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
    return int(any(p.stem not in known for p in paths))


if __name__ == "__main__":
    sys.exit(main())
