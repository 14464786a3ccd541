"""Show the source of a version."""

from __future__ import annotations

from typing import Annotated

from triton_magics.model import KernelSource, Reference
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Op, Version


class SourceRequest(Request):
    """A version, and one of its attempts."""

    op: Op
    version: Version
    attempt: Annotated[
        int | None,
        option(
            "its number, from 1 (default: the newest)",
            metavar="N",
            names="attempt",
            positional=True,
        ),
    ] = None


def run(session: Session, request: SourceRequest) -> KernelSource:
    """Return the source of a version, of its newest attempt by default.

    Raises:
        UnknownVersion: no such version or attempt.
    """
    name = session.canonical(request.op)
    return session.workspace.source(name, request.version, request.attempt)


def source_page(source: KernelSource) -> Reference:
    """Return a page with a version's code, and where it is."""
    title = f"{source.op} {source.version}, attempt {source.attempt}"
    fence = source.code_language
    body = f"`{source.path}`\n\n````{fence}\n{source.source.rstrip()}\n````\n"
    return Reference(query=title, title=title, markdown=body)


VERB = Verb(
    name="source",
    request=SourceRequest,
    run=run,
    help="Shows the source of a version, or of one of its attempts.",
    example="%triton_source softmax v2 --attempt 1",
    rank=230,
    page=source_page,
)
