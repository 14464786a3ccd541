"""Show what limits a version: hardware counters of one call."""

from __future__ import annotations

import base64
from typing import Annotated

from triton_magics.execution.job_requests import ProfileJob
from triton_magics.model import Case, KernelSource, Profile, shape_of, shape_text
from triton_magics.session import Session, outcomes
from triton_magics.session.checks import choose_seed
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Op, Seed, SizeOrShape, Timeout, Version


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
    seed: Seed = None
    timeout: Timeout = None


def run(session: Session, request: ProfileRequest) -> Profile:
    """Return the hardware counters of one call under Nsight Compute, and the limit they show.

    It needs a GPU, Nsight Compute (`ncu`) and the permission to read counters; without one of
    them the result says what is missing. Its times are not those of a benchmark.

    Raises:
        UnknownVersion: no such version.
        UnknownName: a dtype that the op does not declare.
    """
    source = session.source(request.op, request.version)
    other = session.source(request.op, request.against) if request.against else None
    case = _case(session, request, source)
    profile = _profile(session, request, source, case)
    if other and profile.passed:
        profile = profile.evolve(against=_profile(session, request, other, case))
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
    job = ProfileJob(
        op=session.jobs.op_ref(source.op),
        version=session.jobs.version_ref(source),
        case=case,
        ncu=session.settings.ncu,
        compile_s=session.settings.compile_s,
    )
    outcome = session.jobs.manager.run(job, limits=session.jobs.limits(request.timeout))
    profile = outcomes.profile(outcome, job)
    if not profile.report_base64:
        return profile
    name = f"{source.op}_{source.version}_{case.size or shape_text(case.shape)}"
    data = base64.b64decode(profile.report_base64)
    path = session.workspace.save_profile(name, data)
    return profile.evolve(report_base64="", report_path=path)


VERB = Verb(
    name="profile",
    request=ProfileRequest,
    run=run,
    help="Shows what limits a version: hardware counters of one call, by Nsight Compute.",
    example="%triton_profile softmax v2 --size large --against v1",
    rank=115,
    judges=True,
    long_running=True,
)
