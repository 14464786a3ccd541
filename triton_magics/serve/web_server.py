"""uvicorn with a limit for slow headers, and a SIGTERM that lets running jobs end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_S = 10.0  # time for the header of a request
MAX_CONNECTIONS = 256


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose next request does not begin in time.

    uvicorn limits the time between requests, but not that of a header that arrives slowly.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the time for the first request."""
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Stop the time once a request has begun, start it where its header is not whole."""
        super().data_received(data)
        if self._is_busy():
            self._stop_timer()
        else:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time."""
        self._stop_timer()
        super().connection_lost(exc)

    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEADER_S, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if not self._is_busy() and not self.transport.is_closing():
            self.transport.close()


class DrainingServer(uvicorn.Server):
    """A server that calls a function at the first SIGTERM or SIGINT, and ends with exit code 0.

    Args:
        config: of uvicorn.
        on_stop: called once, in the event loop's thread; it must return soon.
    """

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals while the server runs; uvicorn would raise them again at its end."""
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self.handle_exit) for each in signals}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; a second signal ends the server at once."""
        if self.should_exit:
            self.force_exit = True
        else:
            self._on_stop()
        self.should_exit = True


__all__ = ["DrainingServer", "PatientProtocol"]
