"""Profile job: the counters of one call; where they are refused, what CUPTI records of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from triton_magics.execution import nsight
from triton_magics.execution.job_answers import Answer
from triton_magics.execution.job_requests import SECTION_SETS, JobRequest, ProfileJob
from triton_magics.harness.process import device
from triton_magics.harness.process.device import GPU, environment, this_device
from triton_magics.harness.process.forked_call import run_in_fork
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.profiling import ncu_job
from triton_magics.harness.profiling.call_process import run_forked
from triton_magics.harness.profiling.replayed_call import CallFacts, ReplayRequest, read_facts
from triton_magics.harness.timing.peak_rates import PeakRates, get_peak_rates
from triton_magics.model import CallRoofline, Environment, Profile, Status

RECORD_S = 60.0  # beside the time to compile
CONTEXT_S = 60.0
MAX_CHARS = 2000
NO_GPU = "a profile reads the hardware counters of a GPU, and there is none here"


def prepare_worker() -> Environment:
    """Return the environment of this worker, and start the process of the first profile.

    A forked process reads the environment: this one must not touch the GPU, because it forks.

    Raises:
        RuntimeError: kernels can't run here.
    """
    _start_spare("", SECTION_SETS[0])
    with tempfile.TemporaryDirectory() as folder:
        path, output = Path(folder, "environment"), Path(folder, "output")
        run_in_fork(
            lambda: path.write_text(device.create_context("gpu").model_dump_json()),
            output,
            CONTEXT_S,
        )
        if not path.exists():
            raise RuntimeError(f"the GPU can't be used:\n{output.read_text(errors='replace')}")
        environment = Environment.model_validate_json(path.read_bytes())
    device.adopt_environment(environment)
    return environment


def prepare_next(job: JobRequest) -> None:
    """After a profile start the process of the next one."""
    if isinstance(job, ProfileJob) and job.how != "activity":
        _start_spare(job.ncu, job.sections)


def _start_spare(ncu: str, sections: str) -> None:
    program = nsight.find_ncu(ncu, os.environ.get("PATH"))
    if program and reason_against_counters(ncu, program) is None:
        ncu_job.start_spare(program, sections)


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
    rates = get_peak_rates(environment(), report)
    purpose = f"profiling {job.op.name} {job.version.version}"
    lock = gpu_lock(environment().gpu_uuid, exclusive=True, purpose=purpose, on_wait=report.waiting)
    with lock, tempfile.TemporaryDirectory(prefix="ncu-") as folder:
        profile, facts = _profile(job, base, Path(folder), report)
    return profile.evolve(roofline=_roofline(profile, facts, rates)), False


def _profile(
    job: ProfileJob, base: Profile, folder: Path, report: Reporter
) -> tuple[Profile, CallFacts]:
    """Return the profile by the highest rung that answers, and the facts of the call."""
    if job.how == "activity":
        return record_call(job, base, folder, report)
    program = nsight.find_ncu(job.ncu, os.environ.get("PATH"))
    if reason := reason_against_counters(job.ncu, program):
        profile, facts = base.evolve(status=Status.UNAVAILABLE, message=reason), CallFacts()
    else:
        profile, facts = ncu_job.profile_call(program or "", job, base, report)
    if profile.status is not Status.UNAVAILABLE or job.how == "counters":
        return profile, facts
    recorded, facts = record_call(job, base, folder, report)
    if recorded.passed:
        return recorded.evolve(rung_reason=profile.message), facts
    both = "; ".join(filter(None, (profile.message, recorded.message)))
    return profile.evolve(message=both), facts


def reason_against_counters(ncu: str, program: str | None, root: Path = Path("/")) -> str | None:
    """Return why counters can't be read, as far as that is known beforehand.

    Args:
        ncu: the user's path of ncu; empty: none.
        program: path of ncu; None: it was not found.
        root: folder that contains /proc.
    """
    if program is None:
        return ncu_job.missing_text(ncu)
    texts = (_read(root / "proc/driver/nvidia/params"), _read(root / "proc/self/status"))
    return nsight.REFUSED if nsight.are_counters_refused(*texts) else None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def record_call(
    job: ProfileJob, base: Profile, folder: Path, report: Reporter
) -> tuple[Profile, CallFacts]:
    """Run the call in a forked process, and return what CUPTI records of it.

    Args:
        job: the call.
        base: the profile without its kernels.
        folder: for temporary files; the caller removes it.
        report: receives the progress.
    """
    limit_s = RECORD_S + job.compile_s
    report.stage(f"recording {job.case.label} by CUPTI", patience_s=limit_s + ncu_job.END_S)
    path = folder / "recorded.json"
    request = ReplayRequest(
        op=job.op, version=job.version, case=job.case, then="record", facts=str(path)
    )
    output = run_forked(request, limit_s=limit_s)
    if output is None:
        message = f"no record in {limit_s:g} s"
        return base.evolve(status=Status.TIMEOUT, message=message), CallFacts()
    facts = read_facts(path)
    if facts.kernels:
        return base.evolve(
            status=Status.PASSED, rung="activity", kernels=facts.kernels, tool="CUPTI activity"
        ), facts
    if facts.note:
        return base.evolve(status=Status.UNAVAILABLE, message=facts.note), facts
    last = (output.strip() or "no output").splitlines()[-1]
    message = f"the call failed: {last}"[:MAX_CHARS]
    return base.evolve(status=Status.RUNTIME_ERROR, message=message), facts


def _roofline(profile: Profile, facts: CallFacts, rates: PeakRates | None) -> CallRoofline | None:
    """Return the call against the measured rates; None without a profile."""
    if not profile.passed or profile.rung == "static":
        return None
    return CallRoofline(
        bytes=facts.bytes,
        flops=facts.flops,
        time_us=profile.duration_us,
        clock=profile.rung,
        copy_gbps=rates.copy_gbps if rates else None,
        peak_tflops=rates.matmul_tflops.get(profile.case.dtype) if rates else None,
    )


__all__ = ["prepare_next", "prepare_worker", "reason_against_counters", "record_call", "run"]
