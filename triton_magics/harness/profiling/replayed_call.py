"""One call of a version in a process of its own: what to call, and what is known of it then."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Literal

from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.model import Case, ProfiledKernel, Value

PROGRAM = "triton_magics.harness.one_call"
WORKER = "TRITON_MAGICS_CALLER"  # environment variable: the pid that waits for the call
WAIT_S = 600.0  # for a request
CHECK_S = 1.0
CODE_UNUSED = 76  # exit code: no request came, or nobody waits for the call


class ReplayRequest(Value):
    """The call to replay.

    Attributes:
        then: after a call that compiles and tunes, call it in the range of the CUDA profiler, or
            record what it runs.
        facts: path for the `CallFacts`; empty: none.
    """

    op: OpRef
    version: VersionRef
    case: Case
    then: Literal["", "profile", "record"] = ""
    facts: str = ""


class CallFacts(Value):
    """The least work of a replayed call, and the kernels that CUPTI recorded.

    Attributes:
        bytes: compulsory traffic: every tensor once.
        flops: operations; None where the op declares none.
        kernels: in the order of launch; empty unless they were recorded.
        note: why they are missing.
    """

    bytes: int | None = None
    flops: int | None = None
    kernels: tuple[ProfiledKernel, ...] = ()
    note: str | None = None


def read_facts(path: Path) -> CallFacts:
    """Return the facts that a call has written; empty ones if it has not, or they are damaged."""
    try:
        return CallFacts.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return CallFacts()


def read_request(path: Path) -> ReplayRequest:
    """Return the request from a file, or from a FIFO once it comes.

    End this process if none comes in `WAIT_S`, or if the process that `WORKER` names has ended: a
    tool between the two may not pass on that its parent has ended.
    """
    worker, until = os.environ.get(WORKER), time.monotonic() + WAIT_S

    def check(*_: object) -> None:
        if time.monotonic() > until or (worker and not Path("/proc", worker).exists()):
            os._exit(CODE_UNUSED)

    before = signal.signal(signal.SIGALRM, check)
    signal.setitimer(signal.ITIMER_REAL, CHECK_S, CHECK_S)
    try:
        return ReplayRequest.model_validate_json(path.read_bytes())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


__all__ = ["PROGRAM", "WORKER", "CallFacts", "ReplayRequest", "read_facts", "read_request"]
