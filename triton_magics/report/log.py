"""The development log of an op as one document and as Markdown."""

from __future__ import annotations

from collections import Counter

from triton_magics.report import log_phases as phases
from triton_magics.report.blocks import Document, Figure, Text
from triton_magics.report.checklist import checklist_part
from triton_magics.report.log_correctness import correctness
from triton_magics.report.log_input import LogInput, VersionLog
from triton_magics.report.plots import finding
from triton_magics.report.render import to_markdown
from triton_magics.report.views.benchmark import void
from triton_magics.report.views.sweep import finding as sweep_finding


def log_document(given: LogInput, *, pictures: bool = True) -> Document:
    """The log in four phases, with environment and checklist.

    Args:
        given: what happened.
        pictures: with the plots; without them their findings stand there in words alone.
    """
    given = given.clean
    return (
        *phases.summary(given),
        *phases.research(given),
        *phases.kernels(given),
        *correctness(given),
        *phases.speed(given),
        *_plots(given, pictures),
        *phases.selection(given),
        *phases.environment(given),
        *checklist_part(given),
    )


def _plots(given: LogInput, pictures: bool) -> Document:
    if not pictures:
        told = [Text(finding(value)) for value in given.benchmarks if not void(value)]
        return (*told, *(Text(sweep_finding(v.sweep)) for v in given.versions if v.sweep))
    found: list[Text | Figure] = []
    for figure in _figures(given):
        found += [Text(figure.alt), figure]
    return tuple(found)


def log_figures(given: LogInput) -> tuple[Figure, ...]:
    """Each plot, with its finding in words and the name of its file."""
    return _figures(given.clean)


def _figures(given: LogInput) -> tuple[Figure, ...]:
    names: Counter[str] = Counter()
    made = []
    for picture in given.pictures:
        names[picture.name] += 1
        n = names[picture.name]
        file = f"{given.op}_{picture.name}{'' if n == 1 else f'_{n}'}.png"
        made.append(Figure(picture.png, picture.alt, file))
    return tuple(made)


def markdown_log(given: LogInput, *, pictures: bool = False) -> str:
    """The log as a Markdown file.

    Args:
        given: what happened.
        pictures: link the files of `log_figures`, which the caller writes beside the text.
    """
    return to_markdown(log_document(given, pictures=pictures), pictures=pictures) + "\n"


__all__ = ["LogInput", "VersionLog", "log_document", "log_figures", "markdown_log"]
