"""Time the recorded versions again, and fail where one has become slower."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from triton_magics.errors import UserError
from triton_magics.model import RegressionCheck, Retiming, SpeedChange
from triton_magics.session import Session
from triton_magics.verbs import _phases, _retiming, bench
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Dtype, Ops, Timeout


class CheckRegressionsRequest(Request):
    """Ops, and how much slower a version may be."""

    ops: Ops = ()
    dtype: Dtype = None
    threshold: Annotated[
        float,
        Field(gt=0, le=1),
        option("share by which a version may be slower: 0.05", metavar="SHARE"),
    ] = _retiming.THRESHOLD
    timeout: Timeout = None


def run(session: Session, request: CheckRegressionsRequest) -> RegressionCheck:
    """Time the recorded versions of some ops again; fail where one is slower than its record.

    A version that looks slower is timed once more, and is slower only if it is so again.

    Raises:
        IllegalStep: there is no GPU.
        UnknownOp: no such op.
    """
    _retiming.require_gpu(session)
    ops = _phases.canonical_names(session, request.ops)
    retimings: list[Retiming] = []
    slower: list[SpeedChange] = []
    not_confirmed: list[SpeedChange] = []
    skipped: dict[str, str] = {}
    for op in ops:
        recorded = _retiming.recorded_benchmarks(session, op)
        try:
            first = _time(session, request, op, recorded)
        except UserError as error:
            skipped[op] = str(error)
            continue
        retimings.append(first)
        suspects = tuple(dict.fromkeys(c.version for c in first.slower))
        again = _time(session, request, op, recorded, suspects) if suspects else None
        confirmed = {(c.version, c.size) for c in again.slower} if again else set()
        for change in first.slower:
            (slower if (change.version, change.size) in confirmed else not_confirmed).append(change)
    return session.finish(
        RegressionCheck(
            ops=ops,
            threshold=request.threshold,
            retimings=tuple(retimings),
            slower=tuple(slower),
            not_confirmed=tuple(not_confirmed),
            skipped=skipped,
        )
    )


def _time(
    session: Session,
    request: CheckRegressionsRequest,
    op: str,
    recorded: Sequence[_retiming.Recorded],
    versions: tuple[str, ...] = (),
) -> Retiming:
    """Time versions of an op, all recorded ones by default; the record stays as it is."""
    bench_request = bench.BenchRequest(
        op=op, versions=versions, dtype=request.dtype, timeout=request.timeout
    )
    return bench.time_again(
        session, bench_request, recorded, threshold=request.threshold, keep=False
    )


VERB = Verb(
    name="check_regressions",
    request=CheckRegressionsRequest,
    run=run,
    help="Times the recorded versions again; fails where one is slower than its record.",
    example="%triton_check_regressions softmax",
    rank=154,
    judges=True,
    long_running=True,
)
