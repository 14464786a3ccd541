"""What a person, a terminal and a program see of each value.

Each view says the verdict first, then the one number that matters, details folded, and last what
to do next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from triton_magics.model import (
    Benchmark,
    Best,
    Compilation,
    Diagnosis,
    Difference,
    Export,
    LabState,
    OpPage,
    OpState,
    Plan,
    Plot,
    Reference,
    Report,
    RunResult,
    SelfTest,
    Summary,
    Sweep,
    Template,
    Validation,
    Validations,
    Written,
)
from triton_magics.report.blocks import Block, Code, Details, Document, Line
from triton_magics.report.render import to_html, to_markdown, to_text
from triton_magics.report.views.benchmark import benchmark_view, finding
from triton_magics.report.views.diagnosis import diagnosis_view
from triton_magics.report.views.difference import difference_view
from triton_magics.report.views.faults import WHOLE_TRACEBACK
from triton_magics.report.views.kernels import best_view, compilation_view, run_view, written_view
from triton_magics.report.views.knowledge import reference_view, template_view
from triton_magics.report.views.pictures import is_picture
from triton_magics.report.views.plan import plan_view
from triton_magics.report.views.record import report_view, summary_view
from triton_magics.report.views.selftest import selftest_view
from triton_magics.report.views.state import (
    export_view,
    lab_state_view,
    op_page_view,
    op_state_view,
)
from triton_magics.report.views.sweep import plot_view, sweep_view
from triton_magics.report.views.validation import validation_view, validations_view
from triton_magics.report.wording import Say, reworded

FOLD_OVER = 12
VIEWS: Mapping[type, Callable[[Any], Document]] = MappingProxyType(
    {
        Benchmark: benchmark_view,
        Best: best_view,
        Compilation: compilation_view,
        Diagnosis: diagnosis_view,
        Difference: difference_view,
        Export: export_view,
        LabState: lab_state_view,
        OpPage: op_page_view,
        OpState: op_state_view,
        Plan: plan_view,
        Plot: plot_view,
        Reference: reference_view,
        Report: report_view,
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


def view(value: object) -> Document:
    """The document that shows a value.

    Raises:
        TypeError: a value that is not in `VIEWS`.
    """
    if type(value) not in VIEWS:
        raise TypeError(f"there is no view of {type(value).__name__}")
    return VIEWS[type(value)](value)


def headline(value: object) -> str:
    """The first line of a value's view, as plain text: sign, verdict, what matters most."""
    return to_text(view(value)[:1], width=10_000)


def bundle(value: object) -> dict[str, str]:
    """The value's three faces by MIME type; each says all that matters by itself.

    HTML and Markdown hold every detail, folded. In plain text a detail of more than `FOLD_OVER`
    lines is named only: `to_text(view(value))` has them all.
    """
    document = view(value)
    return {
        "text/plain": to_text(document, fold_over=FOLD_OVER),
        "text/markdown": to_markdown(document),
        "text/html": to_html(document),
    }


def command_line_text(value: object, say: Say, *, details: bool = False) -> str:
    """What a command prints of a value.

    Args:
        value: what a verb returned.
        say: a statement in the words of the command line.
        details: with those of more than `FOLD_OVER` lines, which else are named only.
    """
    document = reworded(view(value), say)
    if details:
        return to_text(document)
    return to_text(document, fold_over=FOLD_OVER, unfold="--details shows them")


def failure_lines(value: object, *, whole: bool = False, above: bool = False) -> list[str]:
    """A failure as the lines of a traceback: verdict, place, caret, cause, what to do.

    Tables, details and the picture stand in the value's own view.

    Args:
        value: the value that an exception carries.
        whole: with the traceback of the kernel's own process, where there is one.
        above: the view stands right above: nothing of it is said again.
    """
    wanted = (*((_is_traceback,) if whole else ()), *(() if above else (_is_spoken,)))
    return to_text(tuple(b for b in view(value) if any(is_(b) for is_ in wanted))).splitlines()


def _is_spoken(block: Block) -> bool:
    return isinstance(block, Line) or _is_code(block)


def _is_traceback(block: Block) -> bool:
    return isinstance(block, Details) and block.title == WHOLE_TRACEBACK


def _is_code(block: Block) -> bool:
    return isinstance(block, Code) and not is_picture(block.text)


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
