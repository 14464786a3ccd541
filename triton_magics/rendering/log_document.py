"""The development log of an op as one document and as Markdown."""

from __future__ import annotations

from collections import Counter

from triton_magics.rendering import log_phases as phases
from triton_magics.rendering.blocks import Document, Figure, Text
from triton_magics.rendering.checklist import checklist_part
from triton_magics.rendering.log_correctness import correctness
from triton_magics.rendering.log_input import LogInput, VersionLog
from triton_magics.rendering.plots_profile import describe_profile
from triton_magics.rendering.plots_speedup import finding
from triton_magics.rendering.render import to_markdown
from triton_magics.rendering.views.benchmark import is_void
from triton_magics.rendering.views.sweep import finding as sweep_finding


def log_document(log: LogInput, *, pictures: bool = True) -> Document:
    """Return the log in four phases, with environment and checklist.

    Args:
        log: sources and results of the op.
        pictures: include the plots; otherwise only their findings in words.
    """
    log = log.clean
    return (
        *phases.summary(log),
        *phases.research(log),
        *phases.kernels(log),
        *correctness(log),
        *phases.speed(log),
        *_plots(log, pictures),
        *phases.selection(log),
        *phases.environment(log),
        *checklist_part(log),
    )


def _plots(log: LogInput, pictures: bool) -> Document:
    if not pictures:
        findings = [Text(finding(value)) for value in log.benchmarks if not is_void(value)]
        findings += [Text(sweep_finding(v.sweep)) for v in log.versions if v.sweep]
        findings += [Text(describe_profile(v.profile)) for v in log.versions if v.profile]
        return tuple(findings)
    blocks: list[Text | Figure] = []
    for figure in _figures(log):
        blocks += [Text(figure.alt), figure]
    return tuple(blocks)


def log_figures(log: LogInput) -> tuple[Figure, ...]:
    """Return each plot, with its finding in words and its file name."""
    return _figures(log.clean)


def _figures(log: LogInput) -> tuple[Figure, ...]:
    names: Counter[str] = Counter()
    figures = []
    for picture in log.pictures:
        names[picture.name] += 1
        n = names[picture.name]
        file = f"{log.op}_{picture.name}{'' if n == 1 else f'_{n}'}.png"
        figures.append(Figure(picture.png, picture.alt, file))
    return tuple(figures)


def markdown_log(log: LogInput, *, pictures: bool = False) -> str:
    """Return the log as the text of a Markdown file.

    Args:
        log: sources and results of the op.
        pictures: link the files of `log_figures`, which the caller writes beside the text.
    """
    return to_markdown(log_document(log, pictures=pictures), pictures=pictures) + "\n"


__all__ = ["LogInput", "VersionLog", "log_document", "log_figures", "markdown_log"]
