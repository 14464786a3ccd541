"""Run many verbs at the same time; every device has work as long as there is any."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from triton_magics import verbs
from triton_magics.errors import BadValue, TritonMagicsError, UserError
from triton_magics.model import BatchEntry, Status
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb

MAX_AT_ONCE = 64
CANCEL_S = 0.2
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
    session: Session, items: Sequence[BatchItem], *, at_once: int | None = None
) -> Iterator[BatchResult]:
    """Run items, several at the same time; yield each as soon as it has ended.

    An item whose step fails, is refused or raises ends there, and hurts no other. When the caller
    stops, or is interrupted, the jobs that run are cancelled.

    Args:
        session: of the ops and versions.
        items: what to run.
        at_once: items at the same time; by default one more than the executor runs jobs, so that
            no device waits while results are stored.
    """
    at_once = at_once or session.jobs.executor.capacity + 1
    threads: set[int] = set()
    stop = threading.Event()
    pool = ThreadPoolExecutor(
        min(at_once, MAX_AT_ONCE), "triton-batch", lambda: threads.add(threading.get_ident())
    )
    pending = {pool.submit(_run_item, session, item, stop) for item in items}
    try:
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        while running := [future for future in pending if not future.done()]:
            for thread in threads:
                session.jobs.manager.cancel(thread=thread)
            wait(running, CANCEL_S)
        pool.shutdown()


def _run_item(session: Session, item: BatchItem, stop: threading.Event) -> BatchResult:
    start = time.monotonic()
    value, label, error = None, item.label, ""
    status: Status | None = None
    try:
        for verb, request in item.steps:
            label = _label(verb, request)
            if stop.is_set():
                raise KeyboardInterrupt
            value = verb.run(session, request)
            status = getattr(value, "status", None) if verb.judges else None
            if verb.judges and verbs.is_failure(value):
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except TritonMagicsError as caught:
        error = str(caught)
    except Exception as caught:  # noqa: BLE001 (one item hurts no other)
        error = f"{type(caught).__name__}: {caught}"
    entry = BatchEntry(
        line=item.line, key=item.key, label=label, status=status, error=error,
        duration_s=round(time.monotonic() - start, 3),
    )  # fmt: skip
    return BatchResult(entry, value)


def _label(verb: Verb, request: Request) -> str:
    names = (getattr(request, name, None) for name in ("op", "version"))
    return " ".join((verb.name, *filter(None, names)))


__all__ = ["BatchItem", "BatchResult", "Step", "read_items", "run_items"]
