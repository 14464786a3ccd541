"""Logs compared with nbdime, as a reviewer compares them."""

from __future__ import annotations

import io
from typing import Any

from nbdime import diff_notebooks
from nbdime.prettyprint import PrettyPrintConfig, pretty_print_notebook_diff
from nbformat import NotebookNode, from_dict

from tests import report_values as rv
from triton_magics import rendering
from triton_magics.rendering import LogInput


def log_notebook(log: LogInput) -> NotebookNode:
    return from_dict(rendering.log_notebook(log))


def nbdime_lines(before: NotebookNode, after: NotebookNode, **shown: bool) -> list[str]:
    """Return the lines that `nbdiff` prints for two notebooks."""
    stream = io.StringIO()
    include: Any = type("Include", (), {"outputs": True, "details": True, **shown})
    config = PrettyPrintConfig(out=stream, use_color=False, include=include)
    pretty_print_notebook_diff("a", "b", before, diff_notebooks(before, after), config)
    return stream.getvalue().splitlines()


def changes(before: NotebookNode, after: NotebookNode) -> list[dict[str, Any]]:
    """Return the changes of the cells that nbdime finds."""
    (diff,) = [part["diff"] for part in diff_notebooks(before, after) if part["key"] == "cells"]
    return diff


def test_rewritten_log_has_no_diff() -> None:
    assert diff_notebooks(log_notebook(rv.log_input(3)), log_notebook(rv.log_input(3))) == []


def test_new_version_inserts_cells_and_changes_summaries() -> None:
    two, three = log_notebook(rv.log_input(2)), log_notebook(rv.log_input(3))
    diff = changes(two, three)
    assert {change["op"] for change in diff} == {"addrange", "patch"}
    inserted = [c.id for change in diff for c in change.get("valuelist", ())]
    assert inserted == ["softmax-v3-about", "softmax-v3-code", "softmax-v3-validate"]
    patched = [two.cells[change["key"]] for change in diff if change["op"] == "patch"]
    assert len(patched) >= 3
    assert all("summary" in cell.metadata.tags for cell in patched)


def test_new_attempt_changes_its_own_version_only() -> None:
    """The code that was replaced gets cells of its own, above those of the attempt that stands."""
    first, second = (log_notebook(rv.log_input(1, versions=v)) for v in attempts_of_one())
    touched = [
        *(c for change in changes(first, second) for c in change.get("valuelist", ())),
        *(first.cells[c["key"]] for c in changes(first, second) if c["op"] == "patch"),
    ]
    assert "softmax-v1-attempt-1-why" in [c.id for c in touched]
    for cell in touched:
        assert cell.id.startswith("softmax-v1-") or "summary" in cell.metadata.tags, cell.id


def attempts_of_one() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return v1 after its first attempt, and after its second."""
    (both,) = rv.log_input(1).versions
    only = type(both)(both.version, both.attempts[:1], both.validations[:1], (), None, "x")
    return (only,), (both,)


def test_nbdime_diff_of_two_logs_is_short() -> None:
    """On two screens with `--ignore-outputs`; no line is a blob."""
    two, three = log_notebook(rv.log_input(2)), log_notebook(rv.log_input(3))
    lines = nbdime_lines(two, three, outputs=False)
    assert 30 < len(lines) <= 120, "\n".join(lines)
    assert max(map(len, lines)) < 200
    assert "+| v3_coalesced | Tiling | ✓ right | 13.1 us | 1.62x | 1 |" in lines
    whole = nbdime_lines(two, three)
    assert len(whole) < 450
    assert max(map(len, whole)) < 240
