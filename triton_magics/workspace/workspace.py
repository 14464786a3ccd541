"""The workspace's public face: what it holds, and all that changes it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, Unpack

from triton_magics.errors import BadValue, WorkspaceError
from triton_magics.model import (
    Event,
    Finding,
    KernelSource,
    OpFacts,
    Verb,
    check_op_name,
    parse_version,
)
from triton_magics.workspace import modules, tables, upkeep
from triton_magics.workspace.contents import Contents
from triton_magics.workspace.files import Folder
from triton_magics.workspace.kernels import Kernels
from triton_magics.workspace.recorder import Details, Recorder, Transition
from triton_magics.workspace.source import sha256_of
from triton_magics.workspace.store import Store

_LOG_SUFFIXES = (".md", ".ipynb", ".html")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Workspace(Contents):
    """A folder of kernels with their history and results; safe for several processes and threads.

    A folder that can't be written is opened as a copy in memory: everything can be read, and what
    would write raises WorkspaceError. Every method checks its names before it touches the disk
    (BadName).

    Args:
        path: the folder; made if its parent is there.
        transition: where an event leads its op; called within the transaction that records it.
        read_only_ok: open a folder that can't be written.
        history: write logs/<op>_log.jsonl as things happen.
        clock: the time of an event, ISO 8601.

    Raises:
        BadValue: it is a file, or can't be made.
        WorkspaceError: it can't be read, or its store is newer than this program.
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
        self.path = _ready(path)
        self._files = Folder(self.path)
        self._recorder = Recorder(transition, clock)
        self._kernels = Kernels(self._files, self._recorder)
        self._store = Store(self.path, self._kernels, history=history)
        if self.read_only and not read_only_ok:
            self.close()
            raise WorkspaceError(f"{self.path} can't be written: choose another workspace")

    def close(self) -> None:
        """Close the store; a second time does nothing."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def read_only(self) -> bool:
        """Whether the folder can't be written."""
        return self._store.read_only

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know, in sentences: repairs, edits that were kept, logs that lag."""
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
        technique: str | None = None,
        replayed: bool = False,
    ) -> tuple[KernelSource, bool]:
        """Save a cell as its version's next attempt, in the store and in kernels/.

        An edit that a person made in the file is kept as an attempt first.

        Args:
            op: canonical name.
            version: `v2`, `v2_tiling`, or a name of one's own for a new one, `v5_fused`.
            body: the cell without its magic line; kept byte for byte.
            entry: name of the entry point.
            signature: how it is called, `(x, dim=-1)`.
            cell_offset: lines of the cell above the body.
            technique: what this version tries, for the log.
            replayed: it comes from a log; the event says so.

        Returns:
            the attempt, and whether it is the newest one unchanged.

        Raises:
            UserError: the version's number has another slug already.
            WorkspaceError: it could not be saved; what was there before is intact.
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
                source=body,
                sha256=sha256_of(body),
                entry=entry,
                signature=signature,
                path=modules.module_path(op, name),
                header_lines=modules.HEADER_LINES,
                cell_offset=cell_offset,
            )
            said = {"technique": technique, "replayed": replayed}
            return self._kernels.write(conn, draft, {k: v for k, v in said.items() if v})

    def sync(self, op: str, version: str) -> KernelSource | None:
        """Keep an edit made in the version's file, put a lost file back.

        Returns:
            the new attempt; None where the file holds the newest one.
        """
        check_op_name(op)
        number, _ = parse_version(version)
        with self._store.reading() as conn:
            name = self._kernels.name_of(conn, op, number)
            if name is None or self._kernels.is_current(conn, op, name):
                return None
        with self._store.writing(
            f"keeping the edit of {modules.module_path(op, name)}", op
        ) as conn:
            return self._note_edit(self._kernels.sync(conn, op, name))

    def restore(self, op: str, version: str, attempt: int) -> KernelSource:
        """Make an earlier attempt's code the version's newest attempt.

        Raises:
            UnknownVersion: no such version or attempt.
        """
        old = self.source(op, version, attempt)
        draft = old.model_copy(update={"header_lines": modules.HEADER_LINES})
        with self._store.writing(f"restoring {op} {version}", op) as conn:
            self._note_edit(self._kernels.sync(conn, op, old.version))
            return self._kernels.write(conn, draft, {"restored": attempt})[0]

    def _note_edit(self, kept: KernelSource | None) -> KernelSource | None:
        if kept is not None:
            self._store.note(f"{kept.path} was edited; the edit is attempt {kept.attempt}.")
        return kept

    # ------------------------------------------------------------------------------- own ops

    def define(self, op: str, source: str, facts: OpFacts) -> Path:
        """Save the reference of a user's own op; the verdicts on another reference are void.

        Returns:
            the absolute path of kernels/<op>/reference.py.
        """
        check_op_name(op)
        with self._store.writing(f"saving the reference of {op}", op) as conn:
            self._kernels.define(conn, op, source, facts)
        return self.path / modules.reference_path(op)

    def reference_path(self, op: str) -> Path:
        """Where the reference of an own op is, absolute; keeps an edit made there in the log."""
        path = self.path / modules.reference_path(check_op_name(op))
        with self._store.reading() as conn:
            if self.read_only or not self._kernels.reference_differs(conn, op):
                return path
        with self._store.writing(f"keeping the edit of {modules.reference_path(op)}", op) as conn:
            self._kernels.sync_reference(conn, op)
        return path

    # ------------------------------------------------------------------------------ recording

    def record(self, op: str, verb: Verb, **details: Unpack[Details]) -> Event:
        """Append an event; where it leads the op is decided in the same transaction.

        Args:
            op: canonical name.
            verb: what happened. `written` and `defined` are recorded by `write` and `define`.
            details: version, attempt, args, source, reference, facts, result.

        Returns:
            the event, with the state before and after it.

        Raises:
            ValueError: a verb that comes with a file.
        """
        if verb in ("written", "defined"):
            raise ValueError(f"{verb!r} comes with a file: use write() or define()")
        check_op_name(op)
        with self._store.writing(f"recording that {op} was {verb}", op) as conn:
            return self._recorder.append(conn, op, verb, **details)

    # ------------------------------------------------------------------------------- upkeep

    def save_log(self, op: str, suffix: str, data: str) -> str:
        """Write logs/<op>_log<suffix> whole; its path, relative to the workspace.

        Raises:
            ValueError: a suffix other than `.md`, `.ipynb` and `.html`.
        """
        if suffix not in _LOG_SUFFIXES:
            raise ValueError(f"{suffix!r} is no kind of log: {', '.join(_LOG_SUFFIXES)}")
        path = f"logs/{check_op_name(op)}_log{suffix}"
        with self._store.writing(f"writing {path}", op):
            self._files.replace(path, data.encode())
        return path

    def save_page(self, path: str, data: str, *, mark: str) -> str:
        """Write a file of ours outside logs/, whole; its path, relative to the workspace.

        Args:
            path: relative, posix; every name of it ours.
            data: its text.
            mark: what it begins with; a file that begins otherwise is a person's own.

        Raises:
            WorkspaceError: it is a person's own, or could not be written; it is as it was.
        """
        with self._store.upkeep(f"writing {path}"):
            old = self._files.read(path)
            if old and not old.startswith(mark.encode()):
                raise WorkspaceError(f"{path} is not triton_magics' own: move it away")
            self._files.replace(path, data.encode())
        return path

    def check(self) -> tuple[Finding, ...]:
        """Whether everything is whole: folder, store, tables, logs/, kernels/; changes nothing."""
        with self._store.reading("looking at the workspace") as conn:
            return tuple(upkeep.examine(conn, self._parts))

    def repair(self) -> tuple[Finding, ...]:
        """Mend what can be mended without losing anything, and look again.

        An edit of a version's file becomes its next attempt, a lost file is put back, the tables
        are made anew from the events, log files are brought up to date. A store that turns out to
        be damaged is moved aside and rebuilt from logs/ and kernels/.

        Raises:
            WorkspaceError: it can't be written.
        """
        self._store.reopen_if_damaged()
        with self._store.upkeep("repairing the workspace") as conn:
            for sentence in upkeep.repair(conn, self._parts):
                self._store.note(f"not repaired, {sentence}")
        return self.check()

    @property
    def _parts(self) -> upkeep.Parts:
        return upkeep.Parts(self._files, self._kernels, self.read_only, self._store.exports)

    def rebuild(self) -> None:
        """Make the tables of the current state anew from the events."""
        with self._store.upkeep("rebuilding the tables") as conn:
            tables.rebuild(conn)


def _ready(path: Path) -> Path:
    """The folder's absolute path, made if only it is missing.

    Raises:
        BadValue: it is a file, its parent is missing, or it can't be made.
    """
    path = path.expanduser()
    try:
        path.mkdir(exist_ok=True)
        return path.resolve(strict=True)
    except FileExistsError as error:
        raise BadValue(f"{path} is a file; the workspace is a folder") from error
    except FileNotFoundError as error:
        raise BadValue(f"no folder {path.parent}: make it, or choose another") from error
    except OSError as error:
        raise BadValue(f"{path} can't be made: {error.strerror}") from error
