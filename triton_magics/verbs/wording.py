"""What a command line says where a notebook has magics, cells and `%config`."""

from __future__ import annotations

import re
from collections.abc import Callable

from triton_magics.verbs.table import VERBS

Replacement = str | Callable[[re.Match[str]], str]


def as_commands(text: str) -> str:
    """A message in the words of the command line: commands for magics, the file for the cell.

    `%triton_bench softmax` becomes `triton-magics bench softmax`; a verb that takes a cell gets
    FILE after its names. Every name is of the table of verbs; another magic stays as it is.

    Args:
        text: of any front end's error, note, hint or next step; no code.
    """
    for pattern, instead in _WORDS:
        text = pattern.sub(instead, text)
    return text


def _command(found: re.Match[str]) -> str:
    verb = VERBS.get(found["magic"])
    if verb is None:
        return found[0]
    words = found["words"].split()
    names = sum(each.positional for each in verb.arguments)
    if verb.cell and len(words) >= names:
        words.insert(names, "FILE")
    return " ".join([verb.command, *words])


def _setting(found: re.Match[str]) -> str:
    """`--workspace 'FOLDER'`, `TRITON_MAGICS_DEVICE='auto'`."""
    name, value = found["name"], found["value"]
    if name == "workspace":
        return f"--workspace {value}" if value else "--workspace"
    variable = f"TRITON_MAGICS_{name.upper()}"
    return f"{variable}={value}" if value else variable


_WORDS: tuple[tuple[re.Pattern[str], Replacement], ...] = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"%%?(?P<magic>triton_[a-z]+)(?P<words>(?: \w+)*)", _command),
        (r"%config TritonMagics\.(?P<name>\w+)(?: = (?P<value>'[^']*'|[\w.]+))?", _setting),
        (r"\bthe cell and run it again\b", "the file and write it again"),
        (r"\bthe cell, then run it\b", "the file, then write it"),
        (r"\brun the cell again\b", "run the command again"),
        (r"\bcell line (\d+)", r"line \1 of the file"),
        (r"\b(its|the) cell\b", r"\1 file"),
    )
)
