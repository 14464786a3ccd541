"""Search the knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from triton_magics import knowledge
from triton_magics.model import Reference
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb, place


class RefRequest(Request):
    """A topic, or words to find."""

    words: Annotated[
        Sequence[str],
        place(
            "a topic, or words to find",
            names="topic",
            metavar="WORD",
            nargs="*",
            variadic=True,
        ),
    ] = ()


def run(session: Session, request: RefRequest) -> Reference:
    """Return a page of the knowledge base, or what a search finds; no words: the contents."""
    own_ops = session.workspace.own_ops().values()
    words = " ".join(request.words)
    return session.finish(knowledge.search(words, own=own_ops, folder=session.own_knowledge()))


VERB = Verb(
    name="ref",
    request=RefRequest,
    run=run,
    help="Shows a page of the guides, an op's facts, a technique; or what a search finds in them.",
    example="%triton_ref online reduction",
    rank=90,
)
