"""Check the timing itself on this GPU."""

from __future__ import annotations

import secrets

from triton_magics.execution.job_requests import SelfTestJob
from triton_magics.model import SelfTest
from triton_magics.session import Session, outcomes
from triton_magics.verbs._base import Request, Verb
from triton_magics.verbs._fields import Timeout


class SelftestRequest(Request):
    """A time limit."""

    timeout: Timeout = None


def run(session: Session, request: SelftestRequest) -> SelfTest:
    """Check that the timing tells right from wrong on this GPU.

    A kernel against itself must be the same, kernels 2 % and 100 % longer slower; a host that
    is late, and work on a stream of its own, must be left without a time.
    """
    job = SelfTestJob(seed=secrets.randbits(24), compile_s=session.settings.compile_s)
    outcome = session.jobs.manager.run(job, limits=session.jobs.limits(request.timeout))
    return session.finish(outcomes.selftest(outcome, job))


VERB = Verb(
    name="selftest",
    request=SelftestRequest,
    run=run,
    help="Times kernels of known length and cheats, to check the timing on this GPU.",
    example="%triton_selftest",
    rank=55,
    judges=True,
    long_running=True,
)
