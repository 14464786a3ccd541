"""The development log as a notebook that a reviewer reads and a colleague runs.

The same input gives the same bytes. Cell ids say op, version and role, so that another version only
inserts cells; what has to change then is tagged `summary`. The lines that run it are in `replay`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from triton_magics.errors import ExportError
from triton_magics.model import Benchmark, KernelSource, Status, Sweep, Validation, Written, short
from triton_magics.report import log_phases as phases
from triton_magics.report.blocks import Document
from triton_magics.report.checklist import checklist_part
from triton_magics.report.log import LogInput, VersionLog
from triton_magics.report.log_correctness import correctness
from triton_magics.report.log_input import Picture
from triton_magics.report.render import to_markdown
from triton_magics.report.replay import (
    Parameters,
    bench_line,
    kernel_cell,
    setup_cell,
    sweep_line,
    validate_line,
)
from triton_magics.report.views import bundle

if TYPE_CHECKING:
    from nbformat import NotebookNode

SCHEMA = 1
_LONGEST_ID = 64


def log_notebook(given: LogInput) -> NotebookNode:
    """The log as a notebook (nbformat 4.5) with its outputs in place.

    Raises:
        ExportError: two cells would have the same id, or the notebook is not valid.
    """
    from nbformat import from_dict

    cells = list(_cells(given.clean))
    _check_ids([cell.id for cell in cells])
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "triton_magics": {
            "schema": SCHEMA,
            "op": given.op,
            "versions": [v.version for v in given.versions],
        },
    }
    notebook = from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells})
    _check(notebook)
    return notebook


def write_notebook(notebook: NotebookNode) -> str:
    """The notebook as the text of its file, with a newline at its end."""
    from nbformat import v4

    return f"{v4.writes(notebook)}\n"  # valid: `nbformat.writes` would look once more


def _check_ids(ids: list[str]) -> None:
    twice = sorted({i for i in ids if ids.count(i) > 1})
    if twice:  # nbformat would put a random id in its place, and no two logs would be the same
        raise ExportError(f"cells with the same id: {', '.join(twice)}")


def _check(notebook: NotebookNode) -> None:
    import nbformat

    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        raise ExportError(f"the log's notebook is not valid: {error}") from error


# ------------------------------------------------------------------------------------- cells


def _cells(given: LogInput) -> Iterator[NotebookNode]:
    op, asked = given.op, Parameters.of(given)
    yield _markdown(op, "summary", phases.summary(given), "summary")
    yield _code(op, "parameters", asked.cell, [], "parameters", "summary")
    yield _code(op, "setup", setup_cell(op, own=given.reference is not None))
    if given.reference:
        yield _code(op, "reference", f"%%triton_reference {op}\n{given.reference}")
    yield _markdown(op, "research", phases.research(given))
    yield _markdown(op, "kernels", (phases.KERNELS,))
    for version in given.versions:
        yield from _version_cells(given, version, asked)
    yield _markdown(op, "correctness", correctness(given), "summary")
    yield _markdown(op, "speed", (phases.SPEED, *phases.stale_lines(given)), "summary")
    yield from _benchmark_cells(given, asked)
    yield _markdown(op, "choice", phases.selection(given), "summary")
    yield _markdown(op, "environment", phases.environment(given), "summary")
    yield _markdown(op, "checklist", checklist_part(given), "summary")


def _version_cells(
    given: LogInput, version: VersionLog, asked: Parameters
) -> Iterator[NotebookNode]:
    op, name = given.op, short(version.version)
    yield _markdown(op, f"{name}-about", phases.version_intro(given, version))
    for source in version.earlier:
        role = f"{name}-attempt-{source.attempt}"
        yield _markdown(op, f"{role}-why", phases.attempt_intro(version, source))
        yield from _attempt_cells(version, source, asked, role)
    yield from _attempt_cells(version, version.source, asked, name)
    if version.sweep:
        shown = [_shown(version.sweep), *_plots(given, version.sweep)]
        yield _code(op, f"{name}-sweep", sweep_line(version.sweep), shown, "measurement")


def _attempt_cells(
    version: VersionLog, source: KernelSource, asked: Parameters, role: str
) -> Iterator[NotebookNode]:
    """An attempt's code, and its verdict if it had one or is the one that stands."""
    stands = source is version.source
    fails = not stands or _refused(version, source)
    cell = kernel_cell(source, technique=version.technique, fails=fails)
    yield _code(source.op, f"{role}-code", cell, _written(version, source))
    verdict = version.validation(source)
    if verdict or stands:
        line = validate_line(verdict, version, asked)
        yield _code(source.op, f"{role}-validate", line, [_shown(verdict)] if verdict else [])


def _benchmark_cells(given: LogInput, asked: Parameters) -> Iterator[NotebookNode]:
    for i, value in enumerate(given.benchmarks):
        line = bench_line(value, given, asked)
        outputs = [_shown(value), *_plots(given, value)]
        role = f"bench-{i + 1}" if i else "bench"
        yield _code(given.op, role, line, outputs, "measurement", "summary")


def _refused(version: VersionLog, source: KernelSource) -> bool:
    compiled = version.compilation(source)
    return compiled is not None and compiled.status is not Status.PASSED


def _written(version: VersionLog, source: KernelSource) -> list[NotebookNode]:
    return [_shown(Written(source=source, compilation=version.compilation(source)))]


# ----------------------------------------------------------------------------- cells, outputs


def _markdown(op: str, role: str, document: Document, *tags: str) -> NotebookNode:
    return _node(
        cell_type="markdown", id=cell_id(op, role), source=to_markdown(document), tags=tags
    )


def _code(
    op: str,
    role: str,
    source: str,
    outputs: list[NotebookNode] | None = None,
    *tags: str,
) -> NotebookNode:
    return _node(
        cell_type="code",
        id=cell_id(op, role),
        source=source,
        outputs=outputs or [],
        execution_count=None,
        tags=tags,
    )


def _node(*, tags: tuple[str, ...], **content: Any) -> NotebookNode:
    """A cell. `v4.new_code_cell` would validate each one, and the notebook is validated whole."""
    from nbformat import NotebookNode

    metadata = NotebookNode({"tags": list(tags)} if tags else {})
    return NotebookNode(metadata=metadata, **content)


def cell_id(op: str, role: str) -> str:
    """`softmax-v2-code`; a name that is too long for an id keeps its start and a hash."""
    whole = f"{op}-{role}"
    if len(whole) <= _LONGEST_ID:
        return whole
    digest = hashlib.sha256(op.encode()).hexdigest()[:8]
    return f"{op[: _LONGEST_ID - len(role) - 10]}-{digest}-{role}"


def _shown(value: Validation | Benchmark | Sweep | Written) -> NotebookNode:
    """The value as it was shown; text and Markdown are shown even in an untrusted notebook."""
    faces = bundle(value)
    return _display({kind: faces[kind] for kind in ("text/plain", "text/markdown")})


def _plots(given: LogInput, value: Benchmark | Sweep) -> list[NotebookNode]:
    return [_plot(picture) for picture in given.pictures if picture.of is value]


def _plot(picture: Picture) -> NotebookNode:

    shown = {"image/png": base64.b64encode(picture.png).decode(), "text/plain": picture.alt}
    return _display(shown)


def _display(data: dict[str, str]) -> NotebookNode:
    from nbformat import NotebookNode

    shown = NotebookNode(data)
    return NotebookNode(output_type="display_data", data=shown, metadata=NotebookNode())


__all__ = ["cell_id", "log_notebook", "write_notebook"]
