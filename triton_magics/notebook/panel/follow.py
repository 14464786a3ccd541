"""A thread that shows what has changed, so that no cell waits for a panel."""

from __future__ import annotations

import threading
from collections.abc import Callable

PERIOD_S = 0.3  # between two looks for what other processes do
REST_S = 0.05  # after showing something: what comes meanwhile is shown at once


class Follower:
    """Refreshes soon after it is woken, or after the pulse has changed.

    All is shown by one thread, which a burst of events wakes once.
    """

    def __init__(self, refresh: Callable[[], None], pulse: Callable[[], object]) -> None:
        """Starts nothing yet; what comes from now on is followed.

        Args:
            refresh: shows what there is; raises nothing.
            pulse: something cheap that differs when there is something new; raises nothing.
        """
        self._refresh, self._pulse, self._last = refresh, pulse, pulse()
        self._turn = threading.Condition()
        self._asked = self._done = 0
        self._stopped = False
        self._thread = threading.Thread(target=self._follow, name="triton-panel", daemon=True)

    def start(self) -> None:
        """Starts its thread."""
        self._thread.start()

    def wake(self) -> None:
        """There is something new; returns at once."""
        with self._turn:
            self._asked += 1
            self._turn.notify_all()

    def stop(self) -> None:
        """Ends the thread, once what it is showing is shown."""
        with self._turn:
            self._stopped = True
            self._turn.notify_all()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def settle(self, timeout_s: float = 10.0) -> bool:
        """Waits until all is shown that it was woken for; whether that was in time."""
        with self._turn:
            asked = self._asked
            return self._turn.wait_for(lambda: self._done >= asked or self._stopped, timeout_s)

    def _follow(self) -> None:
        while not self._stopped:
            with self._turn:
                self._turn.wait_for(self._wanted, PERIOD_S)
                asked = self._asked
            pulse = self._pulse()
            if asked > self._done or pulse != self._last:
                self._last = pulse
                self._refresh()
                with self._turn:
                    self._done = asked
                    self._turn.notify_all()
                    self._turn.wait_for(lambda: self._stopped, REST_S)

    def _wanted(self) -> bool:
        return self._stopped or self._asked > self._done
