"""Check the machine and the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from triton_magics import knowledge, languages
from triton_magics.model import Diagnosis, Finding
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb, option


class DoctorRequest(Request):
    """A check of the machine and the workspace, with or without repair."""

    repair: Annotated[
        bool,
        option(
            "repair the workspace; nothing is lost",
            doc="repair the workspace without loss: an edit of a file becomes an attempt, a "
            "lost file is put back, a damaged store is rebuilt",
        ),
    ] = False


def run(session: Session, request: DoctorRequest) -> Diagnosis:
    """Check the machine and the workspace, and name a remedy for each fault.

    Raises:
        WorkspaceError: a repair of a workspace that can't be written.
    """
    ops = [knowledge.facts(name) for name in knowledge.op_names()]
    workspace = session.workspace
    of_store = workspace.repair() if request.repair else workspace.check()
    findings = (
        *session.jobs.executor.examine(ops),
        *_languages(),
        *_own_knowledge(session),
        *of_store,
    )
    return session.finish(Diagnosis(findings=findings))


def _languages() -> Iterator[Finding]:
    names = ", ".join(language.name for language in languages.available())
    yield Finding(subject="kernel languages", state="good", detail=names)
    for name, error in languages.load_problems().items():
        yield Finding(
            subject="kernel languages", state="warn", detail=error,
            remedy=f"repair or remove the package that provides {name!r}",
        )  # fmt: skip


def _own_knowledge(session: Session) -> Iterator[Finding]:
    own = knowledge.load_own(session.path)
    for problem in own.problems:
        yield Finding(
            subject="knowledge", state="warn", detail=f"left out: {problem}",
            remedy="correct the file, or remove it",
        )  # fmt: skip
    names = (*own.pages, *own.techniques, *own.templates)
    if names and not own.problems:
        yield Finding(subject="knowledge", state="good", detail=f"of your own: {', '.join(names)}")


VERB = Verb(
    name="doctor",
    request=DoctorRequest,
    run=run,
    help="Checks the machine and the workspace, and names a remedy for each fault.",
    example="%triton_doctor --repair",
    rank=170,
)
