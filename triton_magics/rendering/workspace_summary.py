"""The summary of a workspace within a maximum length, the most important parts first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from triton_magics.model import KernelSource, OpResult, Report, short
from triton_magics.next_step import NextStep
from triton_magics.rendering.log_correctness import verdict_cell
from triton_magics.rendering.log_input import LogInput, VersionLog
from triton_magics.rendering.log_phases import why_replaced
from triton_magics.rendering.numbers import count_text, ratio_text, time_text
from triton_magics.rendering.phrase import Phrase, plain
from triton_magics.rendering.render_markdown import escape
from triton_magics.rendering.views.report import pause_text, place_text
from triton_magics.rendering.views.words import join_parts

MARK = "<!-- Written by triton_magics"
_HEAD = MARK + "; {} writes it again. -->\n\n# State of this workspace\n"
SHORTEST = 600
_FIRST = NextStep("op", {"op": "softmax"})
_HOW = (
    "- In a notebook: `%load_ext triton_magics`. In Python: `from triton_magics import Lab`.",
    "- In a terminal: `triton-magics --help`. All three have the same verbs.",
    "- `{op}` opens an op, `{kernel}` writes a version.",
    "- `{validate}` validates it, `{bench}` times all that passed.",
    "- `{ops}` does both for several ops; `{best}` chooses a version.",
    "- Code: `kernels/OP/vN_*.py`. History: `logs/OP_log.jsonl`; `{log}` exports it.",
)
_OP, _VERSION = {"op": "OP"}, {"op": "OP", "version": "vN"}
_STEPS: dict[str, NextStep] = {
    **{verb: NextStep(verb, _OP) for verb in ("op", "bench", "best", "log")},
    **{verb: NextStep(verb, _VERSION) for verb in ("kernel", "validate")},
    "ops": NextStep("ops", {"ops": ("OP", "OP")}),
}


class FittedText(NamedTuple):
    """The text, and the titles of the parts that were cut."""

    markdown: str
    left_out: tuple[str, ...]


class _Part(NamedTuple):
    title: str
    lines: tuple[str, ...]


def summary(
    report: Report, histories: Sequence[LogInput], phrase: Phrase = plain, *, max_chars: int
) -> FittedText:
    """Return state, next steps, instructions, versions and failed attempts, cut at the end to fit.

    Args:
        report: the report over every op.
        histories: the log input of each of these ops.
        phrase: writes a next step in the form of the reader's front end.
        max_chars: maximum length of the text.
    """
    text, left_out = _HEAD.format(phrase(NextStep("summary"))), []
    cut = f"- … more: `{phrase(NextStep('status', _OP))}`, `{phrase(_STEPS['log'])}`\n"
    for part in _parts(report, [h.clean for h in histories], phrase):
        text, is_complete = _with_part(text, part, max_chars, cut)
        if not is_complete:
            left_out.append(part.title)
    return FittedText(text, tuple(left_out))


def _with_part(text: str, part: _Part, max_chars: int, cut: str) -> tuple[str, bool]:
    """Return the text with as many of the part's lines as fit, and True if all of them do."""
    extended = f"{text}\n## {part.title}\n\n"
    n_lines = 0
    for line in part.lines:
        last = n_lines == len(part.lines) - 1
        if len(extended) + len(line) + 1 + (0 if last else len(cut)) > max_chars:
            break
        extended, n_lines = f"{extended}{line}\n", n_lines + 1
    if n_lines == len(part.lines):
        return extended, True
    return (extended + cut, False) if n_lines else (text, False)


def _parts(report: Report, histories: Sequence[LogInput], phrase: Phrase) -> Iterator[_Part]:
    if not report.ops:
        yield _Part("State", (f"- No op has been opened yet. Next: `{phrase(_FIRST)}`.",))
    else:
        yield _Part("State", tuple(map(_state_line, report.ops)))
    steps = tuple(_next_line(op, phrase) for op in report.ops if not op.done)
    if steps:
        yield _Part("Next steps", steps)
    spelled = {verb: phrase(step) for verb, step in _STEPS.items()}
    yield _Part("How to continue", tuple(line.format(**spelled) for line in _HOW))
    versions = tuple(line for h in histories for line in _version_lines(h))
    if versions:
        yield _Part("Versions", versions)
    tried = tuple(line for h in histories for line in _tried_lines(h))
    if tried:
        yield _Part("Failed attempts", tried)
    where = tuple(dict.fromkeys(_where(h) for h in histories if h.environment))
    if where:
        yield _Part("Measured on", where)


def _state_line(op: OpResult) -> str:
    best = join_parts(
        (
            f"best {op.best}" if op.best else "no version has passed validation",
            f"final {time_text(op.final_us)}" if op.final_us is not None else None,
            f"{ratio_text(op.speedup)} as fast as torch" if op.speedup else None,
        )
    )
    where = "done" if op.done else place_text(op)
    versions = count_text(len(op.state.versions), "version")
    return f"- **{op.op}**: {where} · {versions} · {best}"


def _next_line(op: OpResult, phrase: Phrase) -> str:
    if op.paused:
        write = NextStep("kernel", {"op": op.op, "version": op.paused.version})
        return f"- {op.op}: `{phrase(write)}` ({pause_text(op.paused)})"
    return f"- {op.op}: `{phrase(op.state.next_step)}`"


def _version_lines(log: LogInput) -> Iterator[str]:
    for version in log.versions:
        timed = log.current_benchmark(version)
        final = timed.final_us(version.version) if timed else None
        text = join_parts(
            (
                escape(version.technique) if version.technique else None,
                verdict_cell(version),
                f"final {time_text(final)}" if final is not None else None,
                f"{len(version.attempts)} attempts" if version.replaced_attempts else None,
            )
        )
        yield f"- {log.op} {short(version.version)}: {text} · `{version.source.path}`"


def _tried_lines(log: LogInput) -> Iterator[str]:
    for version in log.versions:
        for source in (*version.replaced_attempts, *_newest_if_wrong(version)):
            verdict = version.validation(source)
            if verdict and not verdict.passed:
                name = f"{log.op} {short(version.version)}, attempt {source.attempt}"
                yield f"- {name}: {_one_line(why_replaced(version, source))}"


def _newest_if_wrong(version: VersionLog) -> tuple[KernelSource, ...]:
    verdict = version.validation(version.source)
    return (version.source,) if verdict and not verdict.passed else ()


def _where(log: LogInput) -> str:
    env = log.environment
    assert env is not None
    return f"- {env.device}, torch {env.torch}, triton {env.triton}, python {env.python}"


def _one_line(text: str) -> str:
    return escape(" ".join(text.split()))
