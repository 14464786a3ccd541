"""Frames of a session that goes on over one connection after the other.

Both sides count the frames that they sent and received. After a lost connection each sends again
what the other has not received.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from queue import SimpleQueue

from triton_magics.execution.frame_stream import FrameStream
from triton_magics.execution.protocol import ProtocolError
from triton_magics.execution.remote_frames import Leave, RemoteFrame

KEEP_S = 600.0  # a session without a connection lives so long
RECONNECT_S = 300.0  # so long a client tries to connect again
MAX_KEPT_BYTES = 32 * 2**20  # frames that the other side could ask for again


class SavedFrames:
    """The newest frames that were sent, by number; the first one is 1."""

    def __init__(self) -> None:
        self._frames: deque[tuple[int, bytes]] = deque()
        self._n_bytes = 0
        self.newest = 0

    def add(self, body: bytes) -> None:
        """Keep the JSON of a frame."""
        self.newest += 1
        self._frames.append((self.newest, body))
        self._n_bytes += len(body)

    def forget(self, up_to: int) -> None:
        """Forget the oldest frames beyond the limit up to that number, never the newest."""
        while self._n_bytes > MAX_KEPT_BYTES and self._frames[0][0] <= min(up_to, self.newest - 1):
            self._n_bytes -= len(self._frames.popleft()[1])

    def after(self, number: int) -> list[tuple[int, bytes]]:
        """Return the frames after the one of that number.

        Raises:
            LookupError: there was no such frame, or not all after it are saved.
        """
        oldest = self._frames[0][0] if self._frames else 1
        if not oldest - 1 <= number <= self.newest:
            raise LookupError(f"frames {number + 1} to {self.newest}")
        return list(islice(self._frames, number - oldest + 1, None))


class ResumableStream:
    """Frames in both directions; without a connection they wait for the next one.

    Args:
        on_lost: called with a connection that has ended, in a thread of the stream. It may attach
            another one.

    Attributes:
        n_received: number of the newest frame of the other side.
    """

    def __init__(self, on_lost: Callable[[FrameStream], None]) -> None:
        self._on_lost = on_lost
        self._saved = SavedFrames()
        self._inbox: SimpleQueue[RemoteFrame | None] = SimpleQueue()
        self._changed = threading.Condition()
        self._connection: FrameStream | None = None
        self._n_written = 0  # to this connection, or the other side has it from an earlier one
        self.n_received = 0
        self.is_closed = False
        threading.Thread(target=self._write_all, name="remote-send", daemon=True).start()

    def send(self, frame: RemoteFrame) -> None:
        """Queue a frame.

        Raises:
            OSError: the session has ended.
        """
        body = frame.model_dump_json().encode()
        with self._changed:
            if self.is_closed:
                raise OSError("the session is closed")
            self._saved.add(body)
            self._changed.notify_all()

    def receive(self) -> RemoteFrame | None:
        """Wait for a frame of the other side; None at the end of the session."""
        return self._inbox.get()

    def insert(self, frame: RemoteFrame) -> None:
        """Let `receive` return a frame of this side."""
        self._inbox.put(frame)

    def detach(self) -> int:
        """Take no more frames of the present connection; return `n_received`."""
        with self._changed:
            connection, self._connection = self._connection, None
        if connection:
            connection.close()
        return self.n_received

    def can_resume(self, after: int) -> bool:
        """Return True where the frames after the one of that number are saved."""
        with self._changed:
            try:
                self._saved.after(after)
            except LookupError:
                return False
            return not self.is_closed

    def attach(self, connection: FrameStream, after: int) -> None:
        """Go on over a connection.

        Args:
            connection: the other side has answered there.
            after: number of the newest frame that it has; `can_resume` is true for it.
        """
        self.detach()
        with self._changed:
            self._connection, self._n_written = connection, after
            if self.is_closed:
                connection.close()
            self._changed.notify_all()
        reader = threading.Thread(target=self._read_all, args=(connection,), daemon=True)
        reader.start()

    def send_sign_of_life(self) -> None:
        """Write to the connection, so that a dead one is noticed."""
        if connection := self._connection:
            try:
                connection.send_body(b"")
            except OSError:
                self._drop(connection)

    def close(self, leave_s: float = 0.0) -> None:
        """End the session; a second time does nothing.

        Args:
            leave_s: seconds to wait until the frames until now are written.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._connection or self._is_written, leave_s)
            self.is_closed = True
            self._changed.notify_all()
        self._inbox.put(None)
        self.detach()

    @property
    def _is_written(self) -> bool:
        return self._n_written == self._saved.newest

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self.is_closed or (self._connection and not self._is_written)
                )
                if self.is_closed:
                    return
                connection = self._connection
                number, body = self._saved.after(self._n_written)[0]
            assert connection
            try:
                connection.send_body(body)
            except OSError:
                self._drop(connection)
                continue
            with self._changed:
                if connection is self._connection:
                    self._n_written = number
                    self._saved.forget(number)
                    self._changed.notify_all()

    def _read_all(self, connection: FrameStream) -> None:
        try:
            while (frame := connection.receive()) is not None:
                with self._changed:
                    if connection is not self._connection:
                        return
                    self.n_received += 1
                if isinstance(frame, Leave):
                    self.close()
                    return
                self._inbox.put(frame)
        except ProtocolError:
            self.close()  # a new connection would bring the same bytes
            return
        self._drop(connection)

    def _drop(self, connection: FrameStream) -> None:
        """Note that a connection has ended."""
        with self._changed:
            if connection is not self._connection:
                return
            self._connection = None
            self._changed.notify_all()
        if not self.is_closed:
            self._on_lost(connection)
        connection.close()


__all__ = ["KEEP_S", "RECONNECT_S", "ResumableStream", "SavedFrames"]
