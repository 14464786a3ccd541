"""Show every recorded time of an op, and what changed between them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from triton_magics import rendering
from triton_magics.errors import UnknownVersion
from triton_magics.model import History, HistoryPoint
from triton_magics.next_step import NextStep
from triton_magics.session import Session
from triton_magics.verbs import _log_files
from triton_magics.verbs._base import Request, Verb, option, rule
from triton_magics.verbs._fields import Op
from triton_magics.verbs._retiming import Recorded, recorded_benchmarks
from triton_magics.verbs.plot import check_png


class HistoryRequest(Request):
    """An op."""

    op: Op
    to: Annotated[
        str | Path | None,
        rule(check_png),
        option("write the picture there, as PNG", metavar="FILE"),
    ] = None


def run(session: Session, request: HistoryRequest) -> History:
    """Return every recorded speedup over torch on a GPU, with GPU, driver, torch and Triton.

    Raises:
        UnknownVersion: nothing was timed on a GPU yet.
        BadValue: the file can't be written.
    """
    op = session.canonical(request.op)
    recorded = recorded_benchmarks(session, op)[::-1]
    points = tuple(point for record in recorded for point in _points(record))
    if not points:
        if session.jobs.device_kind != "gpu":
            raise UnknownVersion(
                f"{op}: no benchmark of a GPU is recorded, and there is no GPU here"
            )
        raise UnknownVersion(
            f"{op}: no benchmark of a GPU is recorded yet.", next_step=NextStep("bench", {"op": op})
        )
    history = History(op=op, points=points)
    if request.to is not None:
        picture = rendering.draw_plot(history)
        assert picture is not None
        path = _log_files.write_picture(Path(request.to), picture.png)
        history = history.evolve(path=path)
    return session.finish(history)


def _points(record: Recorded) -> Iterator[HistoryPoint]:
    time, benchmark = record
    here = benchmark.environment
    if here is None:
        return
    for version, sha256 in zip(benchmark.versions, benchmark.sha256s, strict=True):
        speedups = {s: benchmark.size_speedup(version, s) for s in benchmark.sizes}
        by_size = {size: ratio for size, ratio in speedups.items() if ratio}
        if by_size:
            yield HistoryPoint(
                time=time, version=version, sha256=sha256, dtype=benchmark.dtype,
                sizes=tuple(by_size), final_us=benchmark.final_us(version),
                torch_us=benchmark.final_us("torch"), device=here.device, driver=here.driver,
                torch=here.torch, triton=here.triton,
                speedup=math.exp(math.fsum(map(math.log, by_size.values())) / len(by_size)),
            )  # fmt: skip


VERB = Verb(
    name="history",
    request=HistoryRequest,
    run=run,
    help="Lists and draws every recorded speedup of an op, by GPU, driver, torch and Triton.",
    example="%triton_history softmax",
    rank=152,
)
