"""Collect an op's history from the workspace, and write its log."""

from __future__ import annotations

from pathlib import Path

from triton_magics import knowledge, rendering
from triton_magics.errors import (
    BadValue,
    ExportError,
    TritonMagicsError,
    UnknownVersion,
    WorkspaceError,
)
from triton_magics.model import (
    Best,
    Environment,
    Event,
    Export,
    OpFacts,
    OpState,
    Sweep,
    Verb,
    VersionState,
)
from triton_magics.session import Session
from triton_magics.session.defaults import choose_version
from triton_magics.store import Workspace
from triton_magics.verbs._phrase import as_magic

SWEPT: tuple[Verb, ...] = ("swept",)
_NOTED: tuple[Verb, ...] = ("forced", "reset")
_TEXTS: tuple[Verb, ...] = ("noted",)
_RUN: tuple[Verb, ...] = ("validated", "benchmarked")


def gather(
    workspace: Workspace, facts: OpFacts, state: OpState, *, budget_s: float
) -> rendering.LogInput:
    """Return the content of an op's log: the newest state, however long the history is."""
    op, own = facts.name, facts.own_reference
    versions = tuple(_version(workspace, op, v) for v in state.versions)
    return rendering.LogInput(
        facts=facts,
        state=state,
        techniques=knowledge.techniques_for(facts, knowledge.load_own(workspace.path)),
        versions=versions,
        best=_best(workspace, op, state),
        environment=_environment(workspace, op),
        notes=tuple(_note(e) for e in workspace.events(op, verbs=_NOTED)),
        phrase=as_magic,
        reference=workspace.reference_path(own).read_text() if own else None,
        analysis=_texts(workspace, op, None),
        budget_s=budget_s,
    )


def write_log(session: Session, op: str) -> Export:
    """Write the log of an op; return the paths of its files.

    Raises:
        ExportError: a file could not be written.
    """
    workspace, budget_s = session.workspace, session.settings.validate_budget_s
    history = gather(workspace, session.facts_of(op), session.state(op), budget_s=budget_s)
    return write(workspace, op, history)


def write_log_if_set(session: Session, op: str) -> None:
    """Write the log after a verdict if the setting `auto_log` says so; note why it failed."""
    if not session.settings.auto_log:
        return
    try:
        write_log(session, op)
    except TritonMagicsError as error:
        session.notes.add(f"the log of {op} was not written: {error}")


def _version(workspace: Workspace, op: str, version: VersionState) -> rendering.VersionLog:
    attempts = workspace.history(op, version.version)
    benchmark = workspace.latest_timing(op, version.version)
    return rendering.VersionLog(
        version=version.version,
        attempts=tuple(a.source for a in attempts),
        validations=tuple(a.validation for a in attempts if a.validation),
        compilations=tuple(a.compilation for a in attempts if a.compilation),
        benchmark=benchmark,
        technique=version.technique,
        sweep=_sweep(workspace, op, version.sha256),
        profile=workspace.latest_profile(op, version.sha256),
        notes=_texts(workspace, op, version.version),
    )


def _texts(workspace: Workspace, op: str, version: str | None) -> tuple[str, ...]:
    """Return the texts that `note` recorded on a version; on the op itself without one."""
    events = workspace.events(op, verbs=_TEXTS)
    return tuple(str(e.args["text"]) for e in events if e.version == version)


def _sweep(workspace: Workspace, op: str, sha256: str) -> Sweep | None:
    """Return the newest sweep over settings of exactly this source."""
    events = workspace.events(op, verbs=SWEPT, newest_first=True)
    results = (e.result for e in events)
    return next((r for r in results if isinstance(r, Sweep) and r.sha256 == sha256), None)


def _best(workspace: Workspace, op: str, state: OpState) -> Best | None:
    try:
        chosen = choose_version(op, state.versions, workspace.ranking(op))
    except UnknownVersion:
        return None
    return Best(source=workspace.source(op, chosen.version), **chosen.figures)


def _environment(workspace: Workspace, op: str) -> Environment | None:
    events = workspace.events(op, verbs=_RUN, newest_first=True)
    environments = (getattr(e.result, "environment", None) for e in events)
    return next((e for e in environments if e is not None), None)


def _note(event: Event) -> str:
    reason = event.args.get("reason")
    return f"{event.verb}: {reason}" if reason else event.verb


def write_tests(workspace: Workspace, facts: OpFacts) -> str:
    """Write tests/test_<op>.py; return its path.

    Raises:
        ExportError: it could not be written, or is the user's own file.
        UnknownVersion: no version has passed.
    """
    op = facts.name
    pairs = [
        (workspace.source(op, v.version), workspace.latest_validation(op, v.version))
        for v in workspace.versions(op)
    ]
    passed = [(source, verdict) for source, verdict in pairs if verdict and verdict.passed]
    if not passed:
        raise UnknownVersion(f"no version of {op} has passed its validation: nothing to test")
    text = rendering.pytest_file(op, passed, own=facts.own_reference)
    try:
        return workspace.save_page(f"tests/test_{op}.py", text, mark=rendering.PYTEST_MARK)
    except WorkspaceError as error:
        raise ExportError(f"the tests of {op} could not be written: {error}") from error


def write_summary(workspace: Workspace, text: str) -> str:
    """Write docs/summarization.md; return its path.

    Raises:
        ExportError: it could not be written, or is the user's own file.
    """
    try:
        return workspace.save_page("docs/summarization.md", text, mark=rendering.SUMMARY_MARK)
    except WorkspaceError as error:
        raise ExportError(f"the summary could not be written: {error}") from error


def write(workspace: Workspace, op: str, history: rendering.LogInput) -> Export:
    """Write logs/<op>_log.{md,ipynb,html}; return their paths.

    Raises:
        ExportError: a file could not be written.
    """
    texts = {
        "markdown": (".md", rendering.markdown_log(history)),
        "notebook": (".ipynb", rendering.write_notebook(rendering.log_notebook(history))),
        "html": (".html", rendering.html_log(history)),
    }
    try:
        paths = {kind: workspace.save_log(op, end, text) for kind, (end, text) in texts.items()}
    except WorkspaceError as error:
        raise ExportError(f"the log of {op} could not be written: {error}") from error
    return Export(op=op, workspace=str(workspace.path), jsonl=f"logs/{op}_log.jsonl", **paths)


def write_new(path: Path, text: str) -> str:
    """Write a text into a new file; return its path.

    Raises:
        BadValue: the file exists, or can't be written.
    """
    try:
        with path.expanduser().open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise BadValue(f"{path} exists: name another file") from error
    except OSError as error:
        raise BadValue(f"{path} can't be written: {error.strerror}") from error
    return str(path)


def write_picture(path: Path, png: bytes) -> str:
    """Write a PNG file; return its path.

    Raises:
        BadValue: it can't be written.
    """
    try:
        path.expanduser().write_bytes(png)
    except OSError as error:
        raise BadValue(f"{path} can't be written: {error.strerror}") from error
    return str(path)
