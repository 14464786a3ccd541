"""Read ops, versions, attempts, events and results of a workspace; nothing here writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator

from triton_magics.errors import UnknownVersion, did_you_mean
from triton_magics.model import (
    Benchmark,
    Compilation,
    DeviceKind,
    Event,
    KernelSource,
    OpFacts,
    Profile,
    State,
    Validation,
    Verb,
    VersionState,
    check_op_name,
    parse_version,
    short,
)
from triton_magics.next_step import NextStep
from triton_magics.store import queries, version_states
from triton_magics.store.connection import Store


class WorkspaceReader:
    """Read-only methods of a workspace; each checks its names first (BadName)."""

    _store: Store

    def change_counter(self) -> int:
        """Return a number that changes when another program changes the store; takes microseconds.

        Raises:
            WorkspaceError: the store can't be read, or its folder is missing.
        """
        with self._store.reading() as conn:
            return int(conn.execute("PRAGMA data_version").fetchone()[0])

    # ----------------------------------------------------------------------------------------- ops

    def open_ops(self) -> tuple[str, ...]:
        """Return the ops that have events, the oldest first."""
        with self._store.reading() as conn:
            return queries.open_ops(conn)

    def own_ops(self) -> dict[str, OpFacts]:
        """Return the user's own ops and their facts."""
        with self._store.reading() as conn:
            return queries.own_ops(conn)

    def state(self, op: str) -> State:
        """Return the state of an op; `start` for one without events."""
        with self._store.reading() as conn:
            return queries.state(conn, check_op_name(op))

    # ------------------------------------------------------------------------------------ versions

    def versions(self, op: str) -> tuple[VersionState, ...]:
        """Return the current state of each of the op's versions, by number."""
        with self._store.reading() as conn:
            return version_states.versions(conn, check_op_name(op))

    def source(self, op: str, version: str, attempt: int | None = None) -> KernelSource:
        """Return an attempt at a version, by default the newest.

        Args:
            op: canonical name.
            version: `v2` or `v2_tiling`.
            attempt: its number.

        Raises:
            UnknownVersion: no such version or attempt; the message lists the existing ones.
        """
        with self._store.reading() as conn:
            name = self._resolve_version(conn, op, version)
            source = next(queries.attempts(conn, op, name, attempt), None)
        if source is None:
            numbers = ", ".join(str(s.attempt) for s in self.attempts(op, name))
            raise UnknownVersion(f"{op} {name} has no attempt {attempt}; known: {numbers}")
        return source

    def attempts(self, op: str, version: str) -> tuple[KernelSource, ...]:
        """Return every attempt at a version, the oldest first.

        Raises:
            UnknownVersion: no such version; the message lists the existing ones.
        """
        with self._store.reading() as conn:
            name = self._resolve_version(conn, op, version)
            return tuple(queries.attempts(conn, op, name))[::-1]

    def history(self, op: str, version: str) -> tuple[queries.Attempt, ...]:
        """Return every attempt at a version with its verdict and compilation, the oldest first.

        Raises:
            UnknownVersion: no such version; the message lists the existing ones.
        """
        with self._store.reading() as conn:
            name = self._resolve_version(conn, op, version)
            return tuple(queries.history(conn, op, name))[::-1]

    def _resolve_version(self, conn: sqlite3.Connection, op: str, version: str) -> str:
        """Return the full name of a version: `v2` -> `v2_tiling`."""
        parse_version(version)
        names = queries.version_names(conn, check_op_name(op))
        for name in names:
            if version in (name, short(name)):
                return name
        if not names:
            first = NextStep("kernel", {"op": op, "version": "v1"})
            raise UnknownVersion(f"{op} has no version yet.", next_step=first)
        near = did_you_mean(version, names)
        raise UnknownVersion(f"{op} has no {version}.{near} Known: {', '.join(names)}")

    # -------------------------------------------------------------------------------------- events

    def events(
        self,
        op: str,
        *,
        verbs: Collection[Verb] | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[Event]:
        """Iterate over the events of an op, the oldest first; each is read on demand.

        Args:
            op: canonical name.
            verbs: only these.
            limit: number of events, of the newest ones; None for all.
            newest_first: reverse the order.
        """
        with self._store.reading() as conn:
            seqs = queries.seqs(conn, check_op_name(op), verbs=verbs, limit=limit)
        return (self._event(seq) for seq in (seqs[::-1] if newest_first else seqs))

    def _event(self, seq: int) -> Event:
        with self._store.reading() as conn:
            return queries.event_at(conn, seq)

    def count(self, op: str) -> int:
        """Return the number of an op's events."""
        with self._store.reading() as conn:
            return queries.n_events(conn, check_op_name(op))

    # ------------------------------------------------------------------------------------- results

    def compilation(self, op: str, sha256: str) -> Compilation | None:
        """Return the newest compilation of a source."""
        with self._store.reading() as conn:
            return queries.compilation(conn, check_op_name(op), sha256)

    def latest_timing(self, op: str, version: str) -> Benchmark | None:
        """Return the newest benchmark with a time of a version, a complete one if there is one."""
        with self._store.reading() as conn:
            return queries.latest_timing(conn, check_op_name(op), version)

    def latest_shared_benchmark(self, op: str, *sources: KernelSource) -> Benchmark | None:
        """Return a benchmark that timed all of these sources, the newest of one of them."""
        keys = {(source.version, source.sha256) for source in sources}
        newest = (self.latest_timing(op, version) for version, _ in sorted(keys, reverse=True))
        return next(
            (b for b in newest if b and keys <= set(zip(b.versions, b.sha256s, strict=True))), None
        )

    def latest_profile(self, op: str, sha256: str) -> Profile | None:
        """Return the newest profile of exactly this source."""
        verbs: tuple[Verb, ...] = ("profiled",)
        results = (e.result for e in self.events(op, verbs=verbs, newest_first=True))
        profiles = (result for result in results if isinstance(result, Profile))
        return next((p for p in profiles if p.sha256 == sha256), None)

    def latest_validation(self, op: str, version: str) -> Validation | None:
        """Return the verdict in force on the version's newest attempt."""
        newest = self.source(op, version)
        with self._store.reading() as conn:
            return queries.verdict(conn, newest)

    def passed_validation(
        self, op: str, sha256: str, dtype: str, device_kind: DeviceKind
    ) -> Validation | None:
        """Return the newest validation of a source in a dtype on a device kind, if it passed."""
        with self._store.reading() as conn:
            return queries.passed_validation(conn, (check_op_name(op), sha256, dtype, device_kind))

    def latest_benchmark(self, op: str) -> Benchmark | None:
        """Return the newest benchmark that passed."""
        with self._store.reading() as conn:
            return queries.latest_benchmark(conn, check_op_name(op))

    def ranking(self, op: str) -> Benchmark | None:
        """Return the benchmark that decides which version is best: see `VersionState.best`."""
        with self._store.reading() as conn:
            seq, _ = version_states.ranking(conn, check_op_name(op))
            result = queries.event_at(conn, seq).result if seq else None
        return result if isinstance(result, Benchmark) else None
