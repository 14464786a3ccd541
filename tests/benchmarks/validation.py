"""Cost of a validation: seconds of the full and quick plan of softmax, GPU memory of every op.

Without a GPU the seconds are of the interpreter on two cores, with CPU seconds beside them.

python tests/benchmarks/validation.py [--json PATH] [--seconds [--written] [--repeats 3]]

`--seconds` leaves out the memory.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
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
import json, sys, torch
from tests.harness.kit import KERNELS, run_cases
from triton_magics import operators
from triton_magics.model import Case
from triton_magics.harness.correctness.case_inputs import make_pristine
device, shares = torch.device("cuda", 0), {}
for op, kernel in json.load(sys.stdin).items():
    case = Case(shape=operators.load(op).sizes["large"], dtype="float32", size="large", seed=1)
    inputs = make_pristine(operators.load(op), case, device)
    outputs = [operators.load(op).reference(*inputs)]
    own = sum(t.nbytes for t in (*inputs, *outputs) if isinstance(t, torch.Tensor))
    del inputs, outputs
    run_cases(KERNELS / kernel, case, device=device)
    torch.cuda.synchronize(); torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = run_cases(KERNELS / kernel, case, device=device)[0]
    assert result.status == "passed", result
    shares[op] = (torch.cuda.max_memory_allocated() - before) / own
print(json.dumps(shares))
"""
CPU = """
import json, time
from triton_magics.harness.warm_up import warm_up
from tests.harness.kit import KERNELS, run_validation
warm_up("interpreter")
seconds = {}
for plan in ("full", "quick"):
    cpu_s = time.process_time()
    assert run_validation(KERNELS / "softmax_right.py", plan=plan).passed
    seconds[plan] = time.process_time() - cpu_s
print(json.dumps(seconds))
"""
RIGHT = {
    "softmax": "softmax_right.py",
    "matmul": "right/matmul_grouped.py",
    "layer_norm": "right/layer_norm_blocks.py",
    "vector_add": "vector_add_right.py",
    "vector_mul": "right/mul_flat.py",
    "relu": "right/relu_flat.py",
    "gelu": "right/gelu_flat.py",
    "sum": "sum_right.py",
    "mean": "right/mean_row.py",
    "dropout": "right/dropout_flat.py",
    "cross_entropy": "right/cross_entropy_rows.py",
    "attention": "right/attention_flash.py",
    "mha": "right/mha_flash.py",
}


def seconds(lab: Lab, plan: Any, i: int, *, written: bool) -> float:
    """Return the seconds of one validation of new code, with a warm standby worker.

    Args:
        written: whether the code was compiled by a `write` just before.
    """
    wait_for_standby(lab)
    time.sleep(1.0)
    lab.write("softmax", f"v{i}_cost", variant(i), compile=written)
    start_s = time.perf_counter()
    validation: Any = lab.validate("softmax", f"v{i}", plan=plan)
    assert validation.passed, validation
    return time.perf_counter() - start_s


def peak_memory() -> dict[str, float]:
    """Return per op the peak bytes of validating its large float32 case over its tensors' bytes."""
    process = subprocess.run(
        [sys.executable, "-c", MEMORY],
        input=json.dumps(RIGHT), capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return dict(json.loads(process.stdout.splitlines()[-1]))


def cpu_seconds() -> dict[str, float]:
    """Return per plan the CPU seconds of a warm worker in the interpreter."""
    process = subprocess.run(
        [sys.executable, "-c", CPU], capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    return dict(json.loads(process.stdout.splitlines()[-1]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", action="store_true", help="neither memory nor CPU time")
    parser.add_argument(
        "--written", action="store_true", help="only of versions that `write` compiled"
    )
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_known_args()[0]
    rows = []
    with tempfile.TemporaryDirectory() as folder, Lab(folder) as lab:
        lab.op("softmax")
        numbers = iter(range(1, 100))
        seconds(lab, "quick", next(numbers), written=True)  # the first measures the machine
        ways = (True,) if options.written else (True, False)
        for plan, written in itertools.product(("full", "quick"), ways):
            runs = [
                seconds(lab, plan, next(numbers), written=written) for _ in range(options.repeats)
            ]
            how = "after it was written" if written else "never compiled"
            rows.append({
                "what": f"{plan} plan, {how}, s",
                "median": statistics.median(runs), "least": min(runs), "all": ", ".join(f"{run:.3f}" for run in runs),
            })  # fmt: skip
        engine = lab.engine_state()
    if options.seconds:
        pass
    elif engine.device_kind == "gpu":
        for op, share in peak_memory().items():
            rows.append(
                {
                    "what": f"peak memory / own tensors, {op}",
                    "median": share,
                    "least": share,
                    "all": "",
                }
            )
    else:
        for plan, cpu_s in cpu_seconds().items():
            rows.append({"what": f"{plan} plan, CPU s", "median": cpu_s, "least": cpu_s, "all": ""})
    report(f"Validating softmax on {engine.device}", rows, repeats=options.repeats)


if __name__ == "__main__":
    main()
