"""Write a summary of the workspace."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from triton_magics import rendering
from triton_magics.model import Summary
from triton_magics.session import Session
from triton_magics.verbs import _log_files, _phases
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._phrase import as_magic


class SummaryRequest(Request):
    """A limit of length."""

    max_chars: Annotated[
        int,
        Field(ge=rendering.SHORTEST_SUMMARY),
        option("maximum length in characters", metavar="N"),
    ] = 6000


def run(session: Session, request: SummaryRequest) -> Summary:
    """Write docs/summarization.md, from which a newcomer or a program can go on.

    State, next steps, versions, failed attempts; what does not fit is cut from the end, and named.

    Raises:
        ExportError: it could not be written, or is a person's own.
    """
    names, workspace = _phases.canonical_names(session, ()), session.workspace
    budget_s = session.settings.validate_budget_s
    histories = [
        _log_files.gather(workspace, session.facts_of(n), session.state(n), budget_s=budget_s)
        for n in names
    ]
    report = _phases.make_report(session, names, None)
    text = rendering.summary(report, histories, as_magic, max_chars=request.max_chars)
    path = _log_files.write_summary(workspace, text.markdown)
    summary = Summary(
        path=path, markdown=text.markdown, max_chars=request.max_chars, left_out=text.left_out
    )
    return session.finish(summary)


VERB = Verb(
    name="summary",
    request=SummaryRequest,
    run=run,
    help="Writes docs/summarization.md, from which a newcomer or a program can go on.",
    example="%triton_summary --max-chars 3000",
    rank=200,
)
