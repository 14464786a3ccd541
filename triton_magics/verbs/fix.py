"""Give a version's code with the corrected line that a verdict or the compiler's error names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Annotated

from triton_magics.errors import BadValue
from triton_magics.model import (
    Correction,
    KernelError,
    KernelSource,
    Validation,
    Written,
    source_lines,
)
from triton_magics.next_step import NextStep
from triton_magics.session import Session
from triton_magics.verbs import kernel
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Op, Version


class FixRequest(Request):
    """A version whose verdict or compile error names a line and the code to write instead."""

    op: Op
    version: Version
    write: Annotated[
        bool, option("save the corrected code as the version's next attempt and compile it")
    ] = False


def run(session: Session, request: FixRequest) -> Correction:
    """Return the version's code with the line that its newest verdict corrects; `write` saves it.

    Raises:
        BadValue: neither verdict nor error stands on this code, or none names a correction.
        UnknownVersion: no such version.
    """
    name = session.canonical(request.op)
    source = session.source(name, request.version)
    newest = session.workspace.latest_validation(name, source.version)
    verdict = newest if newest and newest.sha256 == source.sha256 else None
    compiled = session.workspace.compilation(name, source.sha256)
    error = compiled.error if compiled else None
    for line, advice in (*_of_verdict(verdict), *_of_error(error)):
        corrected = corrected_source(source, line, advice)
        if corrected is not None:
            written = _write(session, source, corrected) if request.write else None
            return session.finish(
                Correction(source=source, line=line, text=corrected, written=written)
            )
    if verdict is None and error is None:
        raise BadValue(
            f"{name} {request.version} has no verdict on its newest code.",
            next_step=NextStep("validate", {"op": name, "version": request.version}),
        )
    if verdict is not None and verdict.passed:
        raise BadValue(f"{name} {request.version} is right: there is nothing to correct.")
    origin = "its verdict" if verdict else "the error of its compilation"
    raise BadValue(
        f"{name} {request.version}: {origin} names no line with a correction. See the cause there, "
        "and correct the code by hand."
    )


def _write(session: Session, source: KernelSource, text: str) -> Written:
    request = kernel.KernelRequest(
        op=source.op,
        version=source.version,
        source=text,
        entry=source.entry,
        type=source.language,
        cell_offset=source.cell_offset,
    )
    return kernel.run(session, request)


def _of_verdict(verdict: Validation | None) -> Iterator[tuple[int, str]]:
    """Yield each line with the code to write instead, of causes and of errors."""
    for case in verdict.failed_cases if verdict else ():
        cause = case.mismatch.cause if case.mismatch else None
        if cause and cause.file_line and cause.advice:
            yield cause.file_line, cause.advice
        yield from _of_error(case.error)
    yield from _of_error(verdict.error if verdict else None)


def _of_error(error: KernelError | None) -> Iterator[tuple[int, str]]:
    if error and error.file_line and error.advice:
        yield error.file_line, error.advice


def corrected_source(source: KernelSource, file_line: int, advice: str) -> str | None:
    """Return the source with one line corrected; None if that gives no valid Python.

    Args:
        source: the version.
        file_line: in the version's file, counted from 1.
        advice: the line to write instead.
    """
    if source.code_language != "python":
        return None
    lines = source_lines(source.source, keepends=True)
    at = file_line - source.header_lines - 1
    if not 0 <= at < len(lines):
        return None
    old = lines[at]
    indent, end = old[: len(old) - len(old.lstrip())], old[len(old.rstrip()) :]
    lines[at] = f"{indent}{advice.strip()}{end}"
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
    help="Gives a version's code with the corrected line of its verdict or compile error; in a "
    "notebook, as a cell. --write saves it.",
    example="%triton_fix softmax v1",
    rank=47,
)
