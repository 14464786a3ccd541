"""One argument of a verb, and the parser of a line of them."""

from __future__ import annotations

import ast
import re
import shlex
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from triton_magics.errors import UserError, did_you_mean


class BadLine(UserError):
    """A line of words that does not fit its verb."""


@dataclass(frozen=True)
class Argument:
    """One argument of a verb.

    Attributes:
        flags: `op`, or `--dtype`; several for a short form.
        names: what its values are names of (op, version, size, ...), for completion.
        options: as `ArgumentParser.add_argument` takes them.
        choices: returns the known values, where a package can add one.
    """

    flags: tuple[str, ...]
    names: str
    options: Mapping[str, Any]
    choices: Callable[[], Sequence[str]] | None = None

    @property
    def help(self) -> str:
        """Meaning, with the values that are known now."""
        values = f": {', '.join(self.choices())}" if self.choices else ""
        return f"{self.options['help']}{values}"

    @property
    def positional(self) -> bool:
        """Return True for a positional argument, False for a flag."""
        return not self.flags[0].startswith("-")

    @property
    def takes_value(self) -> bool:
        """Return True where a word follows the flag."""
        return self.positional or not str(self.options.get("action", "")).startswith("store_")

    @property
    def repeats(self) -> bool:
        """Return True where the flag may occur again."""
        return self.options.get("action") in ("append", "extend")

    @property
    def many(self) -> bool:
        """Return True where several words may follow."""
        return self.options.get("nargs") in ("*", "+")

    def add_to(self, parser: ArgumentParser) -> Action:
        """Add it to a parser."""
        return parser.add_argument(*self.flags, **{**self.options, "help": self.help})


def argument(*flags: str, help: str, names: str = "", **options: Any) -> Argument:  # noqa: A002
    """Return an argument; a positional one is shown in capitals, as placeholders are."""
    if not flags[0].startswith("-"):
        options.setdefault("metavar", flags[0].upper())
    return Argument(flags, names, {"help": help, **options})


def read_shape(text: str) -> tuple[int, ...]:
    """Return (257, 1023) of `257x1023`.

    Raises:
        ArgumentTypeError: not of that form, or a dimension of 0.
    """
    from triton_magics.model import shape_of  # pydantic, which loading the magics does without

    if (dims := shape_of(text)) is None:
        raise ArgumentTypeError(f"{text!r} is no shape: write 257x1023")
    return dims


def read_knob(text: str) -> tuple[str, tuple[bool | int | float | str, ...]]:
    """Return ('num_warps', (4, 8)) of `num_warps=4,8`.

    Raises:
        ArgumentTypeError: not of that form.
    """
    name, sign, values = text.partition("=")
    words = split_commas(values)
    if not (sign and name.isidentifier() and words):
        raise ArgumentTypeError(f"{text!r} names no values: write BLOCK_SIZE=256,512")
    return name, tuple(_literal(word) for word in words)


def _literal(word: str) -> bool | int | float | str:
    """Return a number or a truth value where the word is one, else the word."""
    try:
        value = ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word
    return value if isinstance(value, bool | int | float | str) else word


def split_commas(text: str) -> tuple[str, ...]:
    """Return ('small', 'medium') of `small,medium`."""
    return tuple(word for word in text.split(",") if word)


class Parser(ArgumentParser):
    """Parser of a verb's line; never ends the process, never abbreviates a flag."""

    def __init__(self, shown: str, arguments: Sequence[Argument]) -> None:
        """Make the parser of a verb.

        Args:
            shown: first word of its line: `%triton_bench`.
            arguments: in their order.
        """
        super().__init__(prog=shown, add_help=False, allow_abbrev=False)
        self.shown = shown
        for each in arguments:
            each.add_to(self)

    def parse_line(self, line: str) -> Namespace:
        """Return the arguments of a line, split as a shell does.

        Raises:
            BadLine: the line does not fit, or a quote is not closed.
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            self._refuse(f"{str(error).lower()}: {line.strip()}")
        return self.parse_args(words)

    def error(self, message: str) -> NoReturn:
        """Raise BadLine, with the nearest flag."""
        self._refuse(message)

    def _refuse(self, message: str) -> NoReturn:
        flag = re.match(r"unrecognized arguments: .*?(--?[\w-]+)", message)
        hint = did_you_mean(flag[1], self._option_string_actions) if flag else ""
        raise BadLine(f"{message}.{hint} Help: {self.shown} --help")
