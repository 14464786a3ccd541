"""What a newcomer or a program needs to go on, within a given length: the most needed first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from triton_magics.model import KernelSource, OpResult, Report, short
from triton_magics.report.log_correctness import verdict_cell
from triton_magics.report.log_input import LogInput, VersionLog
from triton_magics.report.log_phases import why_replaced
from triton_magics.report.numbers import ratio_text, time_text
from triton_magics.report.views.words import joined

MARK = "<!-- Written by triton_magics; %triton_summary writes it again. -->"
SHORTEST = 600
_HOW = (
    "- In a notebook: `%load_ext triton_magics`. In Python: `from triton_magics import Lab`.",
    "- In a terminal: `triton-magics --help`. All three have the same verbs.",
    "- `%triton_op OP` opens an op, `%%triton_kernel OP vN` writes a version.",
    "- `%triton_validate OP vN` judges it, `%triton_bench OP` times all that passed.",
    "- `%triton_ops OP, OP` does both for several ops; `%triton_best OP` chooses.",
    "- Code: `kernels/OP/vN_*.py`. History: `logs/OP_log.jsonl`; `%triton_log OP` writes it out.",
)


class Fitted(NamedTuple):
    """The text, and the parts of which something had to be left out."""

    markdown: str
    left_out: tuple[str, ...]


class _Part(NamedTuple):
    title: str
    lines: tuple[str, ...]


def summary(over_all: Report, histories: Sequence[LogInput], *, max_chars: int) -> Fitted:
    """State, next steps, how to go on, versions, what was tried; cut from the end to fit.

    Args:
        over_all: every op.
        histories: the same ops, each with what happened to it.
        max_chars: the longest that the text may be.
    """
    text, left_out = f"{MARK}\n\n# Where this work stands\n", []
    for part in _parts(over_all, [h.clean for h in histories]):
        text, whole = _with_part(text, part, max_chars)
        if not whole:
            left_out.append(part.title)
    return Fitted(text, tuple(left_out))


def _with_part(text: str, part: _Part, max_chars: int) -> tuple[str, bool]:
    """The text with as many of the part's lines as there is room for, and whether that is all."""
    cut = "- … more: `%triton_status OP`, `%triton_log OP`\n"
    grown = f"{text}\n## {part.title}\n\n"
    kept = 0
    for line in part.lines:
        last = kept == len(part.lines) - 1
        if len(grown) + len(line) + 1 + (0 if last else len(cut)) > max_chars:
            break
        grown, kept = f"{grown}{line}\n", kept + 1
    if kept == len(part.lines):
        return grown, True
    return (grown + cut, False) if kept else (text, False)


def _parts(over_all: Report, histories: Sequence[LogInput]) -> Iterator[_Part]:
    if not over_all.ops:
        yield _Part("State", ("- Nothing was begun yet. Next: `%triton_op softmax`.",))
    else:
        yield _Part("State", tuple(map(_state_line, over_all.ops)))
    steps = tuple(_next_line(op) for op in over_all.ops if not op.done)
    if steps:
        yield _Part("Next steps", steps)
    yield _Part("How to go on", _HOW)
    versions = tuple(line for h in histories for line in _version_lines(h))
    if versions:
        yield _Part("Versions", versions)
    tried = tuple(line for h in histories for line in _tried_lines(h))
    if tried:
        yield _Part("What was tried and failed", tried)
    where = tuple(dict.fromkeys(_where(h) for h in histories if h.environment))
    if where:
        yield _Part("Measured on", where)


def _state_line(op: OpResult) -> str:
    best = joined(
        (
            f"best {op.best}" if op.best else "no version is right yet",
            f"final {time_text(op.final_us)}" if op.final_us is not None else None,
            f"{ratio_text(op.speedup)} as fast as torch" if op.speedup else None,
        )
    )
    where = "through" if op.done else f"paused at {op.paused}" if op.paused else op.state.state
    return f"- **{op.op}**: {where} · {len(op.state.versions)} versions · {best}"


def _next_line(op: OpResult) -> str:
    if op.paused:
        return f"- {op.op}: `%%triton_kernel {op.op} {op.paused.partition(':')[0]}` ({op.paused})"
    return f"- {op.op}: `{op.state.next_step}`"


def _version_lines(given: LogInput) -> Iterator[str]:
    for version in given.versions:
        timed = given.timed_in(version)
        final = timed.final_us(version.version) if timed else None
        words = joined(
            (
                version.technique,
                verdict_cell(version),
                f"final {time_text(final)}" if final is not None else None,
                f"{len(version.attempts)} attempts" if version.earlier else None,
            )
        )
        yield f"- {given.op} {short(version.version)}: {words} · `{version.source.path}`"


def _tried_lines(given: LogInput) -> Iterator[str]:
    for version in given.versions:
        for source in (*version.earlier, *_newest_if_wrong(version)):
            verdict = version.validation(source)
            if verdict and not verdict.passed:
                name = f"{given.op} {short(version.version)}, attempt {source.attempt}"
                yield f"- {name}: {_flat(why_replaced(version, source))}"


def _newest_if_wrong(version: VersionLog) -> tuple[KernelSource, ...]:
    verdict = version.validation(version.source)
    return (version.source,) if verdict and not verdict.passed else ()


def _where(given: LogInput) -> str:
    env = given.environment
    assert env is not None
    return f"- {env.device}, torch {env.torch}, triton {env.triton}, python {env.python}"


def _flat(text: str) -> str:
    return " ".join(text.split())
