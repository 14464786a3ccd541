"""Save a version's source and compile it."""

from __future__ import annotations

from typing import Annotated

from triton_magics import knowledge, languages
from triton_magics.model import Written, version_name
from triton_magics.session import Session
from triton_magics.verbs._base import Arg, Request, Verb, option
from triton_magics.verbs._fields import Cell, Language, NewVersion, Op


class KernelRequest(Request):
    """The source of a version, and options."""

    op: Op
    version: NewVersion
    source: Cell
    type: Language = languages.DEFAULT
    entry: Annotated[
        str | None, option("the wrapper's name (default: triton_OP)", metavar="NAME")
    ] = None
    technique: Annotated[
        str | None,
        option("what this version tries, for the log", metavar="TEXT", names="technique"),
    ] = None
    cell_offset: Annotated[
        int, Arg("lines of the cell before the source (1 for a magic's own line)", kind="python")
    ] = 0
    compile: Annotated[
        bool, option("save it, compile it later", "--no-compile", doc="compile it right away")
    ] = True
    replay: Annotated[
        bool,
        option(
            "a log's cell: validated and timed by later cells; the workflow's order is not checked",
            doc="written by a log, which validates and times later; the workflow's order is not "
            "checked, and the event says so",
        ),
    ] = False


def run(session: Session, request: KernelRequest) -> Written:
    """Save a version's source as an attempt and compile it, GPU or not.

    Raises:
        UnknownName: no such kernel language.
        BadKernelSource, AmbiguousEntry: no module with an entry point; nothing was saved.
        UserError: the number has another slug already.
    """
    name = session.canonical(request.op)
    if not request.replay:
        session.gate("kernel", name)
    return save(session, request, name)


def save(session: Session, request: KernelRequest, name: str) -> Written:
    """Save and compile a version of the op `name`, whatever its state in the workflow.

    Raises:
        UnknownName, BadKernelSource, AmbiguousEntry, UserError: as `run`.
    """
    aliases = session.aliases(name)
    language = languages.get(request.type)
    raw = None
    if session.has_contract(name):
        raw = language.find_raw_kernel(request.source, entry=request.entry)
    if raw is None:
        raw = language.parse(request.source, op=name, aliases=aliases, entry=request.entry)
    entry, signature = raw
    saved, unchanged = session.workspace.write(
        name,
        request.version,
        request.source,
        entry=entry,
        signature=signature,
        cell_offset=request.cell_offset,
        language=language.name,
        technique=request.technique,
        replayed=request.replay,
    )
    session.notify_change(name)
    compilation = session.jobs.compile_if_possible(saved) if request.compile else None
    number = saved.number + 1
    technique_hint, block_hint = (
        knowledge.version_hint(name, number) if language.has_hints else (None, None)
    )
    written = Written(
        source=saved,
        unchanged=unchanged,
        compilation=compilation,
        next_version=version_name(number) if number <= 4 else None,
        next_technique=technique_hint,
        block_hint=block_hint,
    )
    return session.finish(written)


VERB = Verb(
    name="kernel",
    request=KernelRequest,
    run=run,
    help="Saves the cell as a version of an op, a module in kernels/OP/, and compiles it.",
    example="""%%triton_kernel softmax v1 --technique "one row per program"
import torch
import triton
import triton.language as tl
...""",
    rank=20,
    takes_cell=True,
    judges=True,
)
