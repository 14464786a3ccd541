"""Write the log of an op."""

from __future__ import annotations

from typing import Annotated

from triton_magics.model import Export
from triton_magics.session import Session
from triton_magics.verbs import _log_files
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Op


class LogRequest(Request):
    """An op, and files to write beside its log."""

    op: Op
    tests: Annotated[
        bool,
        option(
            "tests/test_OP.py too: each version that passed is validated in your own CI",
        ),
    ] = False


def run(session: Session, request: LogRequest) -> Export:
    """Write the op's log as a notebook, Markdown and HTML; return their paths.

    Raises:
        ExportError: a file could not be written, or is a person's own.
        UnknownVersion: tests of no version: none has passed.
    """
    name, workspace = session.canonical(request.op), session.workspace
    facts = session.facts_of(name)
    tests = _log_files.write_tests(workspace, facts) if request.tests else None
    export = _log_files.write_log(session, name).evolve(tests=tests)
    session.notify_change(name)
    return session.finish(export)


VERB = Verb(
    name="log",
    request=LogRequest,
    run=run,
    help="Writes the op's log for review: a notebook, Markdown and HTML in logs/.",
    example="%triton_log softmax --tests",
    rank=160,
)
