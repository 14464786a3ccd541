"""Run a case under compute-sanitizer: invalid accesses, shared-memory races, unset memory."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator

from triton_magics.execution.job_requests import ValidateJob
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.profiling.call_process import run_under
from triton_magics.harness.profiling.replayed_call import ReplayRequest
from triton_magics.model import Case, Sanitized

TOOLS = ("memcheck", "racecheck", "initcheck")
TOOL_S = 120.0
END_S = 10.0  # time for the kill to take effect
MAX_FINDINGS = 5
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


def run_sanitizer(
    job: ValidateJob, case: Case, report: Reporter, *, gpu: bool
) -> Iterator[Sanitized]:
    """Run each tool on one call of a case."""
    program = _program()
    for tool in TOOLS:
        if not gpu:
            yield Sanitized(tool=tool, case=case, note="needs a GPU")
        elif program is None:
            yield Sanitized(tool=tool, case=case, note=_MISSING)
        else:
            report.stage(f"running {tool} on {case.label}", patience_s=TOOL_S + END_S)
            yield _run(program, tool, job, case)


def _program() -> str | None:
    path = os.pathsep.join((os.environ.get("PATH", ""), *_HOMES))
    return shutil.which("compute-sanitizer", path=path)


def _run(program: str, tool: str, job: ValidateJob, case: Case) -> Sanitized:
    request = ReplayRequest(op=job.op, version=job.version, case=case)
    no_cache = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}  # else overruns hit torch's cache unseen
    command = [program, "--tool", tool]
    done = run_under(command, request, limit_s=TOOL_S, variables=no_cache)
    if done is None:
        return Sanitized(tool=tool, case=case, note=f"no answer in {TOOL_S:g} s")
    return parse_report(tool, case, done.stdout, done.stderr)


def parse_report(tool: str, case: Case, out: str, err: str) -> Sanitized:
    """Return a tool's report as a value.

    Args:
        tool: the tool's name.
        case: the case that it ran.
        out: its standard output.
        err: its standard error, quoted if there is no report.
    """
    summary = _SUMMARY.findall(out)
    if not summary:
        last = (err.strip() or out.strip() or "no output").splitlines()[-1]
        return Sanitized(tool=tool, case=case, note=f"no report: {last}")
    messages: dict[str, None] = {}
    lines = out.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if match := _FINDING.match(line):
            place = _PLACE.match(following)
            messages[match[1] + (f", at {place[1]}" if place else "")] = None
    findings = tuple(messages)[:MAX_FINDINGS]
    return Sanitized(tool=tool, case=case, findings=findings, n_errors=int(summary[-1]))
