"""Publish the code that a worker has compiled, for later workers with the same version.

A worker in a sandbox can't write the shared cache. It leaves what it has compiled in its own
folder, and this process copies it after the job. The copy's folder is named by the hash of the
version's source, which this process has checked. So a version that plants a file there changes its
own compiled code, never that of another version.

    scratch/outbox/<software>/<entry>/<file>, copied to
    compiled/<software>/<hash of the source>/<entry>/<file>

An entry may be the signature of a kernel, whose launcher other versions need too (Triton up to
3.6). That is data: its types are checked, and it is kept for the warm-up of a later worker, which
builds the launcher (`languages/triton/child/launchers.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from triton_magics.config import OUTBOX, SHARED, SIGNATURE, SIGNATURES, cache_dir
from triton_magics.execution.job_requests import JobRequest

MAX_ENTRIES = 2_000  # of one job
MAX_BYTES = 2**28
MAX_SIGNATURES = 64  # kept for warm-ups, the newest
MAX_TYPES = 256  # of a signature
MAX_TEXT = 2**14
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,250}")
_TYPE = re.compile(r"\*{0,2}[A-Za-z][A-Za-z0-9_]{0,19}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def publish(scratch: Path, job: JobRequest) -> int:
    """Publish what a worker has compiled in a job; return the number of new entries.

    Only a job of one version publishes: of several it is not known which one an entry is for.

    Args:
        scratch: the worker's folder. Its content is not trusted: links and special files are left.
        job: its version is the only one that has run in this worker.
    """
    if len(job.refs) != 1:
        return 0
    budget = _Budget()
    published = 0
    with suppress(OSError), _folder(scratch / OUTBOX) as outbox:
        for software in _names(outbox):
            target = cache_dir() / "compiled" / software / job.refs[0].sha256[:24]
            target.mkdir(parents=True, exist_ok=True)
            with suppress(OSError), _folder(software, outbox) as entries:
                for entry in _names(entries):
                    if _publish_entry(entries, entry, target, budget):
                        published += 1
                        if entry.startswith(SIGNATURE):
                            _record_signature(target / entry, software)
    return published


class _Budget:
    """The entries and bytes that are left for a job."""

    def __init__(self) -> None:
        self._entries, self._bytes = MAX_ENTRIES, MAX_BYTES

    def take(self, *, entries: int = 0, n_bytes: int = 0) -> None:
        """Take from it.

        Raises:
            OSError: there is not enough left.
        """
        self._entries -= entries
        self._bytes -= n_bytes
        if self._entries < 0 or self._bytes < 0:
            raise OSError("a version has compiled too much")


def _publish_entry(entries: int, name: str, target: Path, budget: _Budget) -> bool:
    """Copy an entry whole, by a rename; return False if there is one already."""
    if (target / name).exists():
        return False
    half = target / f".{name}.{os.getpid()}"
    try:
        budget.take(entries=1)
        half.mkdir()
        with _folder(name, entries) as files:
            for file in _names(files):
                _copy(files, file, half / file, budget)
        half.rename(target / name)
    except OSError:  # another process was first, the disk is full, or it is no folder
        shutil.rmtree(half, ignore_errors=True)
        return False
    return True


def _copy(folder: int, name: str, to: Path, budget: _Budget) -> None:
    fd = os.open(name, _FILE, dir_fd=folder)
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{name} is not a file")
        budget.take(n_bytes=status.st_size)
        to.write_bytes(file.read(status.st_size))


def _record_signature(entry: Path, software: str) -> None:
    """Keep the signature of a published entry for warm-ups, if it is one."""
    folder = cache_dir() / SHARED / software / SIGNATURES
    with suppress(OSError, ValueError, RecursionError):  # no such file, no JSON
        (file,) = entry.iterdir()
        with file.open() as opened:
            signature = json.loads(opened.read(MAX_TEXT))
        text = json.dumps(signature)
        name = hashlib.sha256(text.encode()).hexdigest()[:24]
        if not isinstance(signature, list) or not 0 < _n_types(signature) <= MAX_TYPES:
            return
        folder.mkdir(parents=True, exist_ok=True)
        half = folder.parent / f".{name}.{os.getpid()}"
        half.write_text(text)
        half.replace(folder / name)
        recorded = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
        for old in recorded[:-MAX_SIGNATURES]:
            old.unlink()


def _n_types(kind: Any) -> int:
    """Return the number of types in a type of an argument, which may be a tuple.

    Raises:
        ValueError: it is none.
    """
    if isinstance(kind, list):
        return sum(map(_n_types, kind))
    if isinstance(kind, str) and _TYPE.fullmatch(kind):
        return 1
    raise ValueError("not a type")


@contextmanager
def _folder(path: str | Path, parent: int | None = None) -> Iterator[int]:
    fd = os.open(path, _FOLDER, dir_fd=parent)
    try:
        yield fd
    finally:
        os.close(fd)


def _names(folder: int) -> Iterator[str]:
    with os.scandir(folder) as items:
        for entry in items:
            if _NAME.fullmatch(entry.name):
                yield entry.name


__all__ = ["publish"]
