"""The kernels/ folder and the attempts behind it: saved together, edits kept."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from triton_magics.errors import BadKernelSource, UserError
from triton_magics.model import KernelSource, OpFacts, parse_version, short, version_name
from triton_magics.workspace import modules, reading
from triton_magics.workspace.files import Folder
from triton_magics.workspace.recorder import Recorder
from triton_magics.workspace.source import inspect_source, sha256_of


@dataclass(frozen=True)
class Kernels:
    """Versions and references as files; every method runs within the caller's transaction.

    The file is renamed into place before the transaction ends. Should the process die between the
    two, the file is newer than the store, which is what an edit looks like: it is kept.
    """

    files: Folder
    recorder: Recorder

    # ------------------------------------------------------------------------------- versions

    def name_to_write(self, conn: sqlite3.Connection, op: str, version: str) -> str:
        """The whole name of a version that is to be written: `v2` -> `v2_tiling`.

        Raises:
            UserError: the number has another slug already.
        """
        number, slug = parse_version(version)
        name = self.name_of(conn, op, number)
        if name and slug and name != version:
            raise UserError(
                f"{op} v{number} is {name} here: write {short(name)} for its next attempt, or take "
                "another number"
            )
        return name or version_name(number, slug)

    def name_of(self, conn: sqlite3.Connection, op: str, number: int) -> str | None:
        """The whole name of a version, known to the store or lying in kernels/."""
        on_disk = (n for n in modules.modules_of(self.files, op) if parse_version(n)[0] == number)
        return reading.known_version(conn, op, number) or next(on_disk, None)

    def write(
        self, conn: sqlite3.Connection, draft: KernelSource, args: dict[str, Any]
    ) -> tuple[KernelSource, bool]:
        """Save a source as its version's next attempt.

        Returns:
            the attempt, and whether it is the newest one unchanged.
        """
        op, version = draft.op, draft.version
        newest = reading.newest(conn, op, version)
        same = newest is not None and _text(newest) == _text(draft)
        attempt = newest.attempt + (not same) if newest else 1
        source = draft.model_copy(update={"attempt": attempt})
        if not same or not reading.is_counted(conn, op, version):
            self.recorder.append(
                conn, op, "written", version=version, attempt=attempt, args=args, source=source
            )
        if not same:
            modules.write_module(self.files, source)
            modules.write_packages(self.files, op, reading.version_names(conn, op))
        return source, same

    def is_current(self, conn: sqlite3.Connection, op: str, version: str) -> bool:
        """Whether the version's file holds its newest attempt."""
        newest = reading.newest(conn, op, version)
        found = modules.read_module(self.files, op, version)
        if newest is None or found is None:
            return newest is None and found is None
        return (sha256_of(found[0]), found[1]) == (newest.sha256, newest.header_lines)

    def sync(self, conn: sqlite3.Connection, op: str, version: str) -> KernelSource | None:
        """Keep a person's edit of the file, put a lost file back; the new attempt, if any."""
        if self.is_current(conn, op, version):
            return None
        kept = self.absorb(conn, op, version)
        self.put_back(conn, op)
        return kept

    def absorb(self, conn: sqlite3.Connection, op: str, version: str) -> KernelSource | None:
        """Record what is in the file as the next attempt, unless it is the newest one's code."""
        newest = reading.newest(conn, op, version)
        found = modules.read_module(self.files, op, version)
        if found is None or (newest and sha256_of(found[0]) == newest.sha256):
            return None
        source = _edited(op, version, found, newest)
        self.recorder.append(
            conn,
            op,
            "written",
            version=version,
            attempt=source.attempt,
            args={"edited": True},
            source=source,
        )
        return source

    def adopt(self, conn: sqlite3.Connection, op: str) -> None:
        """Take in the modules that a lost store, or a clone, left in the op's folder.

        A folder may be called kernels/ and be none of ours: a version that no log knows is taken
        in only if it has our header.
        """
        for version in modules.modules_of(self.files, op):
            known = reading.known_version(conn, op, parse_version(version)[0])
            found = modules.read_module(self.files, op, version)
            if known == version or (known is None and found and found[1]):
                self.absorb(conn, op, version)

    def put_back(self, conn: sqlite3.Connection, op: str) -> None:
        """Write the files that the store knows and the folder lacks, and headers that were cut."""
        names = reading.version_names(conn, op)
        for source in filter(None, (reading.newest(conn, op, name) for name in names)):
            found = modules.read_module(self.files, op, source.version)
            if found is None or (found[0] == source.source and found[1] != source.header_lines):
                modules.write_module(self.files, source)
        if names:
            modules.write_packages(self.files, op, names)
        reference, path = reading.reference(conn, op), modules.reference_path(op)
        if reference is not None and self.files.read(path) is None:
            self.files.replace(path, reference.encode())

    # ----------------------------------------------------------------------------- references

    def define(self, conn: sqlite3.Connection, op: str, source: str, facts: OpFacts) -> None:
        """Save the reference of a user's own op; the one before it stays in the log."""
        self.absorb_reference(conn, op)
        path = modules.reference_path(op)
        if (reading.reference(conn, op), reading.facts(conn, op)) != (source, facts):
            self.recorder.append(conn, op, "defined", reference=source, facts=facts)
        if self.files.read(path) != source.encode():
            self.files.replace(path, source.encode())

    def reference_differs(self, conn: sqlite3.Connection, op: str) -> bool:
        """Whether an own op's reference.py is not what the store knows."""
        known = reading.reference(conn, op)
        found = self.files.read(modules.reference_path(op))
        return known is not None and (found is None or found != known.encode())

    def sync_reference(self, conn: sqlite3.Connection, op: str) -> None:
        """Keep a person's edit of an own op's reference, put a lost file back."""
        self.absorb_reference(conn, op)
        self.put_back(conn, op)

    def absorb_reference(self, conn: sqlite3.Connection, op: str) -> bool:
        """Record a person's edit of an own op's reference; whether there was one."""
        path, known = modules.reference_path(op), reading.reference(conn, op)
        found = self.files.read(path)
        if found is None or modules.decoded(found, path) == known:
            return False
        self.recorder.append(
            conn,
            op,
            "defined",
            args={"edited": True},
            reference=modules.decoded(found, path),
            facts=reading.facts(conn, op),
        )
        return True


def _text(source: KernelSource) -> tuple[str, str]:
    """What makes an attempt: the code and where it is entered."""
    return source.sha256, source.entry


def _edited(
    op: str, version: str, found: tuple[str, int], newest: KernelSource | None
) -> KernelSource:
    body, header_lines = found
    entry, signature = _entry_of(op, body, newest)
    return KernelSource(
        op=op,
        version=version,
        attempt=newest.attempt + 1 if newest else 1,
        source=body,
        sha256=sha256_of(body),
        entry=entry,
        signature=signature,
        path=modules.module_path(op, version),
        header_lines=header_lines,
    )


def _entry_of(op: str, body: str, newest: KernelSource | None) -> tuple[str, str]:
    """The entry of an edited module; a broken one has the entry that it had."""
    for entry in (newest.entry if newest else None, None):
        try:
            return inspect_source(op, (), body, entry)
        except BadKernelSource:
            continue
    return (newest.entry, newest.signature) if newest else (f"triton_{op}", "")
