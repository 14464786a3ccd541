"""Public class of the store: every read and every change of a workspace."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, Unpack

from triton_magics import languages
from triton_magics.errors import BadValue, WorkspaceError
from triton_magics.languages.python_source import sha256_of
from triton_magics.model import (
    Event,
    Finding,
    KernelSource,
    OpFacts,
    Verb,
    check_op_name,
    parse_version,
)
from triton_magics.store import event_log, module_header, projections, repairs
from triton_magics.store.connection import Store
from triton_magics.store.event_writer import EventDetails, EventWriter, Transition
from triton_magics.store.kernel_files import KernelFiles
from triton_magics.store.reader import WorkspaceReader
from triton_magics.store.safe_files import Folder

_LOG_SUFFIXES = (".md", ".ipynb", ".html")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Workspace(WorkspaceReader):
    """A folder of kernels with their history and results; safe for several processes and threads.

    A folder that can't be written is opened as a copy in memory: everything can be read, and a
    method that writes raises WorkspaceError. Every method checks its names before it touches the
    disk (BadName).

    Args:
        path: the folder; created if its parent exists.
        transition: returns the op's state after an event; called within its transaction.
        read_only_ok: open a folder that can't be written.
        history: write each event to logs/<op>_log.jsonl too.
        clock: the time of an event, ISO 8601.

    Raises:
        BadValue: the path is a file, or can't be created.
        WorkspaceError: the store can't be read, or is newer than this program.
    """

    def __init__(
        self,
        path: Path,
        transition: Transition,
        *,
        read_only_ok: bool = True,
        history: bool = True,
        clock: Callable[[], str] = _now,
    ) -> None:
        self.path = _create_folder(path)
        self._files = Folder(self.path)
        self._events = EventWriter(transition, clock)
        self._kernels = KernelFiles(self._files, self._events)
        self._store = Store(self.path, self._kernels, history=history)
        if self.read_only and not read_only_ok:
            self.close()
            raise WorkspaceError(f"{self.path} can't be written: choose another workspace")

    def close(self) -> None:
        """Close the store; a second call does nothing."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def read_only(self) -> bool:
        """True if the folder can't be written."""
        return self._store.read_only

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user: repairs, recorded edits, logs that lag behind."""
        return self._store.notes

    # -------------------------------------------------------------------------------- writing

    def write(
        self,
        op: str,
        version: str,
        body: str,
        *,
        entry: str,
        signature: str,
        cell_offset: int,
        language: str = languages.DEFAULT,
        technique: str | None = None,
        replayed: bool = False,
    ) -> tuple[KernelSource, bool]:
        """Save a cell as its version's next attempt, in the store and in kernels/.

        An edit that a person made in the file is recorded as an attempt first.

        Args:
            op: canonical name.
            version: `v2`, `v2_tiling`, or any name for a new one, `v5_fused`.
            body: the cell without its magic line; saved byte for byte.
            entry: name of the entry point.
            signature: its parameters, `(x, dim=-1)`.
            cell_offset: number of lines of the cell above the body.
            language: name of the kernel language.
            technique: optimisation that this version tries, for the log.
            replayed: mark the event as one that comes from a log.

        Returns:
            the attempt; True if it equals the newest one.

        Raises:
            UserError: the version's number has another slug already.
            WorkspaceError: it could not be saved; earlier attempts are intact.
        """
        check_op_name(op)
        parse_version(version)
        with self._store.writing(f"saving {op} {version}", op) as conn:
            name = self._kernels.name_to_write(conn, op, version)
            self._note_edit(self._kernels.sync(conn, op, name))
            draft = KernelSource(
                op=op,
                version=name,
                attempt=1,
                language=language,
                source=body,
                sha256=sha256_of(body),
                entry=entry,
                signature=signature,
                path=module_header.version_path(op, name, languages.get(language).suffix),
                header_lines=module_header.HEADER_LINES,
                cell_offset=cell_offset,
            )
            args = {"technique": technique, "replayed": replayed}
            return self._kernels.write(conn, draft, {k: v for k, v in args.items() if v})

    def sync(self, op: str, version: str) -> KernelSource | None:
        """Record an edit of the version's file, or restore a lost file.

        Returns:
            the new attempt; None if the file holds the newest one.
        """
        check_op_name(op)
        number, _ = parse_version(version)
        with self._store.reading() as conn:
            name = self._kernels.name_of(conn, op, number)
            if name is None or self._kernels.is_current(conn, op, name):
                return None
        with self._store.writing(f"saving the edited file of {op} {name}", op) as conn:
            return self._note_edit(self._kernels.sync(conn, op, name))

    def restore(self, op: str, version: str, attempt: int) -> KernelSource:
        """Make an earlier attempt's code the version's newest attempt.

        Raises:
            UnknownVersion: no such version or attempt.
        """
        old = self.source(op, version, attempt)
        draft = old.evolve(header_lines=module_header.HEADER_LINES)
        with self._store.writing(f"restoring {op} {version}", op) as conn:
            self._note_edit(self._kernels.sync(conn, op, old.version))
            return self._kernels.write(conn, draft, {"restored": attempt})[0]

    def _note_edit(self, edit: KernelSource | None) -> KernelSource | None:
        if edit is not None:
            self._store.note(f"{edit.path} was edited; the edit is attempt {edit.attempt}.")
        return edit

    # ------------------------------------------------------------------------------- own ops

    def define(self, op: str, source: str, facts: OpFacts) -> Path:
        """Save the reference of a user's own op; a changed one voids every verdict.

        Returns:
            the absolute path of kernels/<op>/reference.py.
        """
        check_op_name(op)
        with self._store.writing(f"saving the reference of {op}", op) as conn:
            self._kernels.define(conn, op, source, facts)
        return self.path / module_header.reference_path(op)

    def lost_reference(self, op: str) -> str | None:
        """Return the relative path of the reference of an own op that the store does not have."""
        path = module_header.reference_path(op)
        if not event_log.is_op(op) or not self._files.size(path):
            return None
        return None if op in self.own_ops() else path

    def reference_path(self, op: str) -> Path:
        """Return the absolute path of an own op's reference; record an edit of the file."""
        path = self.path / module_header.reference_path(check_op_name(op))
        with self._store.reading() as conn:
            if self.read_only or not self._kernels.reference_differs(conn, op):
                return path
        with self._store.writing(
            f"recording the edit of {module_header.reference_path(op)}", op
        ) as conn:
            self._kernels.sync_reference(conn, op)
        return path

    # ------------------------------------------------------------------------------ recording

    def record(self, op: str, verb: Verb, **details: Unpack[EventDetails]) -> Event:
        """Append an event and update the op's state in one transaction.

        Args:
            op: canonical name.
            verb: kind of the event. `written` and `defined` are recorded by `write` and `define`.
            details: version, attempt, args, source, reference, facts, result.

        Returns:
            the event, with the state before and after it.

        Raises:
            ValueError: `written` or `defined`, which need a file.
        """
        if verb in ("written", "defined"):
            raise ValueError(f"a {verb!r} event needs a file: use write() or define()")
        check_op_name(op)
        with self._store.writing(f"recording the event {verb!r} of {op}", op) as conn:
            return self._events.append(conn, op, verb, **details)

    # ------------------------------------------------------------------------ files and repair

    def save_log(self, op: str, suffix: str, data: str) -> str:
        """Write logs/<op>_log<suffix>, and return its path, relative to the workspace.

        Raises:
            ValueError: a suffix other than `.md`, `.ipynb` and `.html`.
        """
        if suffix not in _LOG_SUFFIXES:
            raise ValueError(f"{suffix!r} is not a kind of log: {', '.join(_LOG_SUFFIXES)}")
        path = f"logs/{check_op_name(op)}_log{suffix}"
        with self._store.writing(f"writing {path}", op):
            self._files.replace(path, data.encode())
        return path

    def save_page(self, path: str, data: str, *, mark: str) -> str:
        """Write a file outside logs/ that triton_magics owns; return its relative path.

        Args:
            path: relative, posix; every part of it fixed by this program.
            data: its text.
            mark: its beginning; a file with another beginning is the user's own.

        Raises:
            WorkspaceError: the user's own file, or not writable; it is unchanged.
        """
        with self._store.transaction(f"writing {path}"):
            old = self._files.read(path)
            if old and not old.startswith(mark.encode()):
                raise WorkspaceError(f"{path} was not written by triton_magics: move it away")
            self._files.replace(path, data.encode())
        return path

    def save_choice(self, source: KernelSource, reason: str) -> None:
        """Write kernels/OP/chosen.py, so that `from kernels.OP import best` gives the version.

        Only for a version that is a Python module.

        Raises:
            WorkspaceError: the user's own file, or not writable; it is unchanged.
        """
        if source.path.endswith(".py"):
            text = module_header.chosen_module(source, reason)
            path = f"kernels/{source.op}/chosen.py"
            self.save_page(path, text, mark=module_header.CHOSEN_MARK)

    def save_profile(self, name: str, data: bytes) -> str:
        """Write profiles/NAME.ncu-rep, a report of Nsight Compute; return its relative path.

        Raises:
            WorkspaceError: it could not be written; an older report is unchanged.
        """
        path = f"profiles/{name}.ncu-rep"
        with self._store.transaction(f"writing {path}"):
            self._files.replace(path, data)
        return path

    def check(self) -> tuple[Finding, ...]:
        """Check folder, store, tables, logs/ and kernels/; change nothing."""
        with self._store.reading("checking the workspace") as conn:
            return tuple(repairs.examine(conn, self._parts))

    def repair(self) -> tuple[Finding, ...]:
        """Repair the workspace without losing data, and check it again.

        An edit of a version's file becomes its next attempt, a lost file is restored, the tables
        are rebuilt from the events, log files are brought up to date. A damaged store is moved
        aside and rebuilt from logs/ and kernels/.

        Raises:
            WorkspaceError: the workspace can't be written.
        """
        self._store.reopen_if_damaged()
        with self._store.transaction("repairing the workspace") as conn:
            for sentence in repairs.repair(conn, self._parts):
                self._store.note(f"not repaired, {sentence}")
        return self.check()

    @property
    def _parts(self) -> repairs.WorkspaceParts:
        return repairs.WorkspaceParts(
            self._files, self._kernels, self.read_only, self._store.exports
        )

    def rebuild(self) -> None:
        """Rebuild the tables of the current state from the events."""
        with self._store.transaction("rebuilding the tables") as conn:
            projections.rebuild(conn)


def _create_folder(path: Path) -> Path:
    """Return the folder's absolute path; create the folder if only it is missing.

    Raises:
        BadValue: a file, a folder without parent, or one that can't be created.
    """
    path = path.expanduser()
    try:
        path.mkdir(exist_ok=True)
        return path.resolve(strict=True)
    except FileExistsError as error:
        raise BadValue(f"{path} is a file; the workspace is a folder") from error
    except FileNotFoundError as error:
        raise BadValue(f"no folder {path.parent}: create it, or choose another") from error
    except OSError as error:
        raise BadValue(f"{path} can't be created: {error.strerror}") from error
