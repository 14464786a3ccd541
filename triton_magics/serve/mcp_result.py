"""The one compact value that every MCP tool returns, made from the value of a verb.

A program pays for each character that it reads. So a result has a headline, the text that a
terminal would show with its long details folded, the figures that matter and the next call. The
whole value is a resource, at `uri`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import Field

from triton_magics import rendering, verbs
from triton_magics.model import (
    Benchmark,
    Best,
    Compilation,
    Profile,
    RunResult,
    Status,
    Sweep,
    Validation,
    Value,
    Written,
    short,
)
from triton_magics.rendering import blocks
from triton_magics.rendering.phrase import Phrase
from triton_magics.rendering.views import FOLD_OVER
from triton_magics.verbs._base import Verb

MAX_TEXT = 4000
MAX_HEADLINE = 200
MAX_FIGURES = 12
_RULE = re.compile(r"\n[─ ]+(?=\n)")  # below a table's header
Figure = float | str | None


class ToolResult(Value):
    """Result of a tool.

    Attributes:
        ok: True: passed or done; False: a verdict against the version; None: not known yet.
        status: of the value (`passed`, `failed`, `compile_error`), or `queued`, `running`, `done`.
        headline: verdict and main number, one line.
        text: the rest, at most `MAX_TEXT` characters.
        figures: the main numbers by name; a name ends in its unit.
        next: the calls that are due, the first one first.
        uri: of the whole value, as JSON.
        job: id of the job, while it is queued or runs.
    """

    ok: bool | None = None
    status: str = "done"
    headline: str
    text: str = ""
    figures: dict[str, Figure] = Field(default_factory=dict)
    next: tuple[str, ...] = ()
    uri: str | None = None
    job: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the fields that have a value; `ok` and `status` always."""
        values = self.model_dump(mode="json", exclude_defaults=True)
        return {"ok": self.ok, "status": self.status, **values}

    def as_text(self) -> str:
        """Return the same for a client that shows text only."""
        lines = [self.headline, self.text]
        lines += [f"job: {self.job}"] if self.job else []
        lines += [f"next: {call}" for call in self.next if call not in self.text]
        return "\n".join(line for line in lines if line)


def result_of(
    verb: Verb,
    value: Any,
    phrase: Phrase,
    *,
    uri: str | None = None,
    next: tuple[str, ...] = (),  # noqa: A002
) -> ToolResult:
    """Return the compact result of a verb's value.

    Args:
        verb: whose value it is.
        value: its result.
        phrase: writes a next step as a call of a tool.
        uri: of the whole value.
        next: the calls that are due.
    """
    page = verb.page(value) if verb.page else value
    document = rendering.view(page, phrase)
    head, rest = _headline(document)
    shown = rest[:-1] if next and _is_next_line(rest) else rest
    text = rendering.to_text(shown, fold_over=_fold_over(verb, value), unfold="the uri has them")
    return ToolResult(
        ok=_is_ok(verb, value),
        status=str(getattr(value, "status", None) or "done"),
        headline=_one_line(head),
        text=cut(_RULE.sub("", text), uri),
        figures=figures_of(value),
        next=next,
        uri=uri,
    )


def _fold_over(verb: Verb, value: Any) -> int | None:
    """Return the lines over which details are only named: all of a verdict, none of a listing."""
    if getattr(value, "listings", ()):
        return None
    return 0 if verb.judges or verb.long_running else FOLD_OVER


def _is_next_line(document: blocks.Document) -> bool:
    last = document[-1] if document else None
    return isinstance(last, blocks.Line) and last.text.startswith("next: ")


def _headline(document: blocks.Document) -> tuple[str, blocks.Document]:
    """Return the first line and what follows it, without pictures drawn in characters."""
    shown = tuple(b for b in document if not (isinstance(b, blocks.Code) and b.is_drawing))
    first = shown[0] if shown else blocks.Line("")
    if isinstance(first, blocks.Markdown):
        head, _, rest = first.text.strip().partition("\n")
        return head.lstrip("# "), (blocks.Markdown(rest), *shown[1:])
    return rendering.to_text((first,), width=10_000), shown[1:]


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_HEADLINE else f"{flat[: MAX_HEADLINE - 1]}…"


