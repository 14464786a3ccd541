"""Write an op as a definition of FlashInfer Trace, which other tools read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from triton_magics.errors import BadValue, UserError
from triton_magics.model import Reference
from triton_magics.problems import read_back, write_definition
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Op


class DefinitionRequest(Request):
    """An op of one's own, and a folder."""

    op: Op
    folder: Annotated[
        str | None,
        option(
            "for definition.json and workload.jsonl (default: show the definition only)",
            metavar="PATH",
        ),
    ] = None


def run(session: Session, request: DefinitionRequest) -> Reference:
    """Return an op of one's own as a definition; one that was imported comes back as it was.

    Raises:
        UnknownOp: no such op.
        UserError: a shipped op, or one that needs real data to have shapes.
        BadValue: the folder can't be written.
    """
    name = session.canonical(request.op)
    if name not in session.workspace.own_ops():
        raise UserError(f"{name} ships with triton_magics; only an op of your own is exported")
    text = session.workspace.reference_path(name).read_text(encoding="utf-8")
    definition, workloads = read_back(text) or write_definition(
        name, text, session.jobs.forms(name)
    )
    body = json.dumps(definition, indent=2)
    if request.folder is not None:
        _write(Path(request.folder).expanduser(), body, workloads)
    place = f", written to {request.folder}" if request.folder else ""
    n = len(workloads)
    title = f"Definition of {name}, {n} workload{'s' * (n != 1)}{place}"
    return Reference(query=title, title=title, markdown=f"```json\n{body}\n```\n")


def _write(folder: Path, body: str, workloads: list[dict[str, object]]) -> None:
    lines = "".join(f"{json.dumps(workload)}\n" for workload in workloads)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "definition.json").write_text(f"{body}\n", encoding="utf-8")
        (folder / "workload.jsonl").write_text(lines, encoding="utf-8")
    except OSError as error:
        raise BadValue(f"{folder} can't be written: {error}") from None


VERB = Verb(
    name="definition",
    request=DefinitionRequest,
    run=run,
    help="Writes an op of your own as a definition of FlashInfer Trace, for other tools.",
    example="%triton_definition my_op --folder my_op_definition",
    rank=147,
    runs_jobs=True,
    reads_files=True,
)
