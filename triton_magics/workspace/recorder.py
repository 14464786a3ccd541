"""Appending an event: number, time, state before and after, tables, log; one transaction."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from triton_magics.model import Event, KernelSource, OpFacts, Result, State, Verb, VersionState
from triton_magics.workspace import reading, standing, tables

Transition = Callable[[str, State, Verb, tuple[VersionState, ...]], State]
"""(op, state before, verb, versions after the event) -> state after; pure and quick."""


class Details(TypedDict, total=False):
    """What an event may say beside its op and verb."""

    version: str | None
    attempt: int | None
    args: dict[str, Any]
    source: KernelSource | None
    reference: str | None
    facts: OpFacts | None
    result: Result | None


@dataclass(frozen=True)
class Recorder:
    """Appends events; knows where they lead and what time it is."""

    transition: Transition
    clock: Callable[[], str]

    def append(
        self, conn: sqlite3.Connection, op: str, verb: Verb, **details: Unpack[Details]
    ) -> Event:
        """The event, recorded; within the caller's transaction."""
        seq = tables.next_seq(conn)
        before = reading.state(conn, op)
        draft = Event(
            uuid=uuid.uuid4().hex,
            time=self.clock(),
            op=op,
            verb=verb,
            state_before=before,
            state_after=before,
            **details,
        )
        tables.apply(conn, seq, draft)
        after = self.transition(op, before, verb, standing.versions(conn, op))
        event = draft.model_copy(update={"state_after": after})
        tables.set_state(conn, op, after)
        tables.insert(conn, seq, event)
        conn.execute("INSERT INTO unlogged VALUES (?, ?)", (op, seq))
        return event
