"""What a validation costs: seconds of the full and the quick plan for softmax; GPU memory.

python tests/benchmarks/validation.py [--json PATH]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import report
from loop import variant, wait_for_standby

from triton_magics.lab import Lab

ROOT = Path(__file__).parents[2]
REPEATS = 3
MEMORY = """
import json, torch
from tests.worker.harness import KERNELS, run_cases
from triton_magics.model import Case
case = Case(shape=(4096, 4096), dtype="float32", size="large", seed=1)
path = KERNELS / "softmax_right.py"
device = torch.device("cuda", 0)
run_cases(path, case, device=device)
torch.cuda.synchronize(); torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
made = run_cases(path, case, device=device)[0]
assert made.status == "passed", made
own = 2 * 4096 * 4096 * 4
print(json.dumps([torch.cuda.max_memory_allocated() - before, own]))
"""


def seconds(lab: Lab, plan: Any, i: int) -> float:
    """Of one validation of code that was never compiled, with a standby ready."""
    lab.write("softmax", f"v{i}_cost", variant(i), compile=False)
    wait_for_standby(lab)
    time.sleep(1.0)
    begun = time.perf_counter()
    made: Any = lab.validate("softmax", f"v{i}", plan=plan)
    assert made.passed, made
    return time.perf_counter() - begun


def peak_memory() -> tuple[int, int]:
    """Peak bytes of validating the large float32 case; bytes of its input and output."""
    told = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, cwd=ROOT
    )
    peak, own = json.loads(told.stdout.splitlines()[-1])
    return peak, own


def main() -> None:
    """Prints the table."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, Lab(folder) as lab:
        lab.op("softmax")
        numbers = iter(range(1, 100))
        seconds(lab, "quick", next(numbers))  # the first measures the machine
        for plan in ("full", "quick"):
            runs = [seconds(lab, plan, next(numbers)) for _ in range(REPEATS)]
            rows.append(
                {"what": f"{plan} plan, s", "median": statistics.median(runs), "least": min(runs)}
            )
        engine = lab.engine_state()
    if engine.device_kind == "gpu":
        peak, own = peak_memory()
        share = peak / own
        rows.append({"what": "peak memory / own tensors", "median": share, "least": share})
    report(f"Validating softmax on {engine.device}", rows, repeats=REPEATS)


if __name__ == "__main__":
    main()
