"""Bring a problem of another collection as an op, or a kernel from a file as a version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from triton_magics import knowledge, languages
from triton_magics.errors import BadValue
from triton_magics.model import OpPage, Written, short, version_name
from triton_magics.problems import FORMATS, read_problem, read_text
from triton_magics.session import Session
from triton_magics.verbs import kernel, reference
from triton_magics.verbs._base import Request, Verb, option, place, rule

PATIENCE_S = 120.0  # of a few calls of a large model on a CPU
_FORMATS = "; ".join(f"{name}: {text}" for name, text in FORMATS.items())


class ImportRequest(Request):
    """A problem's file or folder, or a file with a function."""

    path: Annotated[str, place(f"a problem ({_FORMATS}), or path.py:function", metavar="PATH")]
    op: Annotated[
        str | None,
        option("name of the op (default: that of the problem)", metavar="NAME", names="op"),
    ] = None
    version: Annotated[
        str | None,
        option(
            "of path.py:function: its name (default: the next one)",
            metavar="VERSION",
            names="version new",
        ),
    ] = None
    type: Annotated[
        str,
        rule(languages.get),
        option(
            "of path.py:function: its kernel language",
            "--type",
            "--language",
            names="language",
            metavar="NAME",
            choices=languages.names,
        ),
    ] = languages.DEFAULT


def run(session: Session, request: ImportRequest) -> OpPage | Written:
    """Define an op from a problem of another collection, or save a function as a version.

    The problem's text is read here, and runs in a worker only.

    Raises:
        BadValue: the path is no problem, or an option is missing or does not belong to it.
        BadKernelSource, UnknownOp: as for `kernel`.
        UserError: the problem can't be an op; the message says why.
    """
    path, _, function = request.path.rpartition(":")
    if path and function.isidentifier():
        return _import_function(session, request, Path(path), function)
    if request.version is not None:
        raise BadValue("--version names the version of path.py:function; a problem is an op")
    draft = read_problem(Path(request.path).expanduser(), request.op)
    if request.op is None and draft.name in (*knowledge.op_names(), *knowledge.aliases()):
        draft = draft.with_name(f"{draft.collection.lower().replace(' ', '_')}_{draft.name}")
    text = session.jobs.probe(draft)
    return reference.define(session, draft.name, text, patience_s=PATIENCE_S)


def _import_function(
    session: Session, request: ImportRequest, path: Path, function: str
) -> Written:
    if request.op is None:
        raise BadValue(f"add --op NAME: the op of which {function} is a version")
    name = session.canonical(request.op)
    source = read_text(path.expanduser())
    numbers = (int(short(v.version)[1:]) for v in session.workspace.versions(name))
    number = 1 + max(numbers, default=0)
    if session.is_strict:  # else without a note: whoever has a kernel knows the op
        session.gate("kernel", name)
    return kernel.save(
        session,
        kernel.KernelRequest(
            op=name,
            version=request.version or short(version_name(number)),
            source=source,
            type=request.type,
            entry=function,
            technique=f"imported from {path.name}",
        ),
        name,
    )


VERB = Verb(
    name="import",
    request=ImportRequest,
    run=run,
    help="Makes an op of a problem of another collection, or a version of a function in a file.",
    example="""%triton_import KernelBench/level1/26_GELU_.py --op kb_gelu
%triton_import my_kernels.py:fused_softmax --op softmax""",
    rank=145,
    runs_jobs=True,
    reads_files=True,
    judges=True,
)
