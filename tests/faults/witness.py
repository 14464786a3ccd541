"""Find for every wrong kernel an input on which it errs by more than ten tolerances.

    python tests/faults/witness.py [--only NAME] [--jobs 2]

Shapes, dtypes, layouts and regimes are drawn at random, without looking at the plan of a
validation. The witnesses go to witnesses.json; a kernel without one may have no fault at all.
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

from tests.faults.corpus_files import needs, wrong_kernels
from tests.faults.corpus_processes import in_child
from tests.harness.kit import field_of, job_for
from triton_magics import operators
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.case_inputs import make_inputs
from triton_magics.harness.correctness.guard_bands import find_damage, guard_allocations
from triton_magics.harness.correctness.judgement import judge
from triton_magics.harness.load import load_version
from triton_magics.harness.process.device import this_device
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.model import Case

WITNESSES = Path(__file__).parent / "witnesses.json"
REGIMES = ("normal", "normal", "x10", "shifted", "mean_heavy", "large")
SEARCH_S = 12.0


def draw_case(op: operators.Op, draw: random.Random) -> Case:
    """Draw an input; small ones more often."""

    def length(most: int) -> int:
        return max(1, round(math.exp(draw.uniform(0.0, math.log(most)))))

    rank = len(operators.smallest_shape(op))
    if rank == 3:  # rows, columns and the terms of a product
        shape: tuple[int, ...] = (length(150), length(150), length(700))
    elif rank == 4:
        shape = (1, draw.randint(1, 2), length(200), draw.choice((16, 32, 48, 64)))
    elif rank == 5:  # several heads of queries to one of keys and values
        batch, kv_heads, group = (draw.randint(1, 3) for _ in range(3))
        shape = (batch, group * kv_heads, kv_heads, length(60), draw.choice((16, 32, 48, 64)))
    else:
        shape = (length(60), length(3000))
    regimes = [r for r in REGIMES if r not in op.skip_values]
    special = "nonfinite" if op.defined_for_nonfinite and draw.random() < 0.1 else "plain"
    layout = draw.choice(("contiguous", "contiguous", "transposed", "strided"))
    dtype = draw.choice(("float32", "float32", "float16"))
    return Case(
        shape=shape,
        dtype=dtype if dtype in op.dtypes else op.dtypes[0],
        seed=draw.getrandbits(31),
        regime=draw.choice(regimes),
        special=special,
        layouts=() if layout == "contiguous" else (("*", layout),),
    )


def error_of(path: Path, case: Case) -> float | str:
    """Return the worst error in tolerances, or the other failure in words."""
    job, device = job_for(path), this_device()
    op, version = operators.load(job.op.name), load_version(job.version)
    inputs = make_inputs(op, case, device)
    try:
        with torch.no_grad(), guard_allocations() as memory, fake_gpu(device):
            got = version.call(*inputs.arguments)
        if find_damage([*inputs.guards, *memory.guarded]):
            return "writes outside its tensors"
        if op.check is not None:
            with torch.no_grad(), fake_gpu(device):
                return "its check fails" if op.check(inputs.pristine, got, version.call) else 0.0
        expected = oracle.compute_expected(op, inputs.pristine, case, None, None)
        return float(judge(got, expected.values[0], expected.allowed[0]).error_share)
    except Exception as error:  # noqa: BLE001 (an error is a witness)
        return f"raises {type(error).__name__}"


def search(path: Path) -> dict[str, Any] | None:
    """Return the first input that shows the fault; None if there is none in time."""
    draw, op = random.Random(path.stem), operators.load(field_of(path, "op"))
    deadline = time.monotonic() + SEARCH_S
    for tries in range(1, 400):
        if time.monotonic() > deadline:
            return None
        case = draw_case(op, draw)
        error = error_of(path, case)
        if isinstance(error, str) or error > 10:
            rounded = error if isinstance(error, str) or math.isfinite(error) else "NaN or infinite"
            rounded = round(rounded, 1) if isinstance(rounded, float) else rounded
            return {**case.model_dump(exclude={"size"}), "error": rounded, "tries": tries}
    return None


def main() -> int:
    """Search for the kernels that have no witness yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--into", type=Path, default=WITNESSES)
    options = parser.parse_args()
    torch.set_num_threads(1)
    witnesses = json.loads(options.into.read_text()) if options.into.exists() else {}
    paths = [
        p
        for p in wrong_kernels()
        if options.only in p.stem and p.stem not in witnesses and (needs(p) != "gpu" or options.gpu)
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        for path, witness in zip(
            paths, pool.map(lambda p: in_child(search, p), paths), strict=True
        ):
            print(f"{path.stem}: {witness or 'no witness'}", flush=True)
            if witness:
                witnesses[path.stem] = witness
    options.into.write_text(json.dumps(dict(sorted(witnesses.items())), indent=1) + "\n")
    return int(any(p.stem not in witnesses for p in paths))


if __name__ == "__main__":
    sys.exit(main())
