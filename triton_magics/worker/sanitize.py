"""A case under NVIDIA's compute-sanitizer: memory outside, races in shared memory, unset memory."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from triton_magics.engine.protocol import ValidateJob
from triton_magics.model import Case, Sanitized
from triton_magics.worker.report import Reporter

TOOLS = ("memcheck", "racecheck", "initcheck")
TOOL_S = 120.0
END_S = 10.0  # that it may take to be killed
MOST_FINDINGS = 5
_HOMES = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer")
_SUMMARY = re.compile(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): (\d+)")
_FINDING = re.compile(
    r"=+ (?:ERROR: |Error: |Warning: )?"
    r"((?:Invalid|Uninitialized|Race|Potential|Misaligned|Program hit).*)"
)
_PLACE = re.compile(r"=+ +at (.+)")
_MISSING = (
    "compute-sanitizer is not installed here; it comes with the CUDA toolkit (cuda-sanitizer-api)"
)


def sanitized(job: ValidateJob, case: Case, report: Reporter, *, gpu: bool) -> Iterator[Sanitized]:
    """What each tool says of one call on a case."""
    program = _program()
    for tool in TOOLS:
        if not gpu:
            yield Sanitized(tool=tool, case=case, note="it needs a GPU")
        elif program is None:
            yield Sanitized(tool=tool, case=case, note=_MISSING)
        else:
            report.stage(f"{tool} on {case.label}", patience_s=TOOL_S + END_S)
            yield _run(program, tool, job, case)


def _program() -> str | None:
    path = os.pathsep.join((os.environ.get("PATH", ""), *_HOMES))
    return shutil.which("compute-sanitizer", path=path)


def _run(program: str, tool: str, job: ValidateJob, case: Case) -> Sanitized:
    asked = json.dumps({"job": job.model_dump(mode="json"), "case": case.model_dump(mode="json")})
    command = [program, "--tool", tool, sys.executable, "-m", "triton_magics.worker.sanitized"]
    root = str(Path(__file__).parents[2])
    environment = {
        **{name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"},
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",  # else a band of torch's cache lies behind a tensor
        "PYTHONPATH": os.pathsep.join((root, os.environ.get("PYTHONPATH", ""))),
    }
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment, process_group=0
    ) as process:
        try:
            out, err = process.communicate(asked, TOOL_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with what it has started
            return Sanitized(tool=tool, case=case, note=f"no answer in {TOOL_S:g} s")
    return read(tool, case, out, err)


def read(tool: str, case: Case, out: str, err: str) -> Sanitized:
    """A tool's report as a value.

    Args:
        tool: which.
        case: what it ran on.
        out: what it printed.
        err: what was printed beside it, told where there is no report.
    """
    summary = _SUMMARY.findall(out)
    if not summary:
        last = (err.strip() or out.strip() or "it printed nothing").splitlines()[-1]
        return Sanitized(tool=tool, case=case, note=f"it gave no report: {last}")
    found: dict[str, None] = {}
    lines = out.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if hit := _FINDING.match(line):
            place = _PLACE.match(following)
            found[hit[1] + (f", at {place[1]}" if place else "")] = None
    kept = tuple(found)[:MOST_FINDINGS]
    return Sanitized(tool=tool, case=case, findings=kept, n_errors=int(summary[-1]))
