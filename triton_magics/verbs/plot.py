"""Draw a benchmark or a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from triton_magics import rendering
from triton_magics.errors import BadValue, UnknownVersion
from triton_magics.model import Plot, PlotName, Sweep
from triton_magics.next_step import NextStep
from triton_magics.session import Session
from triton_magics.store import Workspace
from triton_magics.verbs import _log_files
from triton_magics.verbs._base import Request, Verb, option, place, rule
from triton_magics.verbs._fields import Op


def check_png(to: str | Path) -> None:
    """Check the name of a picture.

    Raises:
        BadValue: it does not end in .png.
    """
    if Path(to).suffix.lower() != ".png":
        raise BadValue(f"{to}: a picture is written as PNG; name a file that ends in .png")


class PlotRequest(Request):
    """An op, and a picture of it."""

    op: Op
    name: Annotated[
        PlotName,
        place(
            "speedup over torch; times against size; runs, each as a dot; or a sweep's heat map",
            names="plot",
            metavar="PICTURE",
            nargs="?",
        ),
    ] = "speedup"
    to: Annotated[
        str | Path | None, rule(check_png), option("write it there, as PNG", metavar="FILE")
    ] = None


def run(session: Session, request: PlotRequest) -> Plot:
    """Return a picture of the newest benchmark, or of the newest sweep.

    Raises:
        UnknownVersion: nothing was timed, or swept, yet.
        BadValue: there is nothing to see in it; the file can't be written.
    """
    op, name = session.canonical(request.op), request.name
    plot = Plot(op=op, name=name, **_newest(session.workspace, op, name))
    if plot.result is None:
        raise _nothing_to_draw(session.workspace, op, name)
    picture = rendering.draw_plot(plot.result, name)
    if picture is None:
        raise BadValue(
            f"{op}: {name} needs two sizes or more, and its newest benchmark timed fewer.",
            next_step=NextStep("bench", {"op": op}),
        )
    if request.to is not None:
        plot = plot.evolve(path=_log_files.write_picture(Path(request.to), picture.png))
    return session.finish(plot)


def _nothing_to_draw(workspace: Workspace, op: str, name: PlotName) -> UnknownVersion:
    """Return the error that says why there is no picture yet, with the verb that gives one."""
    message = f"{op} has nothing to draw yet."
    if name != "sweep":
        return UnknownVersion(message, next_step=NextStep("bench", {"op": op}))
    if any(workspace.events(op, verbs=_log_files.SWEPT, limit=1)):
        return UnknownVersion(f"{op} has been swept, but nothing was compiled or timed")
    knobs = {"num_warps": (4, 8)}
    return UnknownVersion(
        message, next_step=NextStep("sweep", {"op": op, "version": "v1", "knobs": knobs})
    )


def _newest(workspace: Workspace, op: str, name: PlotName) -> dict[str, Any]:
    """Return what a picture is drawn of, as the field of a Plot."""
    if name != "sweep":
        return {"benchmark": workspace.latest_benchmark(op)}
    events = workspace.events(op, verbs=_log_files.SWEPT, newest_first=True)
    sweeps = [e.result for e in events if isinstance(e.result, Sweep)]
    timed = next((s for s in sweeps if s.timed), None)
    return {"sweep": timed or next((s for s in sweeps if rendering.sweep_plot(s)), None)}


VERB = Verb(
    name="plot",
    request=PlotRequest,
    run=run,
    help="Draws the newest benchmark of an op, or its newest sweep.",
    example="%triton_plot softmax times",
    rank=150,
)
