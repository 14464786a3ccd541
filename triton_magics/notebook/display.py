"""Show values as static outputs: text, Markdown and HTML in one bundle, then a picture."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triton_magics.model import (
        Benchmark,
        CaseResult,
        Correction,
        History,
        PlotName,
        Profile,
        Report,
        Sweep,
        Template,
        Validation,
    )
    from triton_magics.notebook.printed_output import PrintedOutput
    from triton_magics.rendering.blocks import Document

# Registered by name, so that loading imports nothing. It covers the subclasses.
_VALUE = ("triton_magics.model.base", "Value")
MimeBundle = Mapping[str, str]
Picture = Callable[[], "MimeBundle | None"]


def bundle(value: object) -> dict[str, str]:
    """Return a value as text, Markdown and HTML; empty for a type that no verb returns."""
    from triton_magics import rendering
    from triton_magics.rendering.views import VIEWS
    from triton_magics.verbs._phrase import as_magic

    if type(value) not in VIEWS:
        return {}
    return rendering.bundle(value, as_magic, root=_workspace_root())


def _workspace_root() -> str:
    """Return the workspace's folder as seen from the notebook: empty, or `../work/`."""
    import triton_magics

    lab = triton_magics.open_lab()
    relative = os.path.relpath(lab.path) if lab else "."
    return "" if relative == "." else f"{relative}/"


def template_cell(template: Template) -> str:
    """Return the whole cell of a template, magic included."""
    return _kernel_cell(template.op, template.version, template.source, language=template.language)


def corrected_cell(correction: Correction) -> str:
    """Return the whole cell of a version with its corrected line, magic included."""
    source = correction.source
    return _kernel_cell(source.op, source.version, correction.text, language=source.language)


def _kernel_cell(op: str, version: str, source: str, *, language: str = "triton") -> str:
    from triton_magics.next_step import NextStep
    from triton_magics.verbs._phrase import as_magic

    more = {} if language == "triton" else {"type": language}
    return f"{as_magic(NextStep('kernel', {'op': op, 'version': version, **more}))}\n{source}"


def message_bundle(text: str, *, status: str = "warn") -> dict[str, str]:
    """Return one message as text, Markdown and HTML; status: `warn`, `bad` or `info`."""
    from triton_magics.rendering.blocks import Line

    return _faces((Line(text, status),))  # type: ignore[arg-type]


def folded_bundle(printed: PrintedOutput) -> dict[str, str]:
    """Return the lines that were not printed, folded."""
    from triton_magics.rendering.blocks import Code, Details

    title = f"printed output: {printed.n_more:,} more lines"
    return _faces((Details(title, (Code(printed.rest, "text"),)),))


def _faces(document: Document) -> dict[str, str]:
    from triton_magics import rendering

    return {
        "text/plain": rendering.to_text(document),
        "text/markdown": rendering.to_markdown(document),
        "text/html": rendering.to_html(document),
    }


# -------------------------------------------------------------------------------- pictures


def picture(value: object) -> dict[str, str] | None:
    """Return the picture of a value with its description; None if it has none."""
    from triton_magics.model import Benchmark, History, Plot, Profile, Report, Sweep

    if isinstance(value, Plot):
        return plot_bundle(value.result, value.name) if value.result else None
    if isinstance(value, Benchmark | Sweep | History | Profile):
        return plot_bundle(value)
    if isinstance(value, Report):
        return _overview(value)
    return None


def plot_bundle(
    value: Benchmark | Sweep | History | Profile, name: PlotName | None = None
) -> dict[str, str] | None:
    """Return the plot of a benchmark, a sweep or a profile; None if there is nothing to plot."""
    from triton_magics import rendering

    plot = rendering.draw_plot(value, name)
    return _figure(*plot) if plot else None


def _overview(value: Report) -> dict[str, str] | None:
    from triton_magics import rendering

    figure = rendering.overview_plot(value)
    if figure is None:
        return None
    alt = rendering.report_finding(value)
    return _figure(rendering.png(figure, alt), alt)


def mismatch_bundle(value: Validation) -> dict[str, str] | None:
    """Return the map of a failed version's wrong elements; None if no case has one."""
    from triton_magics import rendering

    case = next(_with_pictures(value.failed_cases), None)
    if case is None or case.mismatch is None:
        return None
    title = f"{value.op} {value.version}, {case.case.label}"
    figure = rendering.mismatch_plot(case.mismatch, title)
    if figure is None:
        return None
    wrong = f"{case.mismatch.n_wrong} of {case.mismatch.n_elements} elements wrong"
    alt = f"{title}: {wrong}, {case.mismatch.where}"
    return _figure(rendering.png(figure, alt), alt)


def _with_pictures(cases: Sequence[CaseResult]) -> Iterator[CaseResult]:
    return (case for case in cases if case.mismatch and case.mismatch.picture)


def _figure(png: bytes, alt: str) -> dict[str, str]:
    """Return a picture: HTML with a description for JupyterLab, PNG for other viewers."""
    import base64

    from triton_magics import rendering
    from triton_magics.rendering.blocks import Figure

    return {
        "text/plain": alt,
        "text/html": rendering.to_html((Figure(png, alt),)),
        "image/png": base64.b64encode(png).decode(),
    }


# --------------------------------------------------------------------------------- display


class Display:
    """Shows values in one shell, and their pictures after the tables.

    Attributes:
        cell: source of the running cell, as in its editor.
        n_cells: number of cells that have run.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._pending: list[object] = []
        self.cell = ""
        self.n_cells = 0

    @property
    def in_notebook(self) -> bool:
        """True for a Jupyter kernel, False for a terminal."""
        return hasattr(self._shell, "kernel")

    def load(self) -> None:
        """Register the formatter and the cell hooks."""
        formatter = self._shell.display_formatter.mimebundle_formatter
        formatter.for_type_by_name(*_VALUE, self._format)
        self._shell.events.register("pre_run_cell", self._before_cell)
        self._shell.events.register("post_run_cell", self._after_cell)

    def unload(self) -> None:
        """Remove the formatter and the cell hooks."""
        formatter = self._shell.display_formatter.mimebundle_formatter
        formatter.pop(".".join(_VALUE), None)
        self._shell.events.unregister("pre_run_cell", self._before_cell)
        self._shell.events.unregister("post_run_cell", self._after_cell)

    def show(self, value: object) -> None:
        """Show a value and its picture."""
        from IPython.display import display

        display(value)
        self._show_pictures()

    def show_bundle(self, mime_bundle: MimeBundle) -> None:
        """Show a bundle."""
        from IPython.display import display

        display(dict(mime_bundle), raw=True)

    def _format(self, value: object) -> dict[str, str] | None:
        self._pending.append(value)
        return bundle(value) or None

    def _before_cell(self, info: Any) -> None:
        """Forget values that a debugger formatted between two cells."""
        self._pending = []
        self.n_cells += 1
        self.cell = info.raw_cell or ""

    def _after_cell(self, _result: object) -> None:
        self._show_pictures()

    def _show_pictures(self) -> None:
        """Show the pictures of the values shown since the last call; a terminal has none."""
        from IPython.display import display

        values, self._pending = self._pending, []
        for value in values if self.in_notebook else ():
            if mime_bundle := picture(value):
                display(mime_bundle, raw=True, display_id=True)
