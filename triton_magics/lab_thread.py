"""The thread that opens the default Lab after `%load_ext`, where a workspace exists."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_importing = allocate_lock()  # held until the thread has imported the Lab


def start(open_lab: Callable[[], Any]) -> None:
    """Open the Lab in a thread and start its workers; a verb reports what goes wrong."""
    from threading import Thread

    _importing.acquire()
    Thread(target=_open_and_warm, args=(open_lab,), name="triton-warm", daemon=True).start()


def wait_for_imports() -> None:
    """Wait until the thread, if one runs, has imported the Lab.

    If one thread imports a package while another imports a module of it, both may fail.
    """
    with _importing:
        pass


def _open_and_warm(open_lab: Callable[[], Any]) -> None:
    from contextlib import suppress

    from triton_magics.errors import TritonMagicsError

    with suppress(TritonMagicsError):
        try:
            lab = open_lab()
        finally:
            _importing.release()
        lab.session.jobs.warm()
