"""Values as static outputs: text, Markdown and HTML at once, and a picture after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triton_magics.model import Benchmark, CaseResult, PlotName, Report, Sweep, Validation

# By name, so that registering it imports nothing; what is registered for a class serves its
# subclasses too.
_VALUE = ("triton_magics.model.base", "Value")
Bundle = Mapping[str, str]
Picture = Callable[[], "Bundle | None"]


def bundle(value: object) -> dict[str, str]:
    """The three faces of a value; empty where it is none that a verb returns."""
    from triton_magics import report
    from triton_magics.report.views import VIEWS

    return report.bundle(value) if type(value) in VIEWS else {}


def said(text: str, *, status: str = "warn") -> dict[str, str]:
    """The three faces of one statement: `warn`, `bad` or `info`."""
    from triton_magics import report
    from triton_magics.report.blocks import Line

    document = (Line(text, status),)  # type: ignore[arg-type]
    return {
        "text/plain": report.to_text(document),
        "text/markdown": report.to_markdown(document),
        "text/html": report.to_html(document),
    }


# -------------------------------------------------------------------------------- pictures


def picture(value: object) -> dict[str, str] | None:
    """The picture of a value, with what it shows in words; None where there is none."""
    from triton_magics.model import Benchmark, Plot, Report, Sweep, Validation

    if isinstance(value, Plot):
        return drawn(value.of, value.name) if value.of else None
    if isinstance(value, Benchmark | Sweep):
        return drawn(value)
    if isinstance(value, Report):
        return _overview(value)
    return _mismatch(value) if isinstance(value, Validation) else None


def drawn(value: Benchmark | Sweep, name: PlotName | None = None) -> dict[str, str] | None:
    """The faces of a picture of a benchmark or a sweep; None where there is nothing to see."""
    from triton_magics import report

    made = report.drawn(value, name)
    return _figure(*made) if made else None


def _overview(value: Report) -> dict[str, str] | None:
    from triton_magics import report

    figure = report.overview_plot(value)
    if figure is None:
        return None
    alt = report.report_finding(value)
    return _figure(report.png(figure, alt), alt)


def _mismatch(value: Validation) -> dict[str, str] | None:
    from triton_magics import report

    case = next(_with_pictures(value.failed_cases), None)
    if case is None or case.mismatch is None:
        return None
    title = f"{value.op} {value.version}, {case.case.label}"
    figure = report.mismatch_plot(case.mismatch, title)
    if figure is None:
        return None
    wrong = f"{case.mismatch.n_wrong} of {case.mismatch.n_elements} elements wrong"
    alt = f"{title}: {wrong}, {case.mismatch.where}"
    return _figure(report.png(figure, alt), alt)


def _with_pictures(cases: Sequence[CaseResult]) -> Iterator[CaseResult]:
    return (case for case in cases if case.mismatch and case.mismatch.picture)


def _figure(png: bytes, alt: str) -> dict[str, str]:
    """JupyterLab shows the HTML, whose picture has its text; other readers take the PNG."""
    import base64

    from triton_magics import report
    from triton_magics.report.blocks import Figure

    return {
        "text/plain": alt,
        "text/html": report.to_html((Figure(png, alt),)),
        "image/png": base64.b64encode(png).decode(),
    }


# --------------------------------------------------------------------------------- display


class Display:
    """Shows values in one shell: formatters while it is loaded, pictures after their tables.

    Attributes:
        cell: the text of the cell that runs, as it stands in its editor.
        n_cells: how many have run.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._waiting: list[object] = []
        self.cell = ""
        self.n_cells = 0

    @property
    def in_notebook(self) -> bool:
        """Whether there is more than a terminal's text to show with."""
        return hasattr(self._shell, "kernel")

    def load(self) -> None:
        """Registers the formatter, and the pictures that follow what it has shown."""
        formatter = self._shell.display_formatter.mimebundle_formatter
        formatter.for_type_by_name(*_VALUE, self._formatted)
        self._shell.events.register("pre_run_cell", self._before_cell)
        self._shell.events.register("post_run_cell", self._after_cell)

    def unload(self) -> None:
        """Takes both away."""
        formatter = self._shell.display_formatter.mimebundle_formatter
        formatter.pop(".".join(_VALUE), None)
        self._shell.events.unregister("pre_run_cell", self._before_cell)
        self._shell.events.unregister("post_run_cell", self._after_cell)

    def show(self, value: object) -> None:
        """Shows a value, and its picture right after it."""
        from IPython.display import display

        display(value)
        self._pictures()

    def show_bundle(self, faces: Bundle) -> None:
        """Shows something that has its faces already."""
        from IPython.display import display

        display(dict(faces), raw=True)

    def _formatted(self, value: object) -> dict[str, str] | None:
        self._waiting.append(value)
        return bundle(value) or None

    def _before_cell(self, info: Any) -> None:
        """What a debugger looked at between two cells has no place in either."""
        self._waiting = []
        self.n_cells += 1
        self.cell = info.raw_cell or ""

    def _after_cell(self, _result: object) -> None:
        self._pictures()

    def _pictures(self) -> None:
        """The pictures of what was shown since the last ones; a terminal has none."""
        from IPython.display import display

        values, self._waiting = self._waiting, []
        for value in values if self.in_notebook else ():
            faces = picture(value)
            if faces:
                display(faces, raw=True, display_id=True)
