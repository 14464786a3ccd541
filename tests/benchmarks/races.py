"""Cost of the race detector: a call in the interpreter with its checks of memory, and without.

    python tests/benchmarks/races.py [--json PATH]

Each figure is CPU time, the minimum of five calls of the op's medium or first shapes. `bounds` has the checks
of bounds alone.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

os.environ["TRITON_INTERPRET"] = "1"

import torch
from common import report

from tests.harness.kit import KERNELS, field_of, version_of
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.harness.correctness.call_record import CallOptions
from triton_magics.harness.correctness.case_inputs import make_inputs
from triton_magics.harness.correctness.guarded_call import LocalCalls
from triton_magics.harness.load import load_version
from triton_magics.harness.process.device import CPU, kernel_runtime
from triton_magics.languages.triton.child.races import RaceDetector
from triton_magics.model import Case

SHAPES = {
    "softmax_strided": (64, 1000),
    "sum_blocks": (64, 4096),
    "matmul_grouped": (128, 128, 128),
    "layer_norm_blocks": (64, 1000),
    "gelu_flat": (64, 1000),
    "attention_flash": (1, 2, 64, 64),
}
REPEATS = 5


def seconds(act: Callable[[], object]) -> float:
    """Return the minimum seconds of CPU time of some calls."""
    durations = []
    for _ in range(REPEATS):
        start = time.process_time()
        act()
        durations.append(time.process_time() - start)
    return min(durations)


def without_races() -> contextlib.AbstractContextManager[object]:
    """Switch the detector off."""
    off: dict[str, Any] = {
        name: lambda *_: None for name in ("load", "store", "start_program", "note_atomic")
    }
    return mock.patch.multiple(RaceDetector, **off)


def measure(path: Path) -> dict[str, object]:
    """Return the row of one kernel."""
    op = field_of(path, "op")
    calls = LocalCalls(load_version(version_of(path, op)), OpRef(name=op), CPU)
    case = Case(shape=SHAPES[path.stem], dtype="float32", seed=1)
    inputs = make_inputs(operators.load(op), case, CPU)

    def call(options: CallOptions) -> float:
        return seconds(lambda: calls.call(inputs.arguments, inputs.guards, options))

    plain, checked = call(CallOptions()), call(CallOptions(guard=True))
    with without_races():
        bounds = call(CallOptions(guard=True))
    return {
        "kernel": path.stem,
        "plain ms": round(1e3 * plain, 2),
        "bounds ms": round(1e3 * bounds, 2),
        "races ms": round(1e3 * checked, 2),
        "races / bounds": round(checked / bounds, 3),
        "races / plain": round(checked / plain, 3),
    }


def main() -> None:
    """Print the table."""
    kernel_runtime()
    torch.set_num_threads(1)
    rows = [measure(KERNELS / "right" / f"{name}.py") for name in SHAPES]
    report("race detector", rows)


if __name__ == "__main__":
    main()