def cut(text: str, uri: str | None) -> str:
    """Return at most `MAX_TEXT` characters, cut at a line's end, and where the rest is."""
    if len(text) <= MAX_TEXT:
        return text
    note = f"\n… cut at {MAX_TEXT} of {len(text)} characters; {uri or 'ask for less'} has the rest"
    head = text[: MAX_TEXT - len(note)]
    return (head.rpartition("\n")[0] or head) + note


def _is_ok(verb: Verb, value: Any) -> bool | None:
    status = getattr(value, "status", None)
    if status in (Status.NO_GPU, Status.UNAVAILABLE, Status.INTERRUPTED):
        return None
    return not (verb.judges and verbs.is_failure(value))


# ------------------------------------------------------------------------------------- figures


def figures_of(value: Any) -> dict[str, Figure]:
    """Return the main numbers of a value by name, `MAX_FIGURES` at most; empty if it has none."""
    make = _FIGURES.get(type(value))
    pairs = make(value) if make else iter(())
    numbers = [(name, _short(number)) for name, number in pairs if number is not None]
    return dict(numbers[:MAX_FIGURES])


def _short(number: Figure) -> Figure:
    """Return a number with four digits: more is noise to a reader."""
    return float(f"{number:.4g}") if isinstance(number, float) else number


def _validation(value: Validation) -> Iterator[tuple[str, Figure]]:
    yield "cases_passed", len(value.run_cases) - len(value.failed_cases)
    yield "cases_run", len(value.run_cases)
    yield "cases_not_run", len(value.not_run)
    yield "worst_error_share", value.worst_error_share
    yield "attempts_failed", value.attempts_failed
    yield "seed", value.seed


def _benchmark(value: Benchmark) -> Iterator[tuple[str, Figure]]:
    yield "clock", value.clock
    yield "fastest", value.fastest
    for provider in value.providers:
        yield f"{short(provider)}_final_us", value.final_us(provider)
    for version in value.versions:
        yield f"{short(version)}_speedup", value.speedup(version)


def _compilation(value: Compilation) -> Iterator[tuple[str, Figure]]:
    yield "target", value.target
    if value.kernels:
        worst = max(value.kernels, key=lambda kernel: kernel.registers or 0)
        yield "registers", worst.registers
        yield "spill_bytes", worst.spill_bytes
        yield "shared_bytes", worst.shared_bytes


def _written(value: Written) -> Iterator[tuple[str, Figure]]:
    yield "version", value.source.version
    yield "attempt", value.source.attempt
    if value.compilation:
        yield from _compilation(value.compilation)


def _run(value: RunResult) -> Iterator[tuple[str, Figure]]:
    yield "first_call_ms", value.first_call_ms
    yield "second_call_ms", value.second_call_ms


def _best(value: Best) -> Iterator[tuple[str, Figure]]:
    yield "version", value.source.version
    yield "final_us", value.final_us
    yield "speedup", value.speedup


def _sweep(value: Sweep) -> Iterator[tuple[str, Figure]]:
    yield "configurations", len(value.configurations)
    best = value.best
    if best and best.timing:
        yield "best_us", best.timing.mean_us
        yield "best", best.label
        yield "speedup", value.speedup(best)


def _profile(value: Profile) -> Iterator[tuple[str, Figure]]:
    yield "rung", value.rung
    if value.limit:
        yield "limit", value.limit.kind
        yield value.limit.field, value.limit.value
    if kernel := value.main_kernel:
        yield "duration_us", kernel.duration_us
        yield "memory_pct", kernel.memory_pct
        yield "sm_pct", kernel.sm_pct
    if value.roofline:
        yield "roofline_pct", value.roofline.share_pct


_FIGURES: dict[type, Callable[[Any], Iterator[tuple[str, Figure]]]] = {
    Validation: _validation,
    Benchmark: _benchmark,
    Compilation: _compilation,
    Written: _written,
    RunResult: _run,
    Best: _best,
    Sweep: _sweep,
    Profile: _profile,
}
