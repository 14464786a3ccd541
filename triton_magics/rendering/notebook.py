"""The development log as a notebook that a reviewer reads and a colleague runs.

The same input gives the same bytes. A cell id names op, version and role, so another version only
inserts cells; the cells that do change are tagged `summary`. `replay` writes the lines that run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from triton_magics.errors import ExportError
from triton_magics.model import (
    Benchmark,
    KernelSource,
    Profile,
    Status,
    Sweep,
    Validation,
    Written,
    short,
)
from triton_magics.rendering import log_phases as phases
from triton_magics.rendering.blocks import Document
from triton_magics.rendering.checklist import checklist_part
from triton_magics.rendering.log_correctness import correctness
from triton_magics.rendering.log_document import LogInput, VersionLog
from triton_magics.rendering.log_input import Picture
from triton_magics.rendering.phrase import Phrase
from triton_magics.rendering.render import to_markdown
from triton_magics.rendering.replay import (
    Parameters,
    bench_line,
    kernel_cell,
    profile_line,
    setup_cell,
    sweep_line,
    validate_line,
)
from triton_magics.rendering.views import bundle

SCHEMA = 1
_LONGEST_ID = 64
Node: TypeAlias = dict[str, Any]  # a part of a notebook, as it is in the file


def log_notebook(log: LogInput) -> Node:
    """Return the log as a notebook (nbformat 4.5) with outputs.

    nbformat is not used: it takes seconds to import, and its schema is checked by the tests.

    Raises:
        ExportError: two cells would have the same id.
    """
    cells = list(_cells(log.clean))
    _check_ids([cell["id"] for cell in cells])
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "triton_magics": {
            "schema": SCHEMA,
            "op": log.op,
            "versions": [v.version for v in log.versions],
        },
    }
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}


def write_notebook(notebook: Node) -> str:
    """Return the text of the notebook's file, as Jupyter writes it, with a newline at its end."""
    cells = [_split_lines(cell) for cell in notebook["cells"]]
    form = {"ensure_ascii": False, "indent": 1, "sort_keys": True, "separators": (",", ": ")}
    return f"{json.dumps({**notebook, 'cells': cells}, **form)}\n"  # type: ignore[arg-type]


def _split_lines(cell: Node) -> Node:
    """Return a cell whose texts are lists of lines; pictures stay one text."""
    split = {**cell, "source": cell["source"].splitlines(keepends=True)}
    if "outputs" in cell:
        split["outputs"] = [
            {**output, "data": {kind: _lines(kind, text) for kind, text in output["data"].items()}}
            for output in cell["outputs"]
        ]
    return split


def _lines(kind: str, text: str) -> list[str] | str:
    return text.splitlines(keepends=True) if kind.startswith("text/") else text


def _check_ids(ids: list[str]) -> None:
    duplicates = sorted({i for i in ids if ids.count(i) > 1})
    if duplicates:  # nbformat would replace one by a random id, and logs would differ
        raise ExportError(f"the log has cells with the same id: {', '.join(duplicates)}")


# ------------------------------------------------------------------------------------- cells


def _cells(log: LogInput) -> Iterator[Node]:
    op, parameters = log.op, Parameters.of(log)
    yield _markdown(op, "summary", phases.summary(log), "summary")
    yield _code(op, "parameters", parameters.cell, [], "parameters", "summary")
    yield _code(op, "setup", setup_cell(op, own=log.reference is not None))
    if log.reference:
        name = log.facts.gradient_of or op
        yield _code(op, "reference", f"%%triton_reference {name}\n{log.reference}")
    yield _markdown(op, "research", phases.research(log))
    yield _markdown(op, "kernels", (phases.KERNELS,))
    for version in log.versions:
        yield from _version_cells(log, version, parameters)
    yield _markdown(op, "correctness", correctness(log), "summary")
    yield _markdown(op, "speed", (phases.SPEED, *phases.stale_lines(log)), "summary")
    yield from _benchmark_cells(log, parameters)
    yield _markdown(op, "choice", phases.selection(log), "summary")
    yield _markdown(op, "environment", phases.environment(log), "summary")
    yield _markdown(op, "checklist", checklist_part(log), "summary")


