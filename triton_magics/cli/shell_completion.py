"""Complete the words of a command in bash, zsh and fish."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from triton_magics import verbs
from triton_magics.config import Settings
from triton_magics.errors import TritonMagicsError
from triton_magics.verbs._completion import Names, find_next_argument

if TYPE_CHECKING:
    from triton_magics.lab import Lab
    from triton_magics.verbs._arguments import Argument

MARKS = (".triton_magics", "logs", "kernels")  # one of them is in every workspace
COMMAND = "__complete"
"""First word of the call that a shell makes; the words so far follow, the last may be empty."""

SCRIPTS = {
    "bash": """_triton_magics() {
    local IFS=$'\\n'
    COMPREPLY=($(triton-magics __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _triton_magics triton-magics""",
    "zsh": """#compdef triton-magics
_triton_magics() {
    local -a names
    names=(${(f)"$(triton-magics __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#names )); then compadd -a names; else _files; fi
}
compdef _triton_magics triton-magics""",
    "fish": """function __triton_magics
    set -l words (commandline -opc) (commandline -ct)
    triton-magics __complete $words[2..-1] 2>/dev/null
end
complete -c triton-magics -a '(__triton_magics)'""",
}
EXAMPLES = """examples:
  eval "$(triton-magics completion bash)"       in ~/.bashrc
  eval "$(triton-magics completion zsh)"        in ~/.zshrc, after compinit
  triton-magics completion fish | source        in ~/.config/fish/config.fish"""


def completions(
    words: Sequence[str],
    others: Sequence[str],
    common: Iterable[Argument],
    arguments: Callable[[str], Iterable[Argument]],
) -> list[str]:
    """Return what the last of the words may become.

    Args:
        words: after the program's name; the last one is at the cursor, and may be empty.
        others: commands that are no verbs.
        common: options that may stand before a command.
        arguments: returns those of a verb.
    """
    *before, last = words or ("",)
    head, comma, fragment = last.rpartition(",")
    folder, command, after = _split(before, common)
    names: Iterable[str] = ()
    if command is None and find_next_argument(common, before).argument is None:
        names = (*_commands(), *others, *(a.flags[-1] for a in common if last.startswith("-")))
    elif command == "completion" and not after:
        names = SCRIPTS
    elif command is not None and (verb := verbs.find(command)):
        names = _names_of(arguments(verb.name), after, fragment, folder)
    return [f"{head}{comma}{name}" for name in names if name.startswith(fragment)]


def _commands() -> Iterable[str]:
    return (name.replace("_", "-") for name in verbs.names())


def _split(
    words: Sequence[str], common: Iterable[Argument]
) -> tuple[str | None, str | None, Sequence[str]]:
    """Return the workspace that the words name, the command, and the words after it."""
    places = [i for i, word in enumerate(words) if word == "--workspace"]
    folder = words[places[-1] + 1] if places and places[-1] + 1 < len(words) else None
    values = {a.flags[-1] for a in common if a.takes_value}
    for i, word in enumerate(words):
        if not word.startswith("-") and (i == 0 or words[i - 1] not in values):
            return folder, word, words[i + 1 :]
    return folder, None, ()


@contextmanager
def _open_lab(folder: str | None) -> Iterator[Lab]:
    """Open the workspace; where there is none yet, an empty one, so that no folder is made there.

    Raises:
        WorkspaceError: the folder does not exist.
    """
    from triton_magics.lab import Lab

    named = Path(folder or Settings.load(folder).workspace or ".").expanduser()
    with tempfile.TemporaryDirectory() as empty:
        is_new = named.is_dir() and not any((named / name).exists() for name in MARKS)
        with Lab(empty if is_new else folder) as lab:
            yield lab


def _names_of(
    arguments: Iterable[Argument], words: Sequence[str], fragment: str, folder: str | None
) -> list[str]:
    arguments = tuple(arguments)
    argument = find_next_argument(arguments, words).argument
    is_named = argument is None or argument.names or argument.options.get("choices")
    if not is_named and not fragment.startswith("-"):
        return []  # a file, a number: the shell completes files
    try:
        with _open_lab(folder) as lab:
            return [name for name, _ in Names(lambda: lab).complete(arguments, words, fragment)]
    except TritonMagicsError:  # no such workspace
        return []
