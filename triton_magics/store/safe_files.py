"""Read and write files below one folder: atomically, never through a symbolic link."""

from __future__ import annotations

import errno
import os
import stat
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from triton_magics.errors import WorkspaceError

STORE = ".triton_magics"
_TEMPORARY = (STORE, "tmp")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a FIFO in a file's place must not hang the notebook.
_PLAIN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_LEFTOVER_AGE_S = 3600.0


class Folder:
    """A folder; every path is relative to it and posix (`kernels/softmax/v1_baseline.py`)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, relative: str) -> bytes | None:
        """Return the file's bytes; None if there is no such file.

        Raises:
            WorkspaceError: a symbolic link, a folder or a special file.
        """
        try:
            with self._open_file(relative, os.O_RDONLY) as fd, os.fdopen(os.dup(fd), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def size(self, relative: str) -> int:
        """Return the file's size in bytes; 0 if there is no such file."""
        try:
            with self._open_file(relative, os.O_RDONLY) as fd:
                return os.fstat(fd).st_size
        except FileNotFoundError:
            return 0

    def names(self, relative: str) -> tuple[str, ...]:
        """Return the sorted names in a subfolder; none if there is no such folder."""
        try:
            with self._folder(relative.split("/")) as fd:
                return tuple(sorted(os.listdir(fd)))
        except FileNotFoundError:
            return ()

    def replace(self, relative: str, data: bytes) -> None:
        """Write a file atomically: after any crash it holds the old bytes or the new ones.

        Raises:
            OSError: it could not be written; the old file is unchanged.
            WorkspaceError: the path is a link, a folder or a special file.
        """
        *folders, name = relative.split("/")
        with (
            self._folder(folders, create=True) as parent,
            self._folder(_TEMPORARY, create=True) as temporary,
        ):
            _refuse_unless_plain(name, parent, relative)
            draft = f"{uuid.uuid4().hex}.tmp"
            try:
                _write_new(draft, temporary, data)
                os.replace(draft, name, src_dir_fd=temporary, dst_dir_fd=parent)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=temporary)
                raise
            os.fsync(parent)

    def append(self, relative: str, data: bytes) -> None:
        """Append in one write, all or nothing.

        Raises:
            OSError: the disk is full; the file is unchanged.
        """
        *folders, _ = relative.split("/")
        with self._folder(folders, create=True):
            pass
        with self._open_file(relative, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as fd:
            before = os.fstat(fd).st_size
            try:
                written = os.write(fd, data)
            except OSError:
                os.ftruncate(fd, before)
                raise
            if written < len(data):
                os.ftruncate(fd, before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), relative)

    def truncate(self, relative: str, size: int) -> None:
        """Cut a file to its first `size` bytes."""
        with self._open_file(relative, os.O_WRONLY) as fd:
            os.ftruncate(fd, size)

    def remove(self, relative: str) -> None:
        """Delete a file, if it exists."""
        *folders, name = relative.split("/")
        with suppress(FileNotFoundError), self._folder(folders) as parent:
            os.unlink(name, dir_fd=parent)
            os.fsync(parent)

    def remove_drafts(self) -> int:
        """Remove drafts that a killed process left over an hour ago; return their number."""
        limit = time.time() - _LEFTOVER_AGE_S
        removed = 0
        with self._folder(_TEMPORARY, create=True) as fd:
            for name in os.listdir(fd):
                status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if status.st_mtime < limit and not stat.S_ISDIR(status.st_mode):
                    os.unlink(name, dir_fd=fd)
                    removed += 1
        return removed

    @contextmanager
    def _folder(self, parts: Sequence[str], *, create: bool = False) -> Iterator[int]:
        """Open a subfolder one name at a time, so that no link is followed; give its descriptor."""
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for depth, part in enumerate(parts, start=1):
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=fd)
                with _refuse_links("/".join(parts[:depth])):
                    inner = os.open(part, _DIRECTORY, dir_fd=fd)
                os.close(fd)
                fd = inner
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _open_file(self, relative: str, flags: int) -> Iterator[int]:
        *folders, name = relative.split("/")
        with self._folder(folders) as parent:
            with _refuse_links(relative):
                fd = os.open(name, flags | _PLAIN, 0o666, dir_fd=parent)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise WorkspaceError(f"{relative} is not a regular file: move it away")
                yield fd
            finally:
                os.close(fd)


@contextmanager
def _refuse_links(relative: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
            raise WorkspaceError(
                f"{relative} is a symbolic link or a special file; nothing was read or written "
                "through it. Move it away"
            ) from error
        raise


def _refuse_unless_plain(name: str, folder: int, relative: str) -> None:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise WorkspaceError(f"{relative} is a symbolic link or a special file: move it away")


def _write_new(name: str, folder: int, data: bytes) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o666, dir_fd=folder)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)
