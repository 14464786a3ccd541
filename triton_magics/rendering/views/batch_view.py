"""View of a batch."""

from __future__ import annotations

from triton_magics.model import Batch, BatchEntry, Status
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Document, Items, Line, Table, code
from triton_magics.rendering.numbers import count_text
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.faults import message_view
from triton_magics.rendering.views.words import join_parts, next_line

MOST_ROWS = 40
_UNFINISHED = {Status.INTERRUPTED: "INTERRUPTED", Status.UNAVAILABLE: "NOT FINISHED"}


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
        _first_line(value),
        *message_view(value.message),
        *((table,) if shown else ()),
        *((Items((more,)),) if len(shown) < len(bad) else ()),
        Items((f"every result: {code(value.results)}",)),
        *_next(value, phrase),
    )


def _first_line(value: Batch) -> Line:
    done = sum(entry.has_run for entry in value.entries)
    n_unable = value.total - done
    rate = 60 * (done - value.resumed) / value.duration_s if value.duration_s else 0
    text = join_parts(
        (
            f"{sum(e.ok for e in value.entries)} of {count_text(value.total, 'line')} succeeded",
            f"{n_unable} did not run" if n_unable else None,
            f"{value.resumed} were done before" if value.resumed else None,
            f"{value.duration_s:.1f} s, {rate:.0f} a minute" if done > value.resumed else None,
        )
    )
    if value.status in _UNFINISHED:
        return Line(text, "warn", _UNFINISHED[value.status])
    if value.status is Status.PASSED:
        return Line(text, "good", "DONE")
    return Line(text, "bad", "FAILED")


def _row(entry: BatchEntry) -> tuple[str, ...]:
    reason = entry.error.splitlines()[0] if entry.error else entry.reason
    word = entry.status or ("refused" if entry.has_run else "not run")
    return (str(entry.line), entry.label, word, reason)


def _next(value: Batch, phrase: Phrase) -> Document:
    if value.status not in _UNFINISHED:
        return ()
    return (next_line(step_code(NextStep("batch", {"file": value.file}), phrase)),)


__all__ = ["batch_view"]
