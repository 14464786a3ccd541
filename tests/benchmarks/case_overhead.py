"""CPU time that the checks add to a version, in its two processes, without a GPU.

    python tests/benchmarks/case_overhead.py [--repeats 5] [--json PATH]

The version is torch's own softmax on the CPU, so a case launches nothing and interprets nothing: what
is left is the work of the judge and of the subject process, most of it Python. That work is the same
with a GPU. Beside it: the inputs of the same cases, one call, and `torch.allclose`.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

import argparse
import socket
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from common import report
from inprocess import Quiet, version

from triton_magics import languages, operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.harness.correctness import case_inputs, remote_calls, validate_job
from triton_magics.harness.process import device, fork_server, subject_process

SOURCE = "import torch\ndef triton_softmax(x):\n    return torch.softmax(x, -1)\n# {}\n"
SEED = 7


def start() -> Any:
    """Return the link to a subject process that is as warm as a worker's."""
    fork_server.import_all_modules()
    torch.set_num_threads(1)
    languages.names()
    for runtime in languages.used_runtimes():
        runtime.preload()
    unused, _ = socket.socketpair()

    def prepare() -> None:
        device.create_context("interpreter")
        remote_calls.name_record()

    link = subject_process.start(prepare, close=unused.fileno())
    device.create_context("interpreter")
    return link


def validate(link: Any, plan: Any, number: int) -> tuple[list[Any], float, float]:
    """Return the cases that ran, and the CPU seconds of the judge and of the subject process."""
    ref = version(Path(), "softmax", "v1_torch", SOURCE.format(number)).evolve(language="torch")
    job = ValidateJob(op=OpRef(name="softmax"), version=ref, seed=SEED, plan=plan)
    judge_s, subject_s = time.process_time(), link.cpu_s
    verdict, _ = validate_job.run(job, Quiet())
    assert verdict.passed, verdict
    ran = [result.case for result in verdict.cases if result.status == "passed"]
    return ran, time.process_time() - judge_s, link.cpu_s - subject_s


def plain(cases: list[Any]) -> float:
    """Return the CPU seconds for the inputs of cases, one call of each, and a comparison."""
    op, start_s = operators.load("softmax"), time.process_time()
    for case in cases:
        x, *_ = case_inputs.make_pristine(op, case, device.CPU)
        torch.allclose(
            torch.softmax(x, -1), torch.softmax(x.double(), -1).to(x.dtype), equal_nan=True
        )
    return time.process_time() - start_s


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_known_args()[0].repeats
    link, rows, number = start(), [], 0
    for plan in ("full", "quick"):
        runs = []
        for _ in range(repeats + 1):  # the first loads what loads late
            number += 1
            runs.append(validate(link, plan, number))
        cases = runs[0][0]
        judge_s = statistics.median(judge for _, judge, _ in runs[1:])
        subject_s = statistics.median(subject for _, _, subject in runs[1:])
        plain_s = min(plain(cases) for _ in range(3))
        rows.append({
            "plan": plan, "cases": len(cases), "judge s": judge_s, "subject s": subject_s,
            "ms a case": 1e3 * (judge_s + subject_s) / len(cases), "plain ms a case": 1e3 * plain_s / len(cases),
            "ratio": (judge_s + subject_s) / plain_s,
        })  # fmt: skip
    report("CPU time of the checks", rows)


if __name__ == "__main__":
    main()
