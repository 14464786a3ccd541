"""Values in, something to read out: plain text, Markdown, HTML, figures, the development log.

Pure: nothing here runs a kernel, reads a file or keeps state. A view is written once, as a neutral
document (`blocks`), and rendered three ways (`render`). matplotlib and nbformat are imported when a
figure or a notebook is made, not before.
"""

from triton_magics.report.log import LogInput, VersionLog, log_document, log_figures, markdown_log
from triton_magics.report.notebook import log_notebook, write_notebook
from triton_magics.report.overview import overview_plot
from triton_magics.report.page import html_log
from triton_magics.report.pictures import KINDS as PICTURES
from triton_magics.report.pictures import Drawn, drawn
from triton_magics.report.plots import finding, mismatch_plot, png, speedup_plot
from triton_magics.report.plots_sweep import sweep_plot
from triton_magics.report.plots_times import runs_plot, times_plot
from triton_magics.report.pytest_file import MARK as PYTEST_MARK
from triton_magics.report.pytest_file import pytest_file
from triton_magics.report.render import to_html, to_markdown, to_text
from triton_magics.report.summary import MARK as SUMMARY_MARK
from triton_magics.report.summary import SHORTEST as SHORTEST_SUMMARY
from triton_magics.report.summary import summary
from triton_magics.report.views import bundle, command_line_text, failure_lines, headline, view
from triton_magics.report.views.record import report_finding
from triton_magics.report.views.sweep import finding as sweep_finding

__all__ = [
    "PICTURES",
    "PYTEST_MARK",
    "SHORTEST_SUMMARY",
    "SUMMARY_MARK",
    "Drawn",
    "LogInput",
    "VersionLog",
    "bundle",
    "command_line_text",
    "drawn",
    "failure_lines",
    "finding",
    "headline",
    "html_log",
    "log_document",
    "log_figures",
    "log_notebook",
    "markdown_log",
    "mismatch_plot",
    "overview_plot",
    "png",
    "pytest_file",
    "report_finding",
    "runs_plot",
    "speedup_plot",
    "summary",
    "sweep_finding",
    "sweep_plot",
    "times_plot",
    "to_html",
    "to_markdown",
    "to_text",
    "view",
    "write_notebook",
]
