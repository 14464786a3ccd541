"""Run many verbs at the same time; every device has work as long as there is any."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from triton_magics import verbs
from triton_magics.errors import (
    BadValue,
    TritonMagicsError,
    Unavailable,
    UserError,
    WorkerError,
)
from triton_magics.model import BatchEntry, Status
from triton_magics.session import Session
from triton_magics.session.concurrent_calls import IsStopped, run_concurrently
from triton_magics.verbs._base import Request, Verb

MAX_AT_ONCE = 64
Step = Mapping[str, Any]
"""`{"verb": "validate", "arguments": {"op": "softmax", "version": "v3"}}`"""


@dataclass(frozen=True)
class BatchItem:
    """Steps that run one after the other: each a verb with a request that is checked.

    Attributes:
        line: its number in the batch, from 1.
        key: hash of the steps; of equal items, also of how many were before.
    """

    line: int
    key: str
    steps: tuple[tuple[Verb, Request], ...]

    @property
    def label(self) -> str:
        """`bench softmax v2`: the last step."""
        return _label(*self.steps[-1])


@dataclass(frozen=True)
class BatchResult:
    """The outcome of an item.

    Attributes:
        entry: line, verdict, error.
        value: of the last step that ran; None where none did.
    """

    entry: BatchEntry
    value: Any = None


def read_items(lines: Iterable[Step | Sequence[Step]]) -> tuple[BatchItem, ...]:
    """Check every step of every item.

    Args:
        lines: for each item a step, or a sequence of steps.

    Raises:
        BadValue: names every line that is refused, and why. Nothing has run.
    """
    items, refused, counts = [], [], Counter[str]()
    for number, line in enumerate(lines, 1):
        steps = [line] if isinstance(line, Mapping) else line
        try:
            checked = _check_steps(steps)
        except (UserError, TypeError) as error:
            refused.append(f"line {number}: {error}")
            continue
        text = json.dumps(steps, sort_keys=True, default=str)
        key = hashlib.sha256(f"{counts[text]} {text}".encode()).hexdigest()[:16]
        counts[text] += 1
        items.append(BatchItem(number, key, checked))
    if refused:
        raise BadValue("\n".join(refused))
    return tuple(items)


def _check_steps(steps: object) -> tuple[tuple[Verb, Request], ...]:
    if not isinstance(steps, Sequence) or isinstance(steps, str) or not steps:
        raise BadValue(
            f'write {{"verb": ..., "arguments": {{...}}}}, or a list of these: {steps!r}'
        )
    return tuple(map(_check_step, steps))


def _check_step(step: object) -> tuple[Verb, Request]:
    if not isinstance(step, Mapping) or not {"verb"} <= set(step) <= {"verb", "arguments"}:
        raise BadValue(f'a step has "verb" and "arguments", not {str(step)[:200]}')
    verb = verbs.find(str(step["verb"]))
    if verb is None or verb.name == "batch":
        raise BadValue(
            f"no verb {step['verb']!r} for a batch; there are {', '.join(verbs.names())}"
        )
    arguments = step.get("arguments", {})
    if not isinstance(arguments, Mapping):
        raise BadValue(f"arguments must be an object, not {str(arguments)[:200]}")
    return verb, verb.request.checked(arguments)


def run_items(
    session: Session,
    items: Sequence[BatchItem],
    *,
    at_once: int | None = None,
    on_result: Callable[[BatchResult], None] = lambda result: None,
) -> Iterator[BatchResult]:
    """Run items, several at the same time; yield each as soon as it has ended.

    An item whose step fails, is refused or raises ends there, and hurts no other. When the caller
    stops, or is interrupted, the jobs that run are cancelled.

    Args:
        session: of the ops and versions.
        items: what to run.
        at_once: items at the same time; by default two more than the executor runs jobs, so that
            no device waits while results are stored, and further lanes open.
        on_result: called with each result before anything can interrupt it, in some thread.
    """

    def run_item(item: BatchItem, is_stopped: IsStopped) -> BatchResult:
        result = _run_item(session, item, is_stopped)
        on_result(result)
        return result

    calls = [partial(run_item, item) for item in items]
    at_once = min(at_once or session.jobs.manager.places + 2, MAX_AT_ONCE)
    for _, result in run_concurrently(session.jobs.manager, calls, at_once=at_once):
        yield result


def _run_item(session: Session, item: BatchItem, is_stopped: IsStopped) -> BatchResult:
    start = time.monotonic()
    value, label, error, has_run = None, item.label, "", True
    status: Status | None = None
    try:
        for verb, request in item.steps:
            label = _label(verb, request)
            if is_stopped():
                raise KeyboardInterrupt
            value = verb.run(session, request)
            status = getattr(value, "status", None) if verb.judges else None
            if verb.judges and verbs.is_failure(value):
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except TritonMagicsError as caught:
        error, has_run = str(caught), not isinstance(caught, WorkerError | Unavailable)
    except Exception as caught:  # noqa: BLE001 (one item hurts no other)
        error = f"{type(caught).__name__}: {caught}"
    entry = BatchEntry(
        line=item.line, key=item.key, label=label, status=status, error=error, has_run=has_run,
        reason="" if error or status in (None, Status.PASSED) else _reason(value),
        duration_s=round(time.monotonic() - start, 3),
    )  # fmt: skip
    return BatchResult(entry, value)


def _reason(value: Any) -> str:
    """Return why a verdict is not `passed`: its message, error or first failed case."""
    for text in (getattr(value, "message", None), getattr(value, "error", None)):
        if text:
            return str(getattr(text, "message", text)).splitlines()[0]
    failed = next(iter(getattr(value, "failed_cases", ())), None)
    if failed is None:
        return ""
    return f"{failed.case.label}: {failed.reason or failed.status.replace('_', ' ')}"


def _label(verb: Verb, request: Request) -> str:
    names = (getattr(request, name, None) for name in ("op", "version"))
    return " ".join((verb.name, *filter(None, names)))


__all__ = ["BatchItem", "BatchResult", "Step", "read_items", "run_items"]
