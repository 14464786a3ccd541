"""View of a batch."""

from __future__ import annotations

from triton_magics.model import Batch, BatchEntry, Status
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Document, Items, Line, Table, code
from triton_magics.rendering.numbers import count_text
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.words import join_parts, next_line

MOST_ROWS = 40


def batch_view(value: Batch, phrase: Phrase) -> Document:
    """Return how many lines succeeded, those that did not, and the file of all results."""
    bad = tuple(entry for entry in value.entries if not entry.ok)
    shown = bad[:MOST_ROWS]
    more = f"{len(bad) - len(shown)} more in {value.results}"
    table = Table(
        "lines that did not succeed", ("line", "step", "verdict", "reason"),
        tuple(map(_row, shown)), "rlll",
    )  # fmt: skip
    return (
        _first_line(value, len(bad)),
        *((table,) if shown else ()),
        *((Items((more,)),) if len(shown) < len(bad) else ()),
        Items((f"every result: {code(value.results)}",)),
        *_next(value, phrase),
    )


def _first_line(value: Batch, n_bad: int) -> Line:
    done = len(value.entries)
    rate = 60 * (done - value.resumed) / value.duration_s if value.duration_s else 0
    text = join_parts(
        (
            f"{done - n_bad} of {count_text(value.total, 'line')} succeeded",
            f"{value.total - done} did not run" if done < value.total else None,
            f"{value.resumed} were done before" if value.resumed else None,
            f"{value.duration_s:.1f} s, {rate:.0f} a minute" if done > value.resumed else None,
        )
    )
    if value.status is Status.INTERRUPTED:
        return Line(text, "warn", "INTERRUPTED")
    return Line(text, "bad" if n_bad else "good", "FAILED" if n_bad else "DONE")


def _row(entry: BatchEntry) -> tuple[str, ...]:
    reason = entry.error.splitlines()[0] if entry.error else ""
    return (str(entry.line), entry.label, entry.status or "refused", reason)


def _next(value: Batch, phrase: Phrase) -> Document:
    if value.status is not Status.INTERRUPTED:
        return ()
    return (next_line(step_code(NextStep("batch", {"file": value.file}), phrase)),)


__all__ = ["batch_view"]
