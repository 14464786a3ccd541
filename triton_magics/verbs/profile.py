"""Show what limits a version: hardware counters of one call, or the figures that can be had."""

from __future__ import annotations

import base64
import re
from typing import Annotated, Literal

from triton_magics.errors import BadValue
from triton_magics.execution.job_requests import SECTION_SETS, ProfileJob
from triton_magics.model import (
    CallRoofline,
    Case,
    Compilation,
    KernelResources,
    KernelSource,
    Profile,
    ProfiledKernel,
    Status,
    shape_of,
    shape_text,
)
from triton_magics.session import Session, outcomes
from triton_magics.session.checks import choose_seed
from triton_magics.verbs._base import Request, Verb, option, rule
from triton_magics.verbs._fields import Op, Seed, SizeOrShape, Timeout, Version

STATIC_REASON = "asked for static figures"
_SECTIONS = re.compile(r"[A-Za-z]\w*(,[A-Za-z]\w*)*")
_WITHOUT_COUNTERS = (Status.NO_GPU, Status.UNAVAILABLE)


def _check_sections(text: str) -> None:
    """Check the form of a list of sections; Nsight Compute knows their names.

    Raises:
        BadValue: it has another form.
    """
    if not _SECTIONS.fullmatch(text):
        sets = ", ".join(SECTION_SETS)
        raise BadValue(
            f"{text!r} names no sections: write {sets}, or MemoryWorkloadAnalysis,PmSampling"
        )


class ProfileRequest(Request):
    """A version, the input of the call, and a version to compare with."""

    op: Op
    version: Version
    size: SizeOrShape = None
    dtype: Annotated[
        str | None,
        option("of the inputs (default: the op's first)", names="dtype", metavar="DTYPE"),
    ] = None
    against: Annotated[
        str | None,
        option("profile this version too, and compare", names="version", metavar="VERSION"),
    ] = None
    sections: Annotated[
        str,
        rule(_check_sections),
        option(
            "more for Nsight Compute's own window: detailed, full, or names of sections",
            metavar="NAMES",
        ),
    ] = SECTION_SETS[0]
    how: Annotated[
        Literal["auto", "counters", "activity", "static"],
        option(
            "hardware counters, CUPTI's activity records, static figures, or auto: the first that "
            "can be had",
            metavar="HOW",
        ),
    ] = "auto"
    seed: Seed = None
    timeout: Timeout = None


def run(session: Session, request: ProfileRequest) -> Profile:
    """Return what limits one call: its hardware counters under Nsight Compute, and its roofline.

    Counters need a GPU, Nsight Compute (`ncu`) and the permission to read them. Without one of
    them the result says what is missing, and has the figures that can be had: CUPTI's times on a
    GPU, else those of the compiled code. Its times are not those of a benchmark.

    Raises:
        UnknownVersion: no such version.
        UnknownName: a dtype that the op does not declare.
        BadValue: `sections` names none.
    """
    source = session.source(request.op, request.version)
    other = session.source(request.op, request.against) if request.against else None
    case = _case(session, request, source)
    profile = _profile(session, request, source, case)
    if other and profile.kernels:
        profile = profile.evolve(against=_profile(session, request, other, case))
    if profile.kernels:
        session.record(source.op, "profiled", profile, source=source)
    return session.finish(profile)


def _case(session: Session, request: ProfileRequest, source: KernelSource) -> Case:
    facts = session.facts_of(source.op)
    dtype = request.dtype or facts.dtypes[0]
    session.check_dtypes(source.op, (dtype,))
    seed = choose_seed(request.seed)
    size = session.choose_size(source.op, request.size, largest=True, shapes=True)
    if shape := shape_of(size):
        return Case(shape=shape, dtype=dtype, seed=seed)
    return Case(shape=facts.sizes[size], dtype=dtype, size=size, seed=seed)


def _profile(
    session: Session, request: ProfileRequest, source: KernelSource, case: Case
) -> Profile:
    if request.how == "static":
        base = Profile(
            op=source.op, version=source.version, attempt=source.attempt, sha256=source.sha256,
            status=Status.PASSED, case=case, message=STATIC_REASON,
        )  # fmt: skip
        return _add_static(session, source, base)
    job = ProfileJob(
        op=session.jobs.op_ref(source.op),
        version=session.jobs.version_ref(source),
        case=case,
        ncu=session.settings.ncu,
        sections=request.sections,
        how=request.how,
        compile_s=session.settings.compile_s,
    )
    outcome = session.jobs.manager.run(job, limits=session.jobs.limits(request.timeout))
    profile = outcomes.profile(outcome, job)
    if profile.status in _WITHOUT_COUNTERS and request.how == "auto":
        return _add_static(session, source, profile)
    if not profile.report_base64:
        return profile
    name = f"{source.op}_{source.version}_{case.size or shape_text(case.shape)}"
    data = base64.b64decode(profile.report_base64)
    path = session.workspace.save_profile(name, data)
    return profile.evolve(report_base64="", report_path=path)


# --------------------------------------------------------------------------------- static figures


def _add_static(session: Session, source: KernelSource, profile: Profile) -> Profile:
    """Return the profile with the figures of the compiled code, and the last benchmark's time."""
    size = profile.case.size
    compilation = session.jobs.compile(
        source,
        session.jobs.default_target(),
        dtype=profile.case.dtype,
        sizes=(size,) if size else (),
        here=False,
        detail=True,
    )
    outcomes.check_compiled(compilation)
    return profile.evolve(
        rung="static",
        rung_reason=profile.message,
        kernels=_static_kernels(compilation, size),
        tool=f"compiled for {compilation.target}" if compilation.passed else None,
        roofline=_timed_roofline(session, source, profile.case),
    )


def _static_kernels(compilation: Compilation, size: str | None) -> tuple[ProfiledKernel, ...]:
    kernels = [k for k in compilation.kernels if k.size in (None, size)]
    return tuple(map(_static_kernel, kernels or compilation.kernels[:1]))


def _static_kernel(resources: KernelResources) -> ProfiledKernel:
    return ProfiledKernel(
        name=resources.name,
        grid=resources.grid or (),
        block=(32 * resources.num_warps,),
        registers=resources.registers,
        shared_bytes=resources.shared_bytes,
        spill_bytes=resources.spill_bytes,
        theoretical_occupancy_pct=resources.occupancy_pct,
        waves=resources.waves,
    )


def _timed_roofline(session: Session, source: KernelSource, case: Case) -> CallRoofline | None:
    """Return the roofline of the newest benchmark of exactly this code, on the same input."""
    benchmark = session.workspace.latest_timing(source.op, source.version)
    if benchmark is None or not benchmark.on_gpu or case.size is None:
        return None
    timing = benchmark.timing(source.version, case.size)
    timed = dict(zip(benchmark.versions, benchmark.sha256s, strict=True)).get(source.version)
    if timing is None or (timed, benchmark.dtype) != (source.sha256, case.dtype):
        return None
    return CallRoofline(
        bytes=timing.bytes,
        flops=timing.flops,
        time_us=timing.mean_us,
        clock="benchmark",
        copy_gbps=benchmark.copy_gbps,
        peak_tflops=benchmark.matmul_tflops.get(benchmark.dtype),
    )


VERB = Verb(
    name="profile",
    request=ProfileRequest,
    run=run,
    help="Shows what limits a version: hardware counters of a call, its roofline, its slow lines.",
    example="%triton_profile softmax v2 --size large --against v1",
    rank=115,
    judges=True,
    long_running=True,
)
