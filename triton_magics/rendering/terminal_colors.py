"""Colour the verdicts of a text for a terminal."""

from __future__ import annotations

import os
import re
from typing import TextIO

_CODES = {"✓": "32", "✗": "31", "!": "33"}
_VERDICT = re.compile(r"^(\s*)([✓✗!])( [A-Z][A-Z]+(?: [A-Z]+)*\b)?", re.MULTILINE)
_NEXT = re.compile(r"^next:", re.MULTILINE)


def wants_color(stream: TextIO) -> bool:
    """Return True if a stream shows colours: a terminal, without `NO_COLOR` or `TERM=dumb`."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def color_verdicts(text: str) -> str:
    """Return the text with its signs and leads in green, red and yellow, and `next:` bold."""

    def paint(match: re.Match[str]) -> str:
        lead = match[3] or ""
        return f"{match[1]}\x1b[{'1;' * bool(lead)}{_CODES[match[2]]}m{match[2]}{lead}\x1b[0m"

    return _NEXT.sub("\x1b[1mnext:\x1b[0m", _VERDICT.sub(paint, text))
