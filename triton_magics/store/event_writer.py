"""Append an event and update the tables in one transaction."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from triton_magics.model import (
    Event,
    KernelSource,
    OpFacts,
    RecordedResult,
    State,
    Verb,
    VersionState,
)
from triton_magics.store import projections, queries, version_states

Transition = Callable[[str, State, Verb, tuple[VersionState, ...]], State]
"""(op, state before, verb, versions after the event) -> state after; a pure, fast function."""


class EventDetails(TypedDict, total=False):
    """Optional fields of an event."""

    version: str | None
    attempt: int | None
    args: dict[str, Any]
    source: KernelSource | None
    reference: str | None
    facts: OpFacts | None
    result: RecordedResult | None


@dataclass(frozen=True)
class EventWriter:
    """Writer of events.

    Attributes:
        transition: returns the op's state after an event.
        clock: returns the time, ISO 8601.
    """

    transition: Transition
    clock: Callable[[], str]

    def append(
        self, conn: sqlite3.Connection, op: str, verb: Verb, **details: Unpack[EventDetails]
    ) -> Event:
        """Record an event within the caller's transaction, and return it."""
        seq = projections.next_seq(conn)
        before = queries.state(conn, op)
        draft = Event(
            uuid=uuid.uuid4().hex,
            time=self.clock(),
            op=op,
            verb=verb,
            state_before=before,
            state_after=before,
            **details,
        )
        projections.apply(conn, seq, draft)
        after = self.transition(op, before, verb, version_states.versions(conn, op))
        event = draft.evolve(state_after=after)
        projections.set_state(conn, op, after)
        projections.insert(conn, seq, event)
        conn.execute("INSERT INTO unlogged VALUES (?, ?)", (op, seq))
        return event
