"""The compile cache that workers share, and the forms of a version that are in it whole.

An entry is a folder: Triton's own, named and written by Triton, or one of another language, which
has one file (`add_entry`).
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
import triton

from triton_magics.config import OUTBOX, SHARED, SIGNATURES, cache_dir
from triton_magics.languages.kernel_language import CACHE

GROUP = "__grp__"  # how Triton's list of an entry's files begins
MARK = "form-"
FILE = "data"
OWN = "cached-"  # how the name of a language's own entry begins
STEPS = (".source", ".ttir", ".ttgir", ".llir")
OURS = "TRITON_MAGICS_"  # variables that Triton does not look at


def _software() -> str:
    return f"{torch.__version__}-{triton.__version__}".replace("+", "_")


def _version_folder() -> Path:
    return cache_dir() / "compiled" / _software()


def _shared_folder() -> Path:
    return cache_dir() / SHARED / _software()


def _source_folder(sha256: str) -> Path:
    return _version_folder() / sha256[:24]


def _shared_source_folder(sha256: str) -> Path:
    return _shared_folder() / sha256[:24]


def _launcher_folder() -> Path:
    """Return the folder of launchers: one per signature for all kernels, each a second of gcc."""
    return _shared_folder() / "launchers"


def n_launchers() -> int:
    """Return the number of launchers that workers share."""
    with suppress(OSError):  # none yet
        return len(os.listdir(_launcher_folder()))
    return 0


def signature_folder() -> Path:
    """Return the folder of the signatures whose launchers a warm-up builds."""
    return _shared_folder() / SIGNATURES


@contextmanager
def compile_cache(sources: Sequence[str], *, is_warm_up: bool = False) -> Iterator[None]:
    """Copy entries of earlier workers, for the same source, into this worker's Triton cache.

    New entries of this job are published afterwards, by rename, so that no worker ever sees half an
    entry. Triton names an entry by the hash of all that went into it. A worker in a sandbox leaves
    them in its outbox, from which the executor publishes them.

    Args:
        sources: sha256 of the versions' sources.
        is_warm_up: no version has run in this worker's processes. So what they compile is ours, and
            is shared from a sandbox too, in a folder that no version can write.
    """
    own = os.environ.get(CACHE)
    if not own:
        yield
        return
    private = Path(own)
    private.mkdir(parents=True, exist_ok=True)
    of_source = _shared_source_folder if is_warm_up else _source_folder
    for folder in (_launcher_folder(), *map(of_source, sources)):
        _seed(folder, private)
    before = {p.name for p in private.iterdir()}
    try:
        yield
    finally:
        with suppress(OSError):  # a full disk, no descriptor left: the next job compiles again
            fresh = [p for p in private.iterdir() if p.name not in before and _is_whole(p)]
            if is_warm_up or _can_publish():
                _publish_fresh(fresh, [*map(of_source, sources)])
            else:
                _publish(fresh, private / OUTBOX / _software())


def _publish_fresh(fresh: list[Path], folders: Sequence[Path]) -> None:
    launchers = [p for p in fresh if any(p.glob("*.so"))]
    _publish(launchers, _launcher_folder())
    if len(folders) == 1:
        _publish([p for p in fresh if p not in launchers], folders[0])


def _can_publish() -> bool:
    """Return False in a sandbox."""
    folder = _version_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _is_whole(entry: Path) -> bool:
    """Return True for a complete entry: its last file is the list of the others.

    A launcher is a library alone, and a mark (see `mark`) an empty folder.
    """
    if entry.name.startswith((MARK, OWN)):
        return True
    if not entry.is_dir():
        return False
    return any(name.startswith(GROUP) or name.endswith(".so") for name in os.listdir(entry))


def _seed(shared: Path, private: Path) -> None:
    """Copy the missing entries; an existing one may be mapped into this process."""
    with suppress(OSError):  # another user's, or none: unused folders are deleted after a month
        os.utime(shared)
    try:
        entries = list(shared.iterdir())
    except OSError:  # there is none, or this process may not read it
        return
    for entry in entries:
        if not entry.name.startswith(".") and not (private / entry.name).exists():
            _copy_entry(entry, private / entry.name)


def _copy_entry(entry: Path, own: Path) -> None:
    """Copy an entry; one that can't be copied whole is compiled again."""
    try:
        _copy(entry, own)
        _rewrite_paths(own)
    except OSError:  # it was just deleted, or the disk is full
        shutil.rmtree(own, ignore_errors=True)
    except (ValueError, KeyError, TypeError):  # its list was cut short when the machine went down
        shutil.rmtree(own, ignore_errors=True)
        shutil.rmtree(entry, ignore_errors=True)


