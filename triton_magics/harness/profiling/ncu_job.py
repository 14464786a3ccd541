"""Profile job: read the hardware counters of one call, which runs under Nsight Compute."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import tempfile
from pathlib import Path

from triton_magics.execution.job_requests import Answer, ProfileJob
from triton_magics.execution.nsight import INSTALL, PERMIT, find_ncu
from triton_magics.harness.process.device import GPU, environment, this_device
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.profiling.ncu_csv import read_kernels
from triton_magics.harness.profiling.ncu_lines import add_lines
from triton_magics.harness.profiling.replayed_call import ReplayRequest, run_under
from triton_magics.model import METRICS, STALLS, Profile, Status, raw_stall

PROFILE_S = 120.0  # beside the time to compile
END_S = 10.0  # time for the kill to take effect
IMPORT_S = 60.0
VERSION_S = 20.0
MAX_CHARS = 2000
NO_GPU = "a profile reads the hardware counters of a GPU, and there is none here"
# What ncu prints where counters can't be read -> the message.
REFUSALS = {
    "ERR_NVGPUCTRPERM": "the driver refuses this user the GPU's counters (ERR_NVGPUCTRPERM): "
    + PERMIT,
    "driver is not compatible": "the driver is too old for this version of Nsight Compute: update "
    "the driver, or set `ncu` to an older version",
    "Failed to initialize the profiler": "Nsight Compute can't start its profiler here; some "
    "virtual machines and containers don't allow it",
}
_OPTIONS = (
    "--profile-from-start=off",
    "--target-processes=application-only",
    "--replay-mode=kernel",
    "--set=detailed",  # for Nsight Compute's own window
    "--import-source=yes",
    "--cache-control=all",
    "--clock-control=none",
)
_ERROR = re.compile(r"^==ERROR== (.+)", re.MULTILINE)


class _NoProfile(Exception):
    """There is no report; the status and a message say why."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


def run(job: ProfileJob, report: Reporter) -> tuple[Answer, bool]:
    """Profile one call, while no other process uses the GPU."""
    base = Profile(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        status=Status.FAILED,
        case=job.case,
        environment=environment(),
    )
    if this_device() != GPU:
        return base.evolve(status=Status.NO_GPU, message=NO_GPU), False
    program = find_ncu(job.ncu, os.environ.get("PATH"))
    if program is None:
        return base.evolve(status=Status.UNAVAILABLE, message=missing_text(job.ncu)), False
    purpose = f"profiling {job.op.name} {job.version.version}"
    lock = gpu_lock(environment().gpu_uuid, exclusive=True, purpose=purpose, on_wait=report.waiting)
    with lock, tempfile.TemporaryDirectory(prefix="ncu-") as folder:
        return profile_call(program, job, base, Path(folder), report), False


def missing_text(setting: str) -> str:
    """Return why `ncu` was not found, and the repair."""
    where = f"the setting `ncu` names {setting}, which is no program" if setting else (
        "Nsight Compute (`ncu`) is neither on PATH nor in a CUDA folder"
    )  # fmt: skip
    return f"{where}: {INSTALL}"


def profile_call(
    program: str, job: ProfileJob, base: Profile, folder: Path, report: Reporter
) -> Profile:
    """Run the call under ncu, and return its counters, or why there are none.

    Args:
        program: path of ncu.
        job: the call.
        base: the profile without its kernels.
        folder: for temporary files; the caller removes it.
        report: receives the progress.
    """
    path = folder / "profile.ncu-rep"
    try:
        done = _run_ncu(program, job, path, report)
        report.stage("reading the report of ncu", patience_s=IMPORT_S + END_S)
        kernels = read_kernels(_print_report(program, path)) if path.is_file() else ()
        if not kernels:
            raise _NoProfile(*reason_of(done.stdout, done.stderr))
    except _NoProfile as error:
        return base.evolve(status=error.status, message=str(error))
    return base.evolve(
        status=Status.PASSED,
        kernels=add_lines(kernels, path, program, job.version),
        tool=_version(program),
        report_base64=base64.b64encode(path.read_bytes()).decode(),
    )


def _run_ncu(
    program: str, job: ProfileJob, path: Path, report: Reporter
) -> subprocess.CompletedProcess[str]:
    limit_s = PROFILE_S + job.compile_s
    report.stage(f"profiling {job.case.label} under ncu", patience_s=limit_s + END_S)
    request = ReplayRequest(op=job.op, version=job.version, case=job.case, is_profiled=True)
    command = [program, *_OPTIONS, f"--metrics={','.join(raw_names())}", f"--export={path}"]
    done = run_under(command, request, limit_s=limit_s, variables={"TMPDIR": str(path.parent)})
    if done is None:
        raise _NoProfile(Status.TIMEOUT, f"no profile in {limit_s:g} s")
    return done


def raw_names() -> tuple[str, ...]:
    """Return the raw names of every metric that a profile reads."""
    return (*(metric.raw for metric in METRICS), *map(raw_stall, STALLS))


def reason_of(out: str, err: str) -> tuple[Status, str]:
    """Return the status and the reason of a run without a report.

    Args:
        out: standard output of ncu and the program under it.
        err: their standard error.
    """
    text = f"{out}\n{err}"
    for words, message in REFUSALS.items():
        if words in text:
            return Status.UNAVAILABLE, message
    if "No kernels were profiled" in text and "returned an error code" not in text:
        return Status.FAILED, "the call launched no kernel on the GPU"
    errors = [line for line in _ERROR.findall(text) if "returned an error code" not in line]
    if errors:
        return Status.UNAVAILABLE, f"Nsight Compute: {errors[0]}"[:MAX_CHARS]
    last = (err.strip() or out.strip() or "no output").splitlines()[-1]
    return Status.RUNTIME_ERROR, f"the call under Nsight Compute failed: {last}"[:MAX_CHARS]


def _print_report(program: str, path: Path) -> str:
    options = ("--csv", "--page=raw", "--print-units=base", "--print-kernel-base=function")
    return _output([program, f"--import={path}", *options], IMPORT_S)


def _version(program: str) -> str | None:
    match = re.search(r"Version (\S+)", _output([program, "--version"], VERSION_S))
    return f"ncu {match[1]}" if match else None


def _output(command: list[str], limit_s: float) -> str:
    """Return what a command prints; empty if it does not end in time."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


__all__ = ["missing_text", "profile_call", "raw_names", "reason_of", "run"]
