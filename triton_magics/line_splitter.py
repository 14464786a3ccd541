"""Lines of a stream of bytes; only a newline ends one.

`str.splitlines`, and so httpx's `iter_lines`, also ends a line at U+2028, U+0085 and others, which
JSON texts may have.
"""

from __future__ import annotations


class LineSplitter:
    """Collects bytes, and returns each line once it is whole."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, data: bytes) -> list[str]:
        """Add bytes of the stream; return the lines that end in them, without their newline."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            line = b"".join((*self._parts, end))
            self._parts.clear()
            lines.append(line.removesuffix(b"\r").decode(errors="replace"))
        self._parts += [rest] if rest else []
        return lines


__all__ = ["LineSplitter"]