def _version_cells(log: LogInput, version: VersionLog, parameters: Parameters) -> Iterator[Node]:
    op, name = log.op, short(version.version)
    yield _markdown(op, f"{name}-about", phases.version_intro(log, version))
    for source in version.replaced_attempts:
        role = f"{name}-attempt-{source.attempt}"
        yield _markdown(op, f"{role}-why", phases.attempt_intro(version, source))
        yield from _attempt_cells(log, version, source, parameters, role)
    yield from _attempt_cells(log, version, version.source, parameters, name)
    if version.sweep:
        outputs = [_output(version.sweep, log.phrase), *_plots(log, version.sweep)]
        yield _code(
            op, f"{name}-sweep", sweep_line(version.sweep, log.phrase), outputs, "measurement"
        )
    if version.profile:
        outputs = [_output(version.profile, log.phrase), *_plots(log, version.profile)]
        line = profile_line(version.profile, log.phrase)
        yield _code(op, f"{name}-profile", line, outputs, "measurement")


def _attempt_cells(
    log: LogInput, version: VersionLog, source: KernelSource, parameters: Parameters, role: str
) -> Iterator[Node]:
    """Yield an attempt's code cell, and its validation if it has one or is the current attempt."""
    is_current = source is version.source
    fails = not is_current or _did_not_compile(version, source)
    cell = kernel_cell(source, log.phrase, technique=version.technique, fails=fails)
    yield _code(source.op, f"{role}-code", cell, _written_outputs(log, version, source))
    verdict = version.validation(source)
    if verdict or is_current:
        line = validate_line(verdict, version, parameters, log.phrase)
        outputs = [_output(verdict, log.phrase)] if verdict else []
        yield _code(source.op, f"{role}-validate", line, outputs)


def _benchmark_cells(log: LogInput, parameters: Parameters) -> Iterator[Node]:
    for i, value in enumerate(log.benchmarks):
        line = bench_line(value, log, parameters)
        outputs = [_output(value, log.phrase), *_plots(log, value)]
        role = f"bench-{i + 1}" if i else "bench"
        yield _code(log.op, role, line, outputs, "measurement", "summary")


def _did_not_compile(version: VersionLog, source: KernelSource) -> bool:
    compiled = version.compilation(source)
    return compiled is not None and compiled.status is not Status.PASSED


def _written_outputs(log: LogInput, version: VersionLog, source: KernelSource) -> list[Node]:
    written = Written(source=source, compilation=version.compilation(source))
    return [_output(written, log.phrase)]


# ----------------------------------------------------------------------------- cells, outputs


def _markdown(op: str, role: str, document: Document, *tags: str) -> Node:
    return _node(
        cell_type="markdown", id=cell_id(op, role), source=to_markdown(document), tags=tags
    )


def _code(
    op: str,
    role: str,
    source: str,
    outputs: list[Node] | None = None,
    *tags: str,
) -> Node:
    return _node(
        cell_type="code",
        id=cell_id(op, role),
        source=source,
        outputs=outputs or [],
        execution_count=None,
        tags=tags,
    )


def _node(*, tags: tuple[str, ...], **content: Any) -> Node:
    return {"metadata": {"tags": list(tags)} if tags else {}, **content}


def cell_id(op: str, role: str) -> str:
    """Return `softmax-v2-code`; a name that is too long is cut and gets a hash."""
    whole = f"{op}-{role}"
    if len(whole) <= _LONGEST_ID:
        return whole
    digest = hashlib.sha256(op.encode()).hexdigest()[:8]
    return f"{op[: _LONGEST_ID - len(role) - 10]}-{digest}-{role}"


def _output(value: Validation | Benchmark | Sweep | Profile | Written, phrase: Phrase) -> Node:
    """Return the output of a value; an untrusted notebook shows text and Markdown too."""
    formats = bundle(value, phrase)
    return _display({kind: formats[kind] for kind in ("text/plain", "text/markdown")})


def _plots(log: LogInput, value: Benchmark | Sweep | Profile) -> list[Node]:
    return [_plot(picture) for picture in log.pictures if picture.result is value]


def _plot(picture: Picture) -> Node:
    outputs = {"image/png": base64.b64encode(picture.png).decode(), "text/plain": picture.alt}
    return _display(outputs)


def _display(data: dict[str, str]) -> Node:
    return {"output_type": "display_data", "data": data, "metadata": {}}


__all__ = ["cell_id", "log_notebook", "write_notebook"]
