"""Keep the signal handlers of a version out of our own code.

A version's handler runs wherever the main thread is, and may raise there. Between two calls of a
version its handlers are set aside, so that no exception cuts a message or loses an answer.
"""

from __future__ import annotations

import importlib
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Before a version can replace them. Those of `signal` make an enum of each number, which takes half
# a millisecond for all of them.
_c = importlib.import_module("_signal")
_get, _set, _mask = _c.getsignal, _c.signal, _c.pthread_sigmask
_SIGNALS = tuple(sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}))
_IGNORED = dict.fromkeys(_SIGNALS, _c.SIG_IGN) | {signal.SIGCHLD: _c.SIG_DFL}
_TRIES = 100  # a timer of a microsecond can interrupt each try
_aside: dict[int, Any] = {}


def set_aside() -> None:
    """Ignore every signal that has a handler in Python; never raises. Main thread only."""
    mask = None
    for _ in range(_TRIES):
        try:
            mask = _mask(signal.SIG_BLOCK, ()) if mask is None else mask
            _mask(signal.SIG_BLOCK, _SIGNALS)  # only handlers of signals before it still run
            for number in _SIGNALS:
                handler = _get(number)
                if callable(handler):
                    _aside.setdefault(number, handler)
                    _set(number, _IGNORED[number])
        except BaseException:  # noqa: BLE001, S112 (a handler's; the next try goes on)
            continue
        _mask(signal.SIG_SETMASK, mask)
        return


def put_back() -> None:
    """Install the handlers again; from then on any line may raise."""
    for number in tuple(_aside):
        _set(number, _aside.pop(number))


@contextmanager
def shielded() -> Iterator[None]:
    """Set the handlers aside for the block; what they raise comes after it."""
    set_aside()
    try:
        yield
    finally:
        put_back()


__all__ = ["put_back", "set_aside", "shielded"]
