"""Render values as plain text, Markdown, HTML, figures and development logs.

Pure: no module here runs a kernel, reads a file or holds state. A view is written once, as a
neutral document (`blocks`), and rendered in three formats (`render`). matplotlib is imported at the
first figure.
"""

from triton_magics.rendering.log_document import (
    LogInput,
    VersionLog,
    log_document,
    log_figures,
    markdown_log,
)
from triton_magics.rendering.notebook import log_notebook, write_notebook
from triton_magics.rendering.overview import overview_plot
from triton_magics.rendering.page import html_log
from triton_magics.rendering.plot_kinds import PLOT_KINDS, PlotImage, draw_plot
from triton_magics.rendering.plots_mismatch import mismatch_plot
from triton_magics.rendering.plots_speedup import finding, png, speedup_plot
from triton_magics.rendering.plots_sweep import sweep_plot
from triton_magics.rendering.plots_times import runs_plot, times_plot
from triton_magics.rendering.pytest_file import MARK as PYTEST_MARK
from triton_magics.rendering.pytest_file import pytest_file
from triton_magics.rendering.render import to_html, to_markdown, to_text
from triton_magics.rendering.views import bundle, command_line_text, failure_lines, headline, view
from triton_magics.rendering.views.report import report_finding
from triton_magics.rendering.views.sweep import finding as sweep_finding
from triton_magics.rendering.views.validation import summary as verdict_summary
from triton_magics.rendering.workspace_summary import MARK as SUMMARY_MARK
from triton_magics.rendering.workspace_summary import SHORTEST as SHORTEST_SUMMARY
from triton_magics.rendering.workspace_summary import summary

__all__ = [
    "PLOT_KINDS",
    "PYTEST_MARK",
    "SHORTEST_SUMMARY",
    "SUMMARY_MARK",
    "LogInput",
    "PlotImage",
    "VersionLog",
    "bundle",
    "command_line_text",
    "draw_plot",
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
    "verdict_summary",
    "view",
    "write_notebook",
]
