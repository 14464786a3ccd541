"""Write the newest times in the form of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from triton_magics.errors import BadValue, UnknownVersion
from triton_magics.model import Reference
from triton_magics.next_step import NextStep
from triton_magics.problems import METRIC_FORMATS, TimedVersion
from triton_magics.session import Session
from triton_magics.verbs import _phases
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Ops
from triton_magics.verbs._retiming import recorded_benchmarks

MetricFormat = Literal["bencher", "github", "trace"]


class MetricsRequest(Request):
    """Ops, and the tool."""

    ops: Ops = ()
    form: Annotated[
        MetricFormat,
        option(
            "bencher: Bencher's BMF; github: customSmallerIsBetter of github-action-benchmark; "
            "trace: lines of FlashInfer Trace",
            "--format",
            metavar="TOOL",
        ),
    ] = "bencher"
    to: Annotated[
        str | Path | None, option("write the file there, not on the screen", metavar="FILE")
    ] = None


def run(session: Session, request: MetricsRequest) -> Reference:
    """Return the newest recorded times of each version on a GPU, as another tool reads them.

    Raises:
        UnknownOp: no such op.
        UnknownVersion: nothing was timed on a GPU yet.
        BadValue: the file can't be written.
    """
    ops = _phases.canonical_names(session, request.ops)
    timed = [row for op in ops for row in _newest(session, op)]
    if not timed:
        op = ops[0] if ops else "softmax"
        raise UnknownVersion(
            "no benchmark of a GPU is recorded yet.", next_step=NextStep("bench", {"op": op})
        )
    text = METRIC_FORMATS[request.form](timed)
    place = "" if request.to is None else f", written to {_write(Path(request.to), text)}"
    title = f"{len(timed)} times for {request.form}{place}"
    fence = "json" if request.form != "trace" else ""
    return session.finish(
        Reference(query=request.form, title=title, markdown=f"```{fence}\n{text}```\n")
    )


def _newest(session: Session, op: str) -> list[TimedVersion]:
    """Return the newest time of each version at each size, with its validation's largest error."""
    rows: dict[tuple[str, str], TimedVersion] = {}
    for time, benchmark in recorded_benchmarks(session, op):
        for version, sha256 in zip(benchmark.versions, benchmark.sha256s, strict=True):
            verdict = session.workspace.passed_validation(op, sha256, benchmark.dtype, "gpu")
            for size in benchmark.sizes:
                own, torch = benchmark.timing(version, size), None
                if "torch" in benchmark.providers:
                    torch = benchmark.timing("torch", size)
                if own and torch and (version, size) not in rows:
                    rows[version, size] = TimedVersion(time, benchmark, own, torch, verdict)
    return list(rows.values())


def _write(path: Path, text: str) -> str:
    try:
        path.expanduser().write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadValue(f"{path} can't be written: {error.strerror}") from error
    return str(path)


VERB = Verb(
    name="metrics",
    request=MetricsRequest,
    run=run,
    help="Writes the newest times for Bencher, github-action-benchmark or FlashInfer Trace.",
    example="%triton_metrics softmax --format bencher",
    rank=156,
)
