"""Keep a note on an op or a version, for its log."""

from __future__ import annotations

from typing import Annotated

from triton_magics.errors import BadValue
from triton_magics.model import Reference
from triton_magics.session import Session
from triton_magics.verbs._base import Arg, Request, Verb, place
from triton_magics.verbs._fields import Op

MOST_LETTERS = 20_000


class NoteRequest(Request):
    """An op, a text, and the version that it is about."""

    op: Op
    source: Annotated[str, Arg("the text, in Markdown", kind="cell")]
    version: Annotated[
        str | None, place("the version that it is about", names="version", nargs="?")
    ] = None


def run(session: Session, request: NoteRequest) -> Reference:
    """Record a text in Markdown, which the op's log shows with its version or its analysis.

    Raises:
        UnknownVersion: no such version.
        BadValue: an empty text, or one over 20,000 letters.
    """
    name, text = session.canonical(request.op), request.source.strip()
    if not 0 < len(text) <= MOST_LETTERS:
        raise BadValue(f"a note of {len(text):,} letters: write 1 to {MOST_LETTERS:,}")
    source = session.workspace.source(name, request.version) if request.version else None
    session.record(name, "noted", None, source=source, args={"text": text})
    title = (
        f"noted for the log: {name} {source.version}" if source else f"noted for the log: {name}"
    )
    return session.finish(Reference(query=title, title=title, markdown=text))


VERB = Verb(
    name="note",
    request=NoteRequest,
    run=run,
    help="Keeps the cell's text, in Markdown, as a note on an op or a version, for its log.",
    example="""%%triton_note softmax v2
Two reads of x in place of three: the second pass recomputes `exp`.""",
    rank=155,
    takes_cell=True,
)
