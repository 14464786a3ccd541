"""Keep the signal handlers of a version out of our own code.

A version's handler runs wherever the main thread is, and may raise there. Between two calls of a
version its handlers are set aside, so that no exception cuts a message or loses an answer.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_get, _set = signal.getsignal, signal.signal  # before a version can replace them
_SIGNALS = tuple(sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}))
_IGNORED = dict.fromkeys(_SIGNALS, signal.SIG_IGN) | {signal.SIGCHLD: signal.SIG_DFL}
_TRIES = 100  # a timer of a microsecond can interrupt each try
_aside: dict[int, Any] = {}


def set_aside() -> None:
    """Ignore every signal that has a handler in Python; never raises. Main thread only."""
    for _ in range(_TRIES):
        try:
            for number in _SIGNALS:
                handler = _get(number)
                if callable(handler):
                    _aside.setdefault(number, handler)
                    _set(number, _IGNORED[number])
        except BaseException:  # noqa: BLE001, S112 (a handler's; the next try goes on)
            continue
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
