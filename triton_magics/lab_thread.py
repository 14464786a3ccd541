"""The threads that import the engine after `%load_ext`, and open the Lab of a workspace."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from threading import Thread
    from typing import Any

_importing = allocate_lock()  # held until the engine is imported and the Lab, if any, is open


def start(modules: Iterable[str], open_lab: Callable[[], Any] | None) -> None:
    """Import the modules in a thread; then open the Lab, if any, and start its workers.

    A verb reports what goes wrong.
    """
    from threading import Thread

    _importing.acquire()
    # Not a daemon: a process that ends within the import of an extension module may crash.
    _start(Thread(target=_import, args=(modules, open_lab), name="triton-import"))


def is_importing() -> bool:
    """Return True while a verb would wait."""
    return _importing.locked()


def wait_for_imports() -> None:
    """Wait until the threads, if they run, have imported the engine and opened the Lab.

    If one thread imports a package while another imports a module of it, both may fail.
    """
    with _importing:
        pass


def _start(thread: Thread) -> None:
    """Start the thread that releases the lock; where no thread can start, a verb imports."""
    try:
        thread.start()
    except RuntimeError:
        _importing.release()


def _import(modules: Iterable[str], open_lab: Callable[[], Any] | None) -> None:
    from contextlib import suppress
    from importlib import import_module
    from threading import Thread

    with suppress(BaseException):  # whatever a module raises; a verb meets it again
        for name in modules:
            import_module(name)
    if open_lab is None:
        _importing.release()
    else:
        _start(Thread(target=_open_and_warm, args=(open_lab,), name="triton-warm", daemon=True))


def _open_and_warm(open_lab: Callable[[], Any]) -> None:
    from contextlib import suppress

    from triton_magics.errors import TritonMagicsError

    with suppress(TritonMagicsError):
        try:
            lab = open_lab()
        finally:
            _importing.release()
        lab.session.jobs.warm()
