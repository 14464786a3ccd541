"""The printed text of a worker, capped in the middle."""

from __future__ import annotations

import codecs
import time
from collections import deque
from collections.abc import Callable

HEAD_BYTES = 32 * 1024
TAIL_BYTES = 32 * 1024
LIVE_INTERVAL_S = 0.1


class Output:
    """The first and the last 32 KiB of a stream of bytes."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.dropped_bytes = 0

    def feed(self, data: bytes) -> None:
        """Add bytes: keep the head and the tail, count the rest."""
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        if rest := data[room:]:
            self._tail.append(rest)
            self._tail_bytes += len(rest)
            self._trim()

    def _trim(self) -> None:
        while (excess := self._tail_bytes - TAIL_BYTES) > 0:
            first = self._tail.popleft()
            if len(first) > excess:
                self._tail.appendleft(first[excess:])
            lost = min(len(first), excess)
            self._tail_bytes -= lost
            self.dropped_bytes += lost

    @property
    def head(self) -> bytes:
        """The first `HEAD_BYTES` bytes."""
        return bytes(self._head)

    @property
    def text(self) -> str:
        """Head, number of dropped bytes, tail; bytes that are no UTF-8 in hexadecimal."""
        tail = b"".join(self._tail)
        if not self.dropped_bytes:
            return _decode(bytes(self._head) + tail)
        gap = f"\n[... {self.dropped_bytes:,} bytes dropped ...]\n"
        return _decode(bytes(self._head)) + gap + _decode(tail)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


class LiveOutput:
    """Forwards an `Output` as it grows, at most ten times a second.

    The forwarded parts, joined, are the output's text. After the head, nothing is forwarded until
    the end.
    """

    def __init__(self, source: Output, listener: Callable[[str], None] | None) -> None:
        self._source = source
        self._listener = listener
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._n_head_bytes = 0
        self._forwarded = ""
        self._next = 0.0

    def forward(self) -> None:
        """Forward new text, if the last time was long enough ago."""
        head = self._source.head
        if self._listener is None or len(head) == self._n_head_bytes:
            return
        if (now := time.monotonic()) < self._next:
            return
        self._next = now + LIVE_INTERVAL_S
        text = self._decoder.decode(head[self._n_head_bytes :])
        self._n_head_bytes = len(head)
        self._send(text)

    def finish(self) -> None:
        """Forward the rest."""
        self._send(self._source.text[len(self._forwarded) :])

    def _send(self, text: str) -> None:
        self._forwarded += text
        if text and self._listener is not None:
            self._listener(text)


__all__ = ["LiveOutput", "Output"]
