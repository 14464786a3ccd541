"""Gathers an op's history from the workspace, and writes its log into it."""

from __future__ import annotations

from triton_magics import knowledge, report
from triton_magics.errors import ExportError, UnknownVersion, WorkspaceError
from triton_magics.lab.defaults import ranked
from triton_magics.model import (
    Benchmark,
    Best,
    Compilation,
    Environment,
    Event,
    Export,
    OpFacts,
    OpState,
    Validation,
    Verb,
)
from triton_magics.workspace import Workspace

# A session has thousands of other events (what was shown, run, exported), which no log tells.
_TOLD: tuple[Verb, ...] = (
    "written", "compiled", "validated", "benchmarked", "chosen", "forced", "reset",
)  # fmt: skip


def gather(
    workspace: Workspace, facts: OpFacts, state: OpState, *, budget_s: float
) -> report.LogInput:
    """Everything that the log of an op is made from."""
    op = facts.name
    events = tuple(workspace.events(op, verbs=_TOLD))
    versions = tuple(_version(workspace, op, v.version, events) for v in state.versions)
    return report.LogInput(
        facts=facts,
        state=state,
        techniques=knowledge.techniques_for(facts),
        versions=versions,
        best=_best(workspace, op, state),
        environment=_environment(events),
        notes=tuple(_note(e) for e in events if e.verb in ("forced", "reset")),
        export_command=f"%triton_log {op}",
        reference=workspace.reference_path(op).read_text() if facts.own else None,
        budget_s=budget_s,
    )


def _version(
    workspace: Workspace, op: str, version: str, events: tuple[Event, ...]
) -> report.VersionLog:
    own = [e for e in events if e.version == version]
    validations = [e.result for e in own if isinstance(e.result, Validation)]
    compilations = [e.result for e in own if isinstance(e.result, Compilation)]
    benchmarks = [
        e.result
        for e in events
        if isinstance(e.result, Benchmark) and version in e.result.versions and e.result.timings
    ]
    techniques = [e.args["technique"] for e in own if e.args.get("technique")]
    return report.VersionLog(
        version=version,
        attempts=workspace.attempts(op, version),
        validations=tuple(validations),
        compilations=tuple(compilations),
        benchmark=benchmarks[-1] if benchmarks else None,
        technique=str(techniques[-1]) if techniques else None,
    )


def _best(workspace: Workspace, op: str, state: OpState) -> Best | None:
    try:
        chosen = ranked(op, state.versions, workspace.ranking(op))
    except UnknownVersion:
        return None
    return Best(source=workspace.source(op, chosen.version), **chosen.figures)


def _environment(events: tuple[Event, ...]) -> Environment | None:
    found = (getattr(e.result, "environment", None) for e in reversed(events))
    return next((e for e in found if e is not None), None)


def _note(event: Event) -> str:
    reason = event.args.get("reason")
    return f"{event.verb}: {reason}" if reason else event.verb


def write_tests(workspace: Workspace, facts: OpFacts) -> str:
    """Writes tests/test_<op>.py; returns its path.

    Raises:
        ExportError: it could not be written, or is a person's own.
        UnknownVersion: no version has passed.
    """
    op = facts.name
    pairs = [
        (workspace.source(op, v.version), workspace.latest_validation(op, v.version))
        for v in workspace.versions(op)
    ]
    kept = [(source, verdict) for source, verdict in pairs if verdict and verdict.passed]
    if not kept:
        raise UnknownVersion(f"no version of {op} has passed its validation: nothing to test")
    text = report.pytest_file(op, kept, own=facts.own)
    try:
        return workspace.save_page(f"tests/test_{op}.py", text, mark=report.PYTEST_MARK)
    except WorkspaceError as error:
        raise ExportError(f"the tests of {op} could not be written: {error}") from error


def write_summary(workspace: Workspace, text: str) -> str:
    """Writes docs/summarization.md; returns its path.

    Raises:
        ExportError: it could not be written, or is a person's own.
    """
    try:
        return workspace.save_page("docs/summarization.md", text, mark=report.SUMMARY_MARK)
    except WorkspaceError as error:
        raise ExportError(f"the summary could not be written: {error}") from error


def write(workspace: Workspace, op: str, gathered: report.LogInput) -> Export:
    """Writes logs/<op>_log.{md,ipynb,html}; returns where they are.

    Raises:
        ExportError: a file could not be written.
    """
    made = {
        "markdown": (".md", report.markdown_log(gathered)),
        "notebook": (".ipynb", report.write_notebook(report.log_notebook(gathered))),
        "html": (".html", report.html_log(gathered)),
    }
    try:
        paths = {kind: workspace.save_log(op, end, text) for kind, (end, text) in made.items()}
    except WorkspaceError as error:
        raise ExportError(f"the log of {op} could not be written: {error}") from error
    return Export(op=op, workspace=str(workspace.path), jsonl=f"logs/{op}_log.jsonl", **paths)
