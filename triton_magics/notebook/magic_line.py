"""Read the text after a magic's name: cut its comment, expand its variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from IPython.core.error import UsageError

_SINGLE = r"'[^']*'"
_DOUBLE = r'"(?:\\.|[^"\\])*"'
_ESCAPED = r"\\."
_VARIABLE = r"\{[^\W\d][^{}]*\}|\$\$?[^\W\d]\w*(?:\.[^\W\d]\w*)*"  # {expression}, $name.attribute
# A comment begins with a # at the start of a word, outside quotes: `v1:2#x` has none.
_CODE = re.compile(rf"""(?:{_SINGLE}|{_DOUBLE}|{_ESCAPED}|(?<=\S)\#|[^'"\\#])*""", re.DOTALL)
_TOKEN = re.compile(
    rf"(?P<literal>{_SINGLE}|{_ESCAPED})|(?P<double>{_DOUBLE})|(?P<variable>{_VARIABLE})", re.DOTALL
)


class MagicLine(NamedTuple):
    """The arguments of a magic as text.

    Attributes:
        text: the arguments, without the comment.
        silent: True if the line ends in `;`, which hides the value.
    """

    text: str
    silent: bool

    @classmethod
    def parse(cls, line: str, *, is_cell: bool) -> MagicLine:
        """Cut the comment and the semicolon; only a line magic may end in `;`."""
        text = cut_comment(line).strip()
        if is_cell or not text.endswith(";"):
            return cls(text, False)
        return cls(text.rstrip("; "), True)


def cut_comment(line: str) -> str:
    """Return the line up to the first `#` that begins a word outside quotes."""
    code = _CODE.match(line)
    end = code.end() if code else 0
    return line[:end] if line[end:].startswith("#") else line


def expand_variables(line: str, variables: Mapping[str, Any]) -> str:
    """Replace `{expression}` and `$name` by their values, each of which stays one word.

    Text in single quotes is unchanged. In double quotes a name without a value is unchanged.
    `$$name` is `$name`.

    Args:
        line: arguments of a magic, never the body of a cell.
        variables: the user's, local ones included.

    Raises:
        UsageError: an expression outside quotes has no value.
    """

    def in_double_quotes(match: re.Match[str]) -> str:
        try:
            text = _value(match[0], variables)
        except UsageError:
            return match[0]
        return re.sub(r'(["\\])', r"\\\1", text)

    def replace(match: re.Match[str]) -> str:
        if match["literal"]:
            return match[0]
        if match["double"]:
            return re.sub(_VARIABLE, in_double_quotes, match[0])
        return shlex.quote(_value(match[0], variables))

    return _TOKEN.sub(replace, line)


def _value(word: str, variables: Mapping[str, Any]) -> str:
    if word.startswith("$$"):
        return word[1:]
    expression = word[1:-1] if word.startswith("{") else word[1:]
    try:
        # The user's own expression in the user's own cell, as in IPython's magics.
        return str(eval(expression, dict(variables)))  # noqa: S307
    except Exception as error:  # noqa: BLE001 (the expression is foreign code)
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(
            f"{word} has no value ({reason}). Single quotes keep it as text."
        ) from None
