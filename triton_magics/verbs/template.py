"""Start a version from a template."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from triton_magics import knowledge, languages
from triton_magics.model import Template, parse_version, version_name
from triton_magics.session import Session
from triton_magics.verbs import _log_files
from triton_magics.verbs._base import Request, Verb, option, place
from triton_magics.verbs._fields import Language, Op


class TemplateRequest(Request):
    """A pattern, and the version that begins with it."""

    pattern: Annotated[
        str,
        place(
            "elementwise, reduction, matmul, fused, or one of your own (knowledge/templates)",
            names="pattern",
        ),
    ]
    op: Op
    version: Annotated[str, place("v1, or a name of your own: v1_naive", names="new")]
    type: Language = languages.DEFAULT
    to: Annotated[
        str | Path | None, option("write it there too; nothing is overwritten", metavar="FILE")
    ] = None


def run(session: Session, request: TemplateRequest) -> Template:
    """Return a starting point for a version, to be edited in a cell or a file.

    Raises:
        UnknownName: no such pattern or kernel language, or the language has no templates.
        UnknownOp, BadName: no such op, no such name.
        BadValue: the file exists, or can't be written.
    """
    name = session.canonical(request.op)
    number, slug = parse_version(request.version)
    language = languages.get(request.type).name
    source = knowledge.template(request.pattern, name, language, session.own_knowledge())
    version = version_name(number, slug)
    template = Template(
        pattern=request.pattern, op=name, version=version, source=source, language=request.type
    )
    if request.to is not None:
        template = template.evolve(path=_log_files.write_new(Path(request.to), source))
    return session.finish(template)


VERB = Verb(
    name="template",
    request=TemplateRequest,
    run=run,
    help="Gives a starting point for a version, to be edited; in a notebook, the next cell.",
    example="%triton_template fused softmax v1",
    rank=100,
)
