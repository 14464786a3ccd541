"""Names of a call that must exist: its op, versions, dtypes and sizes. All that do not, at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from triton_magics.errors import UserError
from triton_magics.session import Session
from triton_magics.verbs._base import Verb

_ALL = "all"  # in place of a version


def find_unknown_names(
    session: Session, verb: Verb, values: Mapping[str, Any]
) -> Iterator[tuple[str, UserError]]:
    """Yield each field with a name that the workspace does not have, and the error that says so.

    A verb refuses the first of them. Fields of a wrong type are left out.

    Args:
        session: of the workspace.
        verb: takes the values; one that is no job may name what is still to be written.
        values: of the call, by the request's fields.
    """
    if not isinstance(op := values.get("op"), str):
        return
    try:
        name = session.canonical(op)
    except UserError as error:
        yield "op", error
        return
    checks: dict[str, Callable[[str], object]] = {
        "dtype": lambda each: session.check_dtypes(name, (each,)),
        "size": lambda each: session.check_sizes(name, (each,)),
    }
    if verb.is_queued and not verb.takes_cell:
        checks["version"] = lambda each: _check_version(session, name, each)
    for field, check in checks.items():
        for place, text in _texts(values, field):
            try:
                check(text)
            except UserError as error:
                yield place, error


def _check_version(session: Session, op: str, text: str) -> None:
    """Check a version, `v1` or the attempt `v1:2`; one whose file was added by hand is let through.

    Raises:
        UnknownVersion: there is neither.
    """
    version = text.partition(":")[0]
    folder = session.path / "kernels" / op
    is_file = version.isidentifier() and any(folder.glob(f"{version}*"))
    if version != _ALL and not is_file:
        session.workspace.source(op, version)


def _texts(values: Mapping[str, Any], field: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a field and of the list that its plural is, each with its place."""
    if isinstance(text := values.get(field), str):
        yield field, text
    if isinstance(texts := values.get(f"{field}s"), list | tuple):
        for i, each in enumerate(texts):
            if isinstance(each, str):
                yield f"{field}s[{i}]", each


__all__ = ["find_unknown_names"]
