"""The view of each value, as a document.

Each view has the verdict first, then the main number, then folded details, and last the next step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from triton_magics.model import (
    Batch,
    Benchmark,
    Best,
    Compilation,
    Correction,
    Diagnosis,
    Difference,
    Export,
    History,
    LabState,
    OpPage,
    OpState,
    Plan,
    Plot,
    Profile,
    Reference,
    RegressionCheck,
    Report,
    Retiming,
    RunResult,
    SelfTest,
    Summary,
    Sweep,
    Template,
    Validation,
    Validations,
    Written,
)
from triton_magics.rendering.blocks import (
    Beside,
    Block,
    Code,
    Details,
    Document,
    Line,
    one_below_the_other,
)
from triton_magics.rendering.phrase import Phrase, fill, plain
from triton_magics.rendering.render import to_html, to_markdown, to_text
from triton_magics.rendering.views.batch_view import batch_view
from triton_magics.rendering.views.benchmark import benchmark_view, finding
from triton_magics.rendering.views.diagnosis import diagnosis_view
from triton_magics.rendering.views.difference import correction_view, difference_view
from triton_magics.rendering.views.faults import WHOLE_TRACEBACK
from triton_magics.rendering.views.history_view import (
    history_view,
    regression_check_view,
    retiming_view,
)
from triton_magics.rendering.views.kernels import (
    best_view,
    compilation_view,
    run_view,
    written_view,
)
from triton_magics.rendering.views.knowledge import reference_view, template_view
from triton_magics.rendering.views.plan_view import plan_view
from triton_magics.rendering.views.plot_view import plot_view
from triton_magics.rendering.views.profile import profile_view
from triton_magics.rendering.views.report import report_view, summary_view
from triton_magics.rendering.views.selftest_view import selftest_view
from triton_magics.rendering.views.state import (
    export_view,
    lab_state_view,
    op_page_view,
    op_state_view,
)
from triton_magics.rendering.views.sweep import sweep_view
from triton_magics.rendering.views.validation import validation_view, validations_view

FOLD_OVER = 12
VIEWS: Mapping[type, Callable[[Any, Phrase], Document]] = MappingProxyType(
    {
        Batch: batch_view,
        Benchmark: benchmark_view,
        Best: best_view,
        Compilation: compilation_view,
        Correction: correction_view,
        Diagnosis: diagnosis_view,
        Difference: difference_view,
        Export: export_view,
        History: history_view,
        LabState: lab_state_view,
        OpPage: op_page_view,
        OpState: op_state_view,
        Plan: plan_view,
        Plot: plot_view,
        Profile: profile_view,
        Reference: reference_view,
        RegressionCheck: regression_check_view,
        Report: report_view,
        Retiming: retiming_view,
        RunResult: run_view,
        SelfTest: selftest_view,
        Summary: summary_view,
        Sweep: sweep_view,
        Template: template_view,
        Validation: validation_view,
        Validations: validations_view,
        Written: written_view,
    }
)


def view(value: object, phrase: Phrase = plain) -> Document:
    """Return the document of a value.

    Args:
        value: the result of a verb.
        phrase: writes a next step in the form of the front end.

    Raises:
        TypeError: a value that is not in `VIEWS`.
    """
    if type(value) not in VIEWS:
        raise TypeError(
            f"{type(value).__name__} has no view: add one to VIEWS in {__name__}, or give its "
            "verb a page"
        )
    return tuple(_write_steps(block, phrase) for block in VIEWS[type(value)](value, phrase))


def _write_steps(block: Block, phrase: Phrase) -> Block:
    """Return a block with the steps of the knowledge base (`{{ref words=syntax}}`) written out."""
    if isinstance(block, Line) and "{{" in block.text:
        return dataclasses.replace(block, text=fill(block.text, phrase))
    if isinstance(block, Beside):
        parts = tuple(tuple(_write_steps(b, phrase) for b in part) for part in block.parts)
        return Beside(parts)
    return block


def headline(value: object) -> str:
    """Return the first line of a value's view as plain text: sign, verdict, main number."""
    return to_text(view(value)[:1], width=10_000)


def bundle(value: object, phrase: Phrase = plain, *, root: str | None = None) -> dict[str, str]:
    """Return the value's three formats by MIME type, each complete without the others.

    HTML and Markdown contain every detail, folded. Plain text only names a detail of more than
    `FOLD_OVER` lines; `to_text(view(value))` has them all.

    Args:
        value: the result of a verb.
        phrase: writes a next step in the form of the front end.
        root: the workspace's folder as seen from the page; files of it become links in HTML.
    """
    document = view(value, phrase)
    return {
        "text/plain": to_text(document, fold_over=FOLD_OVER),
        "text/markdown": to_markdown(document),
        "text/html": to_html(document, root=root),
    }


def command_line_text(
    value: object, phrase: Phrase, *, details: bool = False, width: int = 100
) -> str:
    """Return the text that a command prints for a value.

    Args:
        value: the result of a verb.
        phrase: writes a next step as a command.
        details: show details of more than `FOLD_OVER` lines too, instead of their names only.
        width: columns to wrap at.
    """
    document = view(value, phrase)
    if details:
        return to_text(document, width)
    return to_text(document, width, fold_over=FOLD_OVER, unfold="--details shows them")


def failure_lines(
    value: object, phrase: Phrase = plain, *, whole: bool = False, above: bool = False
) -> list[str]:
    """Return a failure as lines of a traceback: verdict, place, caret, cause, next step.

    Tables, details and the error map are in the value's view only.

    Args:
        value: the value that an exception carries.
        phrase: writes a next step in the form of the front end.
        whole: add the traceback of the kernel's process, if there is one.
        above: the view is displayed right above, so repeat nothing of it.
    """
    filters = (*((_is_traceback,) if whole else ()), *(() if above else (_is_line_or_code,)))
    document = one_below_the_other(view(value, phrase))
    shown = tuple(b for b in document if any(is_shown(b) for is_shown in filters))
    return to_text(shown).splitlines()


def _is_line_or_code(block: Block) -> bool:
    return isinstance(block, Line) or _is_code(block)


def _is_traceback(block: Block) -> bool:
    return isinstance(block, Details) and block.title == WHOLE_TRACEBACK


def _is_code(block: Block) -> bool:
    return isinstance(block, Code) and not block.is_drawing


__all__ = [
    "FOLD_OVER",
    "VIEWS",
    "bundle",
    "command_line_text",
    "failure_lines",
    "finding",
    "headline",
    "view",
]
