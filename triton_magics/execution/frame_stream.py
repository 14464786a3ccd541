"""Frames over two descriptors: four bytes of length, then JSON. A length of 0 is a sign of life."""

from __future__ import annotations

import os
import select
import struct
import threading
import weakref

from triton_magics.execution.protocol import ProtocolError
from triton_magics.execution.remote_frames import RemoteFrame, read_frame

MAX_BYTES = 256 * 2**20  # a profile's report is the largest part of any frame
_HEADER = struct.Struct(">I")


class FrameStream:
    """Frames over two descriptors; each method is safe in any thread.

    Args:
        read_fd: descriptor to read from; the caller closes it, after `close`.
        write_fd: descriptor to write to; the same.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._sending, self._io = threading.Lock(), threading.Lock()
        self._is_closed = False
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        weakref.finalize(self, os.close, self._wake)
        os.set_blocking(write_fd, False)

    def close(self) -> None:
        """End what waits here, and touch the descriptors no more; a second time does nothing."""
        with self._io:  # another file may get the number of a closed descriptor
            self._is_closed = True
        os.eventfd_write(self._wake, 1)

    def send(self, frame: RemoteFrame) -> None:
        """Write a frame.

        Raises:
            OSError: the other side is gone, or the stream is closed.
        """
        self.send_body(frame.model_dump_json().encode())

    def send_body(self, body: bytes) -> None:
        """Write the JSON of a frame; empty: a sign of life.

        Raises:
            OSError: the other side is gone, or the stream is closed.
        """
        data = memoryview(_HEADER.pack(len(body)) + body)
        with self._sending:
            while data:
                n_bytes = self._write(data)
                data = data[n_bytes:]
                if not n_bytes:
                    self._wait(self._write_fd, select.POLLOUT)

    def receive(self) -> RemoteFrame | None:
        """Read a frame; None at the end of the stream.

        Raises:
            ProtocolError: bytes that are no frame.
        """
        length = 0
        while not length:
            header = self._read(_HEADER.size)
            if header is None:
                return None
            (length,) = _HEADER.unpack(header)
        if length > MAX_BYTES:
            raise ProtocolError(f"not a frame: {header!r}")
        body = self._read(length)
        return None if body is None else read_frame(body)

    def is_cut(self, wait_s: float) -> bool:
        """Return True where no one reads what is written here; False: only the writer has ended."""
        poll = select.poll()
        poll.register(self._write_fd, 0)  # POLLERR and POLLHUP are always reported
        return bool(poll.poll(wait_s * 1000))

    def _write(self, data: memoryview) -> int:
        with self._io:
            if self._is_closed:
                raise OSError("the stream is closed")
            try:
                return os.write(self._write_fd, data)
            except BlockingIOError:
                return 0

    def _read(self, n_bytes: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < n_bytes:
            self._wait(self._read_fd, select.POLLIN)
            with self._io:
                if self._is_closed:
                    return None
                try:
                    part = os.read(self._read_fd, n_bytes - len(parts))
                except BlockingIOError:
                    continue
                except OSError:
                    return None
            if not part:
                return None
            parts += part
        return bytes(parts)

    def _wait(self, fd: int, event: int) -> None:
        """Wait for an event of a descriptor, or for `close`."""
        poll = select.poll()
        poll.register(fd, event)
        poll.register(self._wake, select.POLLIN)
        poll.poll()


__all__ = ["FrameStream"]
