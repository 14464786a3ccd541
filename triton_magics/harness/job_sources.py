"""Sources of a job as files in this process's scratch folder.

A job carries text, so that it can come from another machine. Python, compilers and `inspect` read
source files. A file is named by the hash of its content, so that two texts never share one.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, lru_cache
from pathlib import Path

from triton_magics import languages
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.scratch import SCRATCH, SOURCES, owned_folder


def version_path(ref: VersionRef) -> Path:
    """Return the path of a version's module, whether or not it has been written."""
    return _path(ref.source, ref.version + languages.get(ref.language).suffix)


def write_version(ref: VersionRef) -> Path:
    """Return the file of a version's module; write it if it isn't there."""
    return write(ref.source, version_path(ref).name)


def op_path(ref: OpRef) -> Path:
    """Return the file of a user's own op; write it if it isn't there."""
    return write(ref.source or "", "reference.py")


@lru_cache(maxsize=64)
def digest(text: str) -> str:
    """Return the name of the folder for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def write(text: str, name: str) -> Path:
    """Write a text that only processes of this worker read, and return its path."""
    path, data = _path(text, name), text.encode()
    folder = path.parent
    try:
        if path.read_bytes() == data:
            return path
    except OSError:
        pass
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name}.{os.getpid()}"
    partial.write_bytes(data)
    partial.replace(path)  # another process of this worker never reads a partial file
    return path


@contextmanager
def temporary_scratch() -> Iterator[None]:
    """Use the scratch folder of this process, or one made for the block; forget it after that."""
    with ExitStack() as stack:
        if SCRATCH in os.environ:
            stack.callback(shutil.rmtree, os.environ[SCRATCH], ignore_errors=True)
        else:
            os.environ[SCRATCH] = str(stack.enter_context(owned_folder()))
        stack.callback(os.environ.pop, SCRATCH)
        yield


def _path(text: str, name: str) -> Path:
    return _scratch() / SOURCES / digest(text) / name


def _scratch() -> Path:
    folder = os.environ.get(SCRATCH)
    return Path(folder) if folder else _own_scratch()


@cache
def _own_scratch() -> Path:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(owned_folder())
