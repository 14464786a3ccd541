"""The queue of calls: fair between their owners, one call at a time on each device."""

from __future__ import annotations

import atexit
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from triton_magics.session.managed_call import ManagedCall

CLOSE_S = 10.0
_LOG = logging.getLogger("triton_magics.jobs")
Device = str | None


class CallQueue:
    """Runs calls in threads of its own, one for each device; safe in any thread.

    The owner who has waited longest for a turn is next, with the oldest of his calls. So one owner
    with a hundred calls delays another by one call.

    Args:
        run: runs a call on a device (its id; None: the default one) in the thread of the caller.
        devices: returns the ids of the devices, None for the default one.
    """

    def __init__(
        self, run: Callable[[ManagedCall, Device], None], devices: Callable[[], Sequence[Device]]
    ) -> None:
        self._run = run
        self._devices = devices
        self._lock = threading.RLock()
        self._waiting: list[ManagedCall] = []
        self._running: dict[Device, ManagedCall] = {}
        self._threads: dict[Device, threading.Thread] = {}
        self._turns: dict[str, int] = {}  # owner -> number of the turn that he had last
        self._n_turns = 0

    @property
    def calls(self) -> tuple[ManagedCall, ...]:
        """Return the calls that run, and those that wait in the order of their turns."""
        with self._lock:
            return (*self._running.values(), *self._order())

    def add(self, call: ManagedCall) -> None:
        """Queue a call; it runs as soon as a device is free and its turn has come."""
        devices = self._devices()
        with self._lock:
            self._waiting.append(call)
            self._number()
            for device in devices:
                if device not in self._threads:
                    self._start(device)

    def close(self) -> None:
        """Cancel all calls and wait until those that run have ended."""
        atexit.unregister(self.close)
        with self._lock:
            calls, threads = self.calls, tuple(self._threads.values())
            self._waiting.clear()
        for call in calls:
            call.stop()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(CLOSE_S)

    def _start(self, device: Device) -> None:
        if not self._threads:
            atexit.register(self.close)  # before the executor ends under a job
        name = f"triton-background-{device}" if device else "triton-background"
        thread = threading.Thread(target=self._serve, args=(device,), name=name, daemon=True)
        self._threads[device] = thread
        thread.start()

    def _serve(self, device: Device) -> None:
        while True:
            with self._lock:
                self._running.pop(device, None)
                call = self._take()
                if call is None:
                    del self._threads[device]
                    return
                self._running[device] = call
                self._number()
            try:
                self._run(call, device)
            except Exception:  # noqa: BLE001 (of a listener; the next call must run)
                _LOG.exception("%s: a listener failed", call.title)

    def _take(self) -> ManagedCall | None:
        """Remove the next call, and those that were cancelled before they began."""
        order = self._order()
        self._waiting = order[1:]
        if not order:
            self._turns.clear()
            return None
        call = order[0]
        self._n_turns += 1
        self._turns[call.owner] = self._n_turns
        return call

    def _order(self) -> list[ManagedCall]:
        """Return the waiting calls in the order in which they will run."""
        calls: dict[str, deque[ManagedCall]] = {}
        for call in self._waiting:
            if call.has_ended:
                continue  # cancelled before it began
            calls.setdefault(call.owner, deque()).append(call)
        owners = deque(sorted(calls, key=lambda owner: self._turns.get(owner, 0)))
        order = []
        while owners:
            owner = owners.popleft()
            order.append(calls[owner].popleft())
            if calls[owner]:
                owners.append(owner)
        return order

    def _number(self) -> None:
        ahead = max(len(self._running), int(bool(self._threads)))
        for i, call in enumerate(self._order()):
            call.move_to(i + ahead)


__all__ = ["CallQueue"]
