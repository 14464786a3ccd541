"""Save attempts in the store and as files in kernels/, and record edits of these files."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from triton_magics import languages
from triton_magics.errors import BadKernelSource, UserError
from triton_magics.languages.python_source import sha256_of
from triton_magics.model import KernelSource, OpFacts, parse_version, short, version_name
from triton_magics.store import module_header, queries
from triton_magics.store.event_writer import EventWriter
from triton_magics.store.module_header import Module, read_module, version_path
from triton_magics.store.safe_files import Folder


@dataclass(frozen=True)
class KernelFiles:
    """Versions and references as files; every method runs within the caller's transaction.

    The file is renamed into place before the transaction ends. If the process dies between the two,
    the file is newer than the store. That looks like a person's edit and is recorded as one.
    """

    files: Folder
    events: EventWriter

    # ------------------------------------------------------------------------------- versions

    def name_to_write(self, conn: sqlite3.Connection, op: str, version: str) -> str:
        """Return the full name of a version to write: `v2` -> `v2_tiling`.

        Raises:
            UserError: the number has another slug already.
        """
        number, slug = parse_version(version)
        name = self.name_of(conn, op, number)
        if name and slug and name != version:
            raise UserError(
                f"{op} v{number} is called {name}: write {short(name)} for its next attempt, or "
                "use another number"
            )
        return name or version_name(number, slug)

    def name_of(self, conn: sqlite3.Connection, op: str, number: int) -> str | None:
        """Return the full name of a version in the store or in kernels/."""
        on_disk = (
            n for n in module_header.modules_of(self.files, op) if parse_version(n)[0] == number
        )
        return queries.known_version(conn, op, number) or next(on_disk, None)

    def write(
        self, conn: sqlite3.Connection, draft: KernelSource, args: dict[str, Any]
    ) -> tuple[KernelSource, bool]:
        """Save a source as its version's next attempt.

        Returns:
            the attempt; True if it equals the newest one.
        """
        op, version = draft.op, draft.version
        newest = queries.newest(conn, op, version)
        is_same = newest is not None and _identity(newest) == _identity(draft)
        attempt = newest.attempt + (not is_same) if newest else 1
        source = draft.evolve(attempt=attempt)
        if not is_same or not queries.is_counted(conn, op, version):
            self.events.append(
                conn, op, "written", version=version, attempt=attempt, args=args, source=source
            )
        if not is_same:
            module_header.write_module(self.files, source)
            if newest and newest.path != source.path:  # another language, another suffix
                self.files.remove(newest.path)
            module_header.write_packages(self.files, op)
        return source, is_same

    def is_current(self, conn: sqlite3.Connection, op: str, version: str) -> bool:
        """Return True where the version's file holds its newest attempt.

        The file of a language that is not installed can't be read and counts as current.
        """
        newest = queries.newest(conn, op, version)
        if newest and not is_installed(newest):
            return True
        module = self._read(op, version, newest)
        if newest is None or module is None:
            return newest is None and module is None
        return (sha256_of(module.body), module.header_lines) == (newest.sha256, newest.header_lines)

    def _read(self, op: str, version: str, newest: KernelSource | None) -> Module | None:
        return read_module(self.files, op, version, newest.language if newest else None)

    def sync(self, conn: sqlite3.Connection, op: str, version: str) -> KernelSource | None:
        """Record an edit of the file or restore a lost one; return the new attempt, if any."""
        if self.is_current(conn, op, version):
            return None
        edit = self.record_edit(conn, op, version)
        self.restore_files(conn, op)
        return edit

    def record_edit(self, conn: sqlite3.Connection, op: str, version: str) -> KernelSource | None:
        """Record the file's code as the next attempt, unless the newest attempt has it."""
        newest = queries.newest(conn, op, version)
        if newest and not is_installed(newest):
            return None
        module = self._read(op, version, newest)
        if module is None or (newest and sha256_of(module.body) == newest.sha256):
            return None
        source = _create_attempt(op, version, module, newest)
        self.events.append(
            conn,
            op,
            "written",
            version=version,
            attempt=source.attempt,
            args={"edited": True},
            source=source,
        )
        return source

    def import_files(self, conn: sqlite3.Connection, op: str) -> int:
        """Import the modules that a lost store, or a clone, left; return their number.

        A folder kernels/ may belong to another program: a version that is in no log is imported
        only if its file has our header.
        """
        n_imported = 0
        for version in module_header.modules_of(self.files, op):
            recorded = queries.known_version(conn, op, parse_version(version)[0])
            module = read_module(self.files, op, version)
            if recorded == version or (recorded is None and module and module.header_lines):
                n_imported += self.record_edit(conn, op, version) is not None
        return n_imported

    def restore_files(self, conn: sqlite3.Connection, op: str) -> None:
        """Write the recorded files that the folder lacks, and headers that were deleted."""
        names = queries.version_names(conn, op)
        for source in filter(None, (queries.newest(conn, op, name) for name in names)):
            if is_installed(source):
                self._restore_file(source)
        if names:
            module_header.write_packages(self.files, op)
        reference, path = queries.reference(conn, op), module_header.reference_path(op)
        if reference is not None and self.files.read(path) is None:
            self.files.replace(path, reference.encode())

    def _restore_file(self, source: KernelSource) -> None:
        module = self._read(source.op, source.version, source)
        lacks_header = module is not None and module.header_lines != source.header_lines
        if module is None or (lacks_header and module.body == source.source):
            module_header.write_module(self.files, source)

    # ----------------------------------------------------------------------------- references

    def define(self, conn: sqlite3.Connection, op: str, source: str, facts: OpFacts) -> None:
        """Save the reference of a user's own op; the previous one stays in the log."""
        self.record_reference_edit(conn, op)
        path = module_header.reference_path(op)
        if (queries.reference(conn, op), queries.facts(conn, op)) != (source, facts):
            self.events.append(conn, op, "defined", reference=source, facts=facts)
        if self.files.read(path) != source.encode():
            self.files.replace(path, source.encode())

    def reference_differs(self, conn: sqlite3.Connection, op: str) -> bool:
        """Return True if an own op's reference.py is missing or differs from the store."""
        recorded = queries.reference(conn, op)
        data = self.files.read(module_header.reference_path(op))
        return recorded is not None and (data is None or data != recorded.encode())

    def sync_reference(self, conn: sqlite3.Connection, op: str) -> None:
        """Record an edit of an own op's reference, or restore the lost file."""
        self.record_reference_edit(conn, op)
        self.restore_files(conn, op)

    def record_reference_edit(self, conn: sqlite3.Connection, op: str) -> bool:
        """Record an edit of an own op's reference; return True if there was one."""
        path, recorded = module_header.reference_path(op), queries.reference(conn, op)
        data = self.files.read(path)
        if data is None or module_header.decode_source(data, path) == recorded:
            return False
        self.events.append(
            conn,
            op,
            "defined",
            args={"edited": True},
            reference=module_header.decode_source(data, path),
            facts=queries.facts(conn, op),
        )
        return True


def _identity(source: KernelSource) -> tuple[str, str, str]:
    """Return the fields in which two attempts differ: code, entry and language."""
    return source.sha256, source.entry, source.language


def _create_attempt(
    op: str, version: str, module: Module, newest: KernelSource | None
) -> KernelSource:
    entry, signature = _entry_of(op, module, newest)
    return KernelSource(
        op=op,
        version=version,
        attempt=newest.attempt + 1 if newest else 1,
        language=module.language,
        source=module.body,
        sha256=sha256_of(module.body),
        entry=entry,
        signature=signature,
        path=version_path(op, version, languages.get(module.language).suffix),
        header_lines=module.header_lines,
    )


def is_installed(source: KernelSource) -> bool:
    """Return True if the version's language is installed."""
    return source.language in {language.name for language in languages.available()}


def _entry_of(op: str, module: Module, newest: KernelSource | None) -> tuple[str, str]:
    """Return the entry of an edited module; of a broken one, the previous entry."""
    for entry in (newest.entry if newest else None, None):
        try:
            return languages.get(module.language).parse(module.body, op=op, entry=entry)
        except BadKernelSource:
            continue
    return (newest.entry, newest.signature) if newest else (f"triton_{op}", "")
