"""Read exceptions of code that is not ours: each text is bounded, and nothing here raises.

An exception is an object of a class that a version may have written. Its `__str__` may raise or end
the process, its message may have megabytes, and its causes may form a circle.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from types import TracebackType
from typing import Any, TypeVar

MESSAGE_CHARS = 3_000
NAME_CHARS = 200
NOTE_CHARS = 500
MAX_FRAMES = 60  # of one traceback, the innermost
MAX_LINKS = 50  # of a chain of causes
MAX_PARTS = 10  # notes, and exceptions of a group
T = TypeVar("T")
_CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
_MEANWHILE = "\nDuring handling of the above exception, another exception occurred:\n\n"


def shorten(text: str, limit: int = MESSAGE_CHARS) -> str:
    """Return a text of about that many characters: its beginning, and a third of that its end."""
    if str.__len__(text) <= limit:
        return str.__getitem__(text, slice(None))
    end = limit // 4
    left_out = str.__len__(text) - limit
    head = str.__getitem__(text, slice(limit - end))
    return f"{head}\n… {left_out} characters left out …\n{str.__getitem__(text, slice(-end, None))}"


def sendable(text: str) -> str:
    """Return the text with lone surrogates escaped, which JSON can't contain."""
    return text.encode("utf-8", "backslashreplace").decode()


def is_a(error: BaseException, *types: type[BaseException]) -> bool:
    """Return whether a class of the exception is one of these, whatever the built-ins say now.

    `isinstance` would read a `__class__` of the exception's own, and a version may replace both it
    and `issubclass`.
    """
    for base in type.__dict__["__mro__"].__get__(type(error)):
        for candidate in types:
            if base is candidate:
                return True
    return False


def attribute(value: object, name: str) -> Any:
    """Return an attribute; None if there is none or it can't be read."""
    return _attempt(lambda: getattr(value, name, None), None)


def class_name(error: BaseException) -> str:
    """Return the name of its class."""
    name: str = type.__dict__["__name__"].__get__(type(error))
    return sendable(shorten(name, NAME_CHARS))


def text_of(value: object) -> str:
    """Return `str` of a value, shortened; empty if it has none."""
    return _attempt(lambda: sendable(shorten(str(value))).strip(), "")


def message(error: BaseException) -> str:
    """Return its message; the name of its class if it has none."""
    return text_of(error) or class_name(error)


def one_line(error: BaseException) -> str:
    """Return `ValueError: its message`."""
    text = text_of(error)
    return f"{class_name(error)}: {text}" if text else class_name(error)


def stack(error: BaseException) -> TracebackType | None:
    """Return its traceback."""
    trace: TracebackType | None = _slot(error, "__traceback__")
    return trace


def chain(error: BaseException) -> list[BaseException]:
    """Return the exception and its causes, outermost first; each once."""
    links: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and len(links) < MAX_LINKS:
        if any(current is link for link in links):
            break
        links.append(current)
        current = _slot(current, "__cause__") or _context(current)
    return links


def format_error(error: BaseException) -> str:
    """Return the traceback of an exception and its causes, as Python prints it."""
    links = chain(error)
    parts = [_format_one(link) for link in links]
    for i, link in enumerate(links[:-1]):
        parts[i] = (_CAUSED if _slot(link, "__cause__") else _MEANWHILE) + parts[i]
    return "".join(reversed(parts))


def _format_one(error: BaseException) -> str:
    frames = _attempt(lambda: _format_stack(stack(error)), "")
    return f"{frames}{_headline(error)}\n" + "".join(f"{line}\n" for line in _details(error))


def _format_stack(trace: TracebackType | None) -> str:
    if trace is None:
        return ""
    frames = traceback.StackSummary.extract(traceback.walk_tb(trace), limit=-MAX_FRAMES)
    return "Traceback (most recent call last):\n" + "".join(frames.format())


def _headline(error: BaseException) -> str:
    """Return the last lines of a traceback: class and message, of a SyntaxError its code too."""
    if is_a(error, SyntaxError) and type(error).__module__ == "builtins":
        text = _attempt(lambda: "".join(traceback.format_exception_only(error)), "")
        if text:
            return sendable(shorten(text.rstrip("\n")))
    module = _attempt(lambda: str(type(error).__module__), "")
    prefix = "" if module in ("", "builtins", "__main__") else f"{shorten(module, NAME_CHARS)}."
    return sendable(prefix) + one_line(error)


def _details(error: BaseException) -> Iterator[str]:
    """Yield its notes, and the exceptions of a group in one line each."""
    notes = attribute(error, "__notes__")
    for note in islice(notes if type(notes) is list else (), MAX_PARTS):
        yield shorten(text_of(note), NOTE_CHARS)
    if is_a(error, BaseExceptionGroup):
        for part in BaseExceptionGroup.exceptions.__get__(error)[:MAX_PARTS]:
            yield f"  + {one_line(part)}"


def _context(error: BaseException) -> BaseException | None:
    context: BaseException | None = _slot(error, "__context__")
    return None if _slot(error, "__suppress_context__") else context


def _slot(error: BaseException, name: str) -> Any:
    """Return an attribute of BaseException itself, which a subclass can't hide."""
    return BaseException.__dict__[name].__get__(error)


def _attempt(function: Callable[[], T], default: T) -> T:
    try:
        return function()
    except BaseException:  # noqa: BLE001 (a version's own code: it may even exit)
        return default


__all__ = [
    "MESSAGE_CHARS",
    "attribute",
    "chain",
    "class_name",
    "format_error",
    "is_a",
    "message",
    "one_line",
    "sendable",
    "shorten",
    "stack",
    "text_of",
]