def _rewrite_paths(entry: Path) -> None:
    """Write the present paths of an entry's files into its list.

    Triton writes absolute paths. They lead to the folder of the worker that compiled, which is
    deleted with that worker.
    """
    for group in entry.glob(f"{GROUP}*.json"):
        old_paths = json.loads(group.read_text())["child_paths"]
        names = [name for name in old_paths if (entry / name).exists()]
        group.unlink()  # other workers have linked this file
        group.write_text(json.dumps({"child_paths": {n: str(entry / n) for n in names}}))


def _copy(entry: Path, to: Path) -> None:
    """Copy the files of an entry that a launch needs, without intermediate forms of the code.

    What all versions share is copied: a version can write into its worker's file, and that must not
    change another's. Files of this source alone are linked: on slow disks a copy of an entry takes
    2 ms.
    """
    shared = _shared_folder()
    transfer = shutil.copyfile if shared in (*entry.parents, *to.parents) else _link
    to.mkdir()
    with os.scandir(entry) as files:
        for file in files:
            if not file.name.endswith(STEPS) and file.is_file():
                transfer(file.path, f"{to}/{file.name}")


def _link(file: str, to: str) -> None:
    """Link a file under another name; Triton replaces a file and never writes into one."""
    try:
        os.link(file, to)
    except OSError:  # on another disk, or one without links
        shutil.copyfile(file, to)


def _publish(fresh: list[Path], shared: Path) -> None:
    if not fresh:
        return
    shared.mkdir(parents=True, exist_ok=True)
    for entry in fresh:
        half = shared / f".{entry.name}.{os.getpid()}"
        _copy(entry, half)
        try:
            half.rename(shared / entry.name)
        except OSError:  # another child published the same entry first
            shutil.rmtree(half)


# --------------------------------------------------------------------- a language's own entries


def add_entry(name: str, data: bytes) -> None:
    """Add an entry of one file; another process finds all of it or nothing.

    Args:
        name: a hash of all that the data depends on.
        data: compiled code.
    """
    own = os.environ.get(CACHE)
    if not own:
        return
    with suppress(OSError):  # a full disk: it is compiled again some day
        Path(own).mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=".", dir=own))
        (half / FILE).write_bytes(data)
        try:
            half.rename(Path(own, OWN + name))
        except OSError:  # another process was first
            shutil.rmtree(half)


def claim(name: str) -> bool:
    """Return True to the first process of this worker that wants to make something of that name."""
    with suppress(OSError):  # another process was first, or there is no folder
        os.mkdir(f"{os.environ.get(CACHE) or os.devnull}/.{name}")
        return True
    return False


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Make other threads and processes of this worker wait that are about to add the same entry."""
    fd = -1
    with suppress(OSError):  # no folder, a full disk: the same is compiled twice
        Path(own := os.environ.get(CACHE) or os.devnull).mkdir(parents=True, exist_ok=True)
        fd = os.open(f"{own}/.{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def read_entry(name: str) -> bytes | None:
    """Return the data that `add_entry` got with this name, here or in an earlier worker."""
    try:
        return Path(os.environ.get(CACHE) or os.devnull, OWN + name, FILE).read_bytes()
    except OSError:
        return None


# ------------------------------------------------------------------------------------- marks


def settings() -> dict[str, str]:
    """Return the environment variables that Triton's own entries depend on."""
    knobs = {k: v for k, v in os.environ.items() if k.startswith("TRITON_") and k != CACHE}
    return {k: v for k, v in knobs.items() if not k.startswith(OURS)}


def mark(key: str) -> None:
    """Note in the cache, by an empty entry, that all kernels of a form are in it."""
    if folder := os.environ.get(CACHE):
        with suppress(OSError):  # a full disk: it is compiled again some day
            Path(folder, MARK + key).mkdir(parents=True, exist_ok=True)


def is_marked(key: str) -> bool:
    """Return True where `mark` was called with this key, here or by an earlier worker."""
    return Path(os.environ.get(CACHE) or os.devnull, MARK + key).is_dir()


@contextmanager
def moved(folder: str) -> Iterator[None]:
    """Use another folder as the cache."""
    before = os.environ.get(CACHE, "")
    os.environ[CACHE] = folder
    try:
        yield
    finally:
        os.environ[CACHE] = before
