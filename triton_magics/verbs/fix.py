"""Write the corrected line that a verdict names."""

from __future__ import annotations

import ast

from triton_magics.errors import BadValue
from triton_magics.model import Cause, Correction, KernelSource, Validation
from triton_magics.next_step import NextStep
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb
from triton_magics.verbs._fields import Op, Version


class FixRequest(Request):
    """A version whose newest verdict names a line and the code to write instead."""

    op: Op
    version: Version


def run(session: Session, request: FixRequest) -> Correction:
    """Return the version's code with the line that its newest verdict corrects; nothing is saved.

    Raises:
        BadValue: no verdict stands on this code, or it names no line with a correction.
        UnknownVersion: no such version.
    """
    name = session.canonical(request.op)
    source = session.source(name, request.version)
    verdict = session.workspace.latest_validation(name, source.version)
    if verdict is None or verdict.sha256 != source.sha256:
        raise BadValue(
            f"{name} {request.version} has no verdict on its newest code.",
            next_step=NextStep("validate", {"op": name, "version": request.version}),
        )
    for cause in _causes(verdict):
        corrected = corrected_source(source, cause)
        if corrected is not None and cause.file_line is not None:
            return session.finish(Correction(source=source, line=cause.file_line, text=corrected))
    raise BadValue(
        f"{name} {request.version}: its verdict names no line with a correction. See the "
        "likely cause in the verdict."
    )


def _causes(verdict: Validation) -> list[Cause]:
    mismatches = [case.mismatch for case in verdict.failed_cases]
    return [m.cause for m in mismatches if m and m.cause]


def corrected_source(source: KernelSource, cause: Cause) -> str | None:
    """Return the source with the cause's line corrected; None if that gives no valid Python.

    Args:
        source: the version.
        cause: names a line of the version's file and the line to write instead.
    """
    if source.code_language != "python" or cause.advice is None or cause.file_line is None:
        return None
    lines = source.source.splitlines(keepends=True)
    at = cause.file_line - source.header_lines - 1
    if not 0 <= at < len(lines):
        return None
    old = lines[at]
    indent, end = old[: len(old) - len(old.lstrip())], old[len(old.rstrip()) :]
    lines[at] = f"{indent}{cause.advice.strip()}{end}"
    corrected = "".join(lines)
    return corrected if lines[at] != old and _is_python(corrected) else None


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


VERB = Verb(
    name="fix",
    request=FixRequest,
    run=run,
    help="Gives a version's code with the corrected line of its verdict; in a notebook, as a cell.",
    example="%triton_fix softmax v1",
    rank=47,
)
