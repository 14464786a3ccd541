"""Refresh a panel in a thread, so that no cell waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable

PERIOD_S = 0.3  # between two checks for changes by other processes
PAUSE_S = 0.05  # after a refresh: changes meanwhile are shown together


class Follower:
    """Refreshes after `wake`, and after the pulse has changed.

    One thread refreshes; a burst of events wakes it once.
    """

    def __init__(self, refresh: Callable[[], None], pulse: Callable[[], object]) -> None:
        """Follow changes from now on; `start` starts the thread.

        Args:
            refresh: shows the present state; raises nothing.
            pulse: returns a cheap value that differs after a change; raises nothing.
        """
        self._refresh, self._pulse, self._last = refresh, pulse, pulse()
        self._condition = threading.Condition()
        self._n_wakes = self._n_shown = 0
        self._stopped = False
        self._thread = threading.Thread(target=self._follow, name="triton-panel", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Ask for a refresh; return at once."""
        with self._condition:
            self._n_wakes += 1
            self._condition.notify_all()

    def stop(self) -> None:
        """End the thread after the refresh in progress."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def wait_until_shown(self, timeout_s: float = 10.0) -> bool:
        """Wait until the requested refreshes are done; return False after the time-out."""
        with self._condition:
            n_wakes = self._n_wakes
            return self._condition.wait_for(
                lambda: self._n_shown >= n_wakes or self._stopped, timeout_s
            )

    def _follow(self) -> None:
        while not self._stopped:
            with self._condition:
                self._condition.wait_for(self._is_due, PERIOD_S)
                n_wakes = self._n_wakes
            pulse = self._pulse()
            if n_wakes > self._n_shown or pulse != self._last:
                self._last = pulse
                self._refresh()
                with self._condition:
                    self._n_shown = n_wakes
                    self._condition.notify_all()
                    self._condition.wait_for(lambda: self._stopped, PAUSE_S)

    def _is_due(self) -> bool:
        return self._stopped or self._n_wakes > self._n_shown
