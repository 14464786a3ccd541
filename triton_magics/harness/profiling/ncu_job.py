"""Read the hardware counters of one call, which runs under Nsight Compute."""

from __future__ import annotations

import base64
import re
import subprocess
from contextlib import closing
from functools import partial
from pathlib import Path

from triton_magics.execution.job_refs import VersionRef
from triton_magics.execution.job_requests import SECTION_SETS, ProfileJob
from triton_magics.execution.nsight import INSTALL, REFUSED
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.profiling.call_process import WaitingCall
from triton_magics.harness.profiling.ncu_csv import read_kernels
from triton_magics.harness.profiling.ncu_report_reader import ReportReader
from triton_magics.harness.profiling.replayed_call import (
    CallFacts,
    ReplayRequest,
    read_facts,
)
from triton_magics.model import METRICS, STALLS, Profile, ProfiledKernel, Status, raw_stall

PROFILE_S = 120.0  # beside the time to compile
END_S = 10.0  # time for the kill to take effect
IMPORT_S = 60.0
VERSION_S = 20.0
MAX_CHARS = 2000
REPORT = "profile.ncu-rep"
# What ncu prints where counters can't be read -> the message.
REFUSALS = {
    "ERR_NVGPUCTRPERM": REFUSED,
    "driver is not compatible": "the driver is too old for this version of Nsight Compute: update "
    "the driver, or set `ncu` to an older version",
    "Failed to initialize the profiler": "Nsight Compute can't start its profiler here; some "
    "virtual machines and containers don't allow it",
}
_OPTIONS = (
    "--profile-from-start=off",
    "--target-processes=application-only",
    "--replay-mode=kernel",
    "--import-source=yes",
    "--cache-control=all",
    "--clock-control=none",
)
_ERROR = re.compile(r"^==ERROR== (.+)", re.MULTILINE)
_spares: dict[tuple[str, str], WaitingCall] = {}  # by path of ncu and sections; at most one


class _NoProfile(Exception):
    """There is no report; the status and a message say why."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


def missing_text(setting: str) -> str:
    """Return why `ncu` was not found, and the repair."""
    where = f"the setting `ncu` names {setting}, which is no program" if setting else (
        "Nsight Compute (`ncu`) is neither on PATH nor in a CUDA folder"
    )  # fmt: skip
    return f"{where}: {INSTALL}"


def start_spare(program: str, sections: str) -> None:
    """Start a process under ncu for the next profile with these sections, if none waits.

    Its start and its imports take seconds under ncu.

    Args:
        program: path of ncu.
        sections: see `section_options`.
    """
    spare = _spares.get((program, sections))
    if spare is None or spare.has_ended:
        end_spares()
        _spares[program, sections] = WaitingCall(partial(_command, program, sections))


def end_spares() -> None:
    """End the process that waits for the next profile."""
    while _spares:
        _spares.popitem()[1].close()


def profile_call(
    program: str, job: ProfileJob, base: Profile, report: Reporter
) -> tuple[Profile, CallFacts]:
    """Run the call under ncu, and return its counters, or why there are none, and its facts.

    Args:
        program: path of ncu.
        job: the call.
        base: the profile without its kernels.
        report: receives the progress.
    """
    start_spare(program, job.sections)
    with closing(_spares.pop((program, job.sections))) as call:
        return _profile_by(call, program, job, base, report)


def _profile_by(
    call: WaitingCall, program: str, job: ProfileJob, base: Profile, report: Reporter
) -> tuple[Profile, CallFacts]:
    path, facts = call.folder / REPORT, call.folder / "facts.json"
    version = _start([program, "--version"])
    try:
        with closing(ReportReader()) as reader:
            done = _run_ncu(call, job, facts, report)
            report.stage("reading the report of ncu", patience_s=2 * IMPORT_S + END_S)
            kernels = _read(reader, program, path, job.version) if path.is_file() else ()
        if not kernels:
            raise _NoProfile(*reason_of(done.stdout, done.stderr))
    except _NoProfile as error:
        return base.evolve(status=error.status, message=str(error)), CallFacts()
    finally:
        tool = _version_in(_output(version, VERSION_S))
    profile = base.evolve(
        status=Status.PASSED,
        kernels=kernels,
        tool=tool,
        report_base64=base64.b64encode(path.read_bytes()).decode(),
    )
    return profile, read_facts(facts)


def _read(
    reader: ReportReader, program: str, path: Path, ref: VersionRef
) -> tuple[ProfiledKernel, ...]:
    """Return the kernels of a report: by NVIDIA's module, else without lines as ncu prints it."""
    kernels, reason = reader.read(path, program, ref, limit_s=IMPORT_S)
    if kernels:
        return kernels
    options = ("--csv", "--page=raw", "--print-units=base", "--print-kernel-base=function")
    text = _output(_start([program, f"--import={path}", *options]), IMPORT_S)
    return tuple(kernel.evolve(lines_missing=reason) for kernel in read_kernels(text))


def _run_ncu(
    call: WaitingCall, job: ProfileJob, facts: Path, report: Reporter
) -> subprocess.CompletedProcess[str]:
    limit_s = PROFILE_S + job.compile_s
    report.stage(f"profiling {job.case.label} under ncu", patience_s=limit_s + END_S)
    request = ReplayRequest(
        op=job.op, version=job.version, case=job.case, then="profile", facts=str(facts)
    )
    done = call.run(request, limit_s=limit_s)
    if done is None:
        raise _NoProfile(Status.TIMEOUT, f"no profile in {limit_s:g} s")
    return done


def _command(program: str, sections: str, folder: Path) -> list[str]:
    return [
        program,
        *_OPTIONS,
        *section_options(sections),
        f"--metrics={','.join(raw_names())}",
        f"--export={folder / REPORT}",
    ]


def section_options(sections: str) -> tuple[str, ...]:
    """Return the options of ncu for the sections that its own window shows.

    Args:
        sections: a set of ncu such as `full`, or names of sections with commas between them.
    """
    names = sections.split(",")
    if len(names) == 1 and names[0] in SECTION_SETS:
        return (f"--set={names[0]}", "--section=SourceCounters")
    return ("--set=none", *(f"--section={name}" for name in ("SourceCounters", *names)))


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


def _version_in(text: str) -> str | None:
    match = re.search(r"Version (\S+)", text)
    return f"ncu {match[1]}" if match else None


def _start(command: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, errors="replace"
    )


def _output(process: subprocess.Popen[str], limit_s: float) -> str:
    """Return what a process prints; empty if it does not end in time, which kills it."""
    with process:
        try:
            return process.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return ""


__all__ = [
    "end_spares",
    "missing_text",
    "profile_call",
    "raw_names",
    "reason_of",
    "section_options",
    "start_spare",
]
