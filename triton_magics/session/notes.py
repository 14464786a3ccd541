"""Hints and repairs for the user: a log that readers follow, each at its own place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from triton_magics.next_step import NextStep


class Note(NamedTuple):
    """A sentence for the user, with the step that is due, where there is one."""

    text: str
    next_step: NextStep | None = None


class Notes:
    """Notes for the user, in the order in which they came up.

    Args:
        of_store: returns what the store has noted so far; only ever longer.
    """

    def __init__(self, of_store: Callable[[], tuple[str, ...]]) -> None:
        self._own: list[Note] = []
        self._of_store = of_store

    def add(self, text: str, *, next_step: NextStep | None = None) -> None:
        """Append a note."""
        self._own.append(Note(text, next_step))

    @property
    def all(self) -> tuple[Note, ...]:
        """Return every note so far, each once."""
        return _unique((*self._own, *map(Note, self._of_store())))

    def reader(self, *, from_start: bool = True) -> NoteReader:
        """Return a reader that begins at the first sentence, or else after the newest."""
        reader = NoteReader(self._own, self._of_store)
        if not from_start:
            reader.new()
        return reader


class NoteReader:
    """One reader's place in the notes."""

    def __init__(self, own: list[Note], of_store: Callable[[], tuple[str, ...]]) -> None:
        self._own, self._of_store = own, of_store
        self._position = (0, 0)

    def new(self) -> tuple[Note, ...]:
        """Return the notes since the last call, each once."""
        own, of_store = tuple(self._own), self._of_store()
        fresh = (*own[self._position[0] :], *map(Note, of_store[self._position[1] :]))
        self._position = (len(own), len(of_store))
        return _unique(fresh)


def _unique(notes: Sequence[Note]) -> tuple[Note, ...]:
    # A step holds a mapping, so a note can't be the key of a dict.
    return tuple(note for i, note in enumerate(notes) if note not in notes[:i])
