"""How much of a program's context a conversation has filled, and when a summary is due."""

from __future__ import annotations

CHARS_PER_TOKEN = 4  # of English and Python, roughly; a client that knows better hands in tokens


class ContextMeter:
    """Counts what went in and out; says once that a summary is due when a share is reached.

    After `restart` (the client goes on from the summary alone) it may be due again.

    Args:
        limit_tokens: what the client's context holds.
        threshold: the share at which a summary is due.

    Raises:
        ValueError: no room, or no share of it.
    """

    def __init__(self, limit_tokens: int, *, threshold: float = 0.7) -> None:
        if limit_tokens < 1 or not 0 < threshold <= 1:
            raise ValueError(f"{limit_tokens} tokens, threshold {threshold}: no room to count in")
        self.limit_tokens = limit_tokens
        self.threshold = threshold
        self.used_tokens = 0
        self._told = False

    @property
    def share(self) -> float:
        """Of the context, how much is filled; may exceed 1."""
        return self.used_tokens / self.limit_tokens

    def add(self, text: str = "", *, tokens: int | None = None) -> bool:
        """Counts a message; whether a summary is due because of this one.

        Args:
            text: what was sent or received; four characters count as a token.
            tokens: their exact number, where it is known.

        Raises:
            ValueError: a negative number.
        """
        n = -(-len(text) // CHARS_PER_TOKEN) if tokens is None else tokens
        if n < 0:
            raise ValueError(f"{n} tokens can't be added")
        self.used_tokens += n
        due = self.share >= self.threshold and not self._told
        self._told = self._told or due
        return due

    def restart(self, text: str = "", *, tokens: int | None = None) -> None:
        """Counts from here on: the context now holds the summary alone."""
        self.used_tokens, self._told = 0, True
        self.add(text, tokens=tokens)
        self._told = self.share >= self.threshold
