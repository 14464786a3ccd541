"""Run a file of steps, several at the same time, and resume after an interruption."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from triton_magics.errors import BadValue
from triton_magics.execution.protocol import Progress
from triton_magics.model import Batch, BatchEntry, Status
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb, option, place
from triton_magics.verbs._batch import MAX_AT_ONCE, BatchItem, BatchResult, read_items, run_items

MAX_BYTES = 256 * 2**20
MAX_UNABLE = 5  # lines in a row that could not run: the rest would not either


class BatchRequest(Request):
    """The file of steps, the file of results."""

    file: Annotated[
        str,
        place(
            'JSON lines; each a step, {"verb": "validate", "arguments": {"op": "softmax", '
            '"version": "v3"}}, or a list of steps that run in order',
        ),
    ]
    results: Annotated[
        str | None,
        option(
            "where the results go, a line each; lines that it has already are not run again "
            "(default: FILE with .results before its suffix)",
            metavar="FILE",
        ),
    ] = None
    at_once: Annotated[
        int | None,
        Field(ge=1, le=MAX_AT_ONCE),
        option("lines at the same time (default: two more than there are lanes)", metavar="N"),
    ] = None


def run(session: Session, request: BatchRequest) -> Batch:
    """Run every line of a file, several at the same time.

    Each result is written as soon as there is one. A further call, also after a kill, runs the
    lines that have none. A line that fails hurts no other. After five lines in a row that could not
    run, through no fault of their own, it stops.

    Raises:
        BadValue: the file can't be read, or some of its lines are refused; nothing has run.
        Interrupted: interrupted; the results so far are in their file.
    """
    start = time.monotonic()
    file = Path(request.file).expanduser()
    results = Path(request.results).expanduser() if request.results else _results_of(file)
    items = read_items(_read_lines(file))
    finished = _read_results(results)
    entries = {item.key: finished[item.key] for item in items if item.key in finished}
    resumed = len(entries)
    left = [item for item in items if item.key not in entries]
    n_unable, message = 0, ""
    try:
        for result in _run_and_store(session, left, results, request.at_once):
            entries[result.entry.key] = result.entry
            _report(session, result.entry, len(entries), len(items))
            n_unable = 0 if result.entry.has_run else n_unable + 1
            if n_unable == MAX_UNABLE and len(entries) < len(items):
                message = f"{n_unable} lines in a row could not run: {result.entry.error}"
                break
    except KeyboardInterrupt:  # the report says what is missing
        stored = _read_results(results)
        entries = {item.key: stored[item.key] for item in items if item.key in stored}
    lines = {item.key: item.line for item in items}
    done = sorted((e.evolve(line=lines[e.key]) for e in entries.values()), key=lambda e: e.line)
    return session.finish(
        Batch(
            file=str(file), results=str(results), entries=tuple(done), resumed=resumed,
            total=len(items), message=message, duration_s=round(time.monotonic() - start, 3),
        )
    )  # fmt: skip


def _results_of(file: Path) -> Path:
    return file.with_name(f"{file.stem}.results{file.suffix}")


def _read_lines(file: Path) -> list[Any]:
    """Return the values of the lines of a file, without empty lines.

    Raises:
        BadValue: it can't be read; it is too large; names each line that is no JSON.
    """
    try:
        if file.stat().st_size > MAX_BYTES:
            raise BadValue(f"{file}: more than {MAX_BYTES >> 20} MiB")
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadValue(f"{file} can't be read: {error}") from error
    values, wrong = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except ValueError as error:
                wrong.append(f"line {number} is no JSON: {error}")
    if wrong:
        raise BadValue("\n".join(wrong))
    return values


def _read_results(file: Path) -> dict[str, BatchEntry]:
    """Return the entries of an earlier run by their keys, without those that run again."""
    entries = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            entry = BatchEntry.model_validate(json.loads(line)["entry"])
        except (ValueError, KeyError, TypeError):
            continue  # cut off by a kill
        entries[entry.key] = entry
    return {
        key: e for key, e in entries.items() if e.has_run and e.status is not Status.INTERRUPTED
    }


def _run_and_store(
    session: Session, items: list[BatchItem], file: Path, at_once: int | None
) -> Iterator[BatchResult]:
    """Run items; yield each once its line is in the file of results.

    The thread that runs an item writes its line, so that an interrupt loses no result.

    Raises:
        BadValue: the file can't be written.
    """
    try:
        is_cut = file.exists() and not file.read_bytes().endswith(b"\n")
        stream = file.open("a", encoding="utf-8")
    except OSError as error:
        raise BadValue(f"the results can't be written to {file}: {error}") from error
    lock = threading.Lock()

    def store(result: BatchResult) -> None:
        if result.entry.status is Status.INTERRUPTED:
            return  # a further call runs it
        value = result.value.model_dump(mode="json") if result.value is not None else None
        line = {"entry": result.entry.model_dump(mode="json"), "value": value}
        with lock:
            try:
                stream.write(json.dumps(line) + "\n")
                stream.flush()
            except OSError as error:
                raise BadValue(f"a result can't be written to {file}: {error}") from error

    with stream:
        stream.write("\n" if is_cut else "")
        yield from run_items(session, items, at_once=at_once, on_result=store)


def _report(session: Session, entry: BatchEntry, done: int, total: int) -> None:
    verdict = entry.error.splitlines()[0] if entry.error else entry.status or "done"
    stage = f"{entry.label}: {verdict}"
    session.jobs.manager.report(Progress(nonce="", stage=stage, done=done, total=total))


VERB = Verb(
    name="batch",
    request=BatchRequest,
    run=run,
    help="Runs a file of steps, several at the same time; a further call runs what is left.",
    example="%triton_batch versions.jsonl",
    rank=185,
    reads_files=True,
    judges=True,
    long_running=True,
)
