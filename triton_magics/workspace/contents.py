"""What a workspace holds: ops, versions, attempts, events, results; nothing here writes."""

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
    State,
    Validation,
    Verb,
    VersionState,
    check_op_name,
    parse_version,
    short,
)
from triton_magics.workspace import reading, standing
from triton_magics.workspace.store import Store


class Contents:
    """What of a workspace is only read; every method checks its names first (BadName)."""

    _store: Store

    def pulse(self) -> int:
        """A number that changes when anyone else has changed the store; takes microseconds.

        Raises:
            WorkspaceError: the store can't be read, or its folder is gone.
        """
        with self._store.reading() as conn:
            return int(conn.execute("PRAGMA data_version").fetchone()[0])

    # ----------------------------------------------------------------------------------------- ops

    def open_ops(self) -> tuple[str, ...]:
        """Names of the ops that anything happened to, the oldest first."""
        with self._store.reading() as conn:
            return reading.open_ops(conn)

    def own_ops(self) -> dict[str, OpFacts]:
        """The user's own ops and what is known about them."""
        with self._store.reading() as conn:
            return reading.own_ops(conn)

    def state(self, op: str) -> State:
        """Where an op stands; an op without events is at its start."""
        with self._store.reading() as conn:
            return reading.state(conn, check_op_name(op))

    # ------------------------------------------------------------------------------------ versions

    def versions(self, op: str) -> tuple[VersionState, ...]:
        """The op's versions as they stand, by number."""
        with self._store.reading() as conn:
            return standing.versions(conn, check_op_name(op))

    def source(self, op: str, version: str, attempt: int | None = None) -> KernelSource:
        """An attempt at a version, the newest unless its number is given.

        Args:
            op: canonical name.
            version: `v2` or `v2_tiling`.
            attempt: its number.

        Raises:
            UnknownVersion: no such version or attempt; names those there are.
        """
        with self._store.reading() as conn:
            name = self._known(conn, op, version)
            found = next(reading.attempts(conn, op, name, attempt), None)
        if found is None:
            known = ", ".join(str(s.attempt) for s in self.attempts(op, name))
            raise UnknownVersion(f"{op} {name} has no attempt {attempt}; known: {known}")
        return found

    def attempts(self, op: str, version: str) -> tuple[KernelSource, ...]:
        """Every attempt at a version, the oldest first.

        Raises:
            UnknownVersion: no such version; names those there are.
        """
        with self._store.reading() as conn:
            name = self._known(conn, op, version)
            return tuple(reading.attempts(conn, op, name))[::-1]

    def history(self, op: str, version: str) -> tuple[reading.Attempt, ...]:
        """Every attempt at a version, the oldest first, with its verdict and compilation.

        Raises:
            UnknownVersion: no such version; names those there are.
        """
        with self._store.reading() as conn:
            name = self._known(conn, op, version)
            return tuple(reading.history(conn, op, name))[::-1]

    def _known(self, conn: sqlite3.Connection, op: str, version: str) -> str:
        """The whole name of a version: `v2` -> `v2_tiling`."""
        parse_version(version)
        names = reading.version_names(conn, check_op_name(op))
        for name in names:
            if version in (name, short(name)):
                return name
        if not names:
            raise UnknownVersion(f"{op} has no version yet. Next: %%triton_kernel {op} v1")
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
        """What happened to an op, the oldest first; each is read when it is asked for.

        Args:
            op: canonical name.
            verbs: only these.
            limit: only the newest ones, this many.
            newest_first: in the other order.
        """
        with self._store.reading() as conn:
            seqs = reading.seqs(conn, check_op_name(op), verbs=verbs, limit=limit)
        return (self._event(seq) for seq in (seqs[::-1] if newest_first else seqs))

    def _event(self, seq: int) -> Event:
        with self._store.reading() as conn:
            return reading.event_at(conn, seq)

    def count(self, op: str) -> int:
        """How many events an op has."""
        with self._store.reading() as conn:
            return reading.n_events(conn, check_op_name(op))

    # ------------------------------------------------------------------------------------- results

    def compilation(self, op: str, sha256: str) -> Compilation | None:
        """The newest compilation of a source."""
        with self._store.reading() as conn:
            return reading.compilation(conn, check_op_name(op), sha256)

    def timed(self, op: str, version: str) -> Benchmark | None:
        """The newest benchmark with a time of a version, whatever came of it."""
        with self._store.reading() as conn:
            return reading.timed(conn, check_op_name(op), version)

    def timed_together(self, op: str, *sources: KernelSource) -> Benchmark | None:
        """The newest benchmark of each source that timed all of them."""
        wanted = {(source.version, source.sha256) for source in sources}
        found = (self.timed(op, version) for version, _ in sorted(wanted, reverse=True))
        return next(
            (b for b in found if b and wanted <= set(zip(b.versions, b.sha256s, strict=True))), None
        )

    def latest_validation(self, op: str, version: str) -> Validation | None:
        """The verdict that stands on the version's newest attempt."""
        newest = self.source(op, version)
        with self._store.reading() as conn:
            return reading.verdict(conn, newest)

    def passed_validation(
        self, op: str, sha256: str, dtype: str, device_kind: DeviceKind
    ) -> Validation | None:
        """The newest validation of a source in a dtype on a kind of device, if it passed."""
        with self._store.reading() as conn:
            return reading.passed(conn, (check_op_name(op), sha256, dtype, device_kind))

    def latest_benchmark(self, op: str) -> Benchmark | None:
        """The newest benchmark that passed."""
        with self._store.reading() as conn:
            return reading.latest_benchmark(conn, check_op_name(op))

    def ranking(self, op: str) -> Benchmark | None:
        """The benchmark that decides which version is best: see `VersionState.best`."""
        with self._store.reading() as conn:
            seq, _ = standing.ranking(conn, check_op_name(op))
            found = reading.event_at(conn, seq).result if seq else None
        return found if isinstance(found, Benchmark) else None
