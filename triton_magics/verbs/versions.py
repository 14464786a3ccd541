"""List the versions of an op."""

from __future__ import annotations

from collections.abc import Sequence

from triton_magics.model import Reference
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb
from triton_magics.verbs._fields import Op


class VersionsRequest(Request):
    """Which op."""

    op: Op


def run(session: Session, request: VersionsRequest) -> tuple[str, ...]:
    """Return the whole names of the versions of an op that are written.

    Raises:
        UnknownOp: no such op.
    """
    name = session.canonical(request.op)
    return tuple(v.version for v in session.workspace.versions(name))


def _page(versions: Sequence[str]) -> Reference:
    body = "\n".join(f"- `{version}`" for version in versions) or "None is written yet."
    return Reference(query="versions", title="Versions", markdown=f"{body}\n")


VERB = Verb(
    name="versions",
    request=VersionsRequest,
    run=run,
    help="Lists the versions of an op that are written.",
    example="%triton_versions softmax",
    rank=210,
    page=_page,
)
