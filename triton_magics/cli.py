"""`triton-magics`: the verbs of the notebook in a terminal, and the quickstart notebooks.

It ends with 0 where all is well, with 1 after a verdict that is not `passed`, with 2 where the
caller can mend it, with 3 where a part of this program failed, with 130 when interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from triton_magics.errors import (
    BadValue,
    TritonMagicsError,
    Unavailable,
    UserError,
    did_you_mean,
)
from triton_magics.verbs import VERBS, Verb, argument, as_commands, failed

if TYPE_CHECKING:
    from triton_magics.engine.protocol import Progress
    from triton_magics.lab import Lab
    from triton_magics.model import Value

PASSED, FAILED, USER_ERROR, OUR_ERROR, INTERRUPTED = 0, 1, 2, 3, 130
_PACKAGE = Path(__file__).parent
_NOTEBOOKS = (_PACKAGE / "_notebooks", _PACKAGE.parent / "notebooks")
_CLEAR = "\r\x1b[2K"  # a terminal's line, to be written anew
_FILE = argument("file", help="the version's source; - for what comes in by the pipe")


def main(argv: Sequence[str] | None = None) -> int:
    """Does what the words say, and returns the exit code.

    Args:
        argv: without the program's name; those of the process by default.
    """
    asked = _parser().parse_args(argv)
    try:
        return int(asked.act(asked))
    except TritonMagicsError as error:
        _tell_error(error, as_json=getattr(asked, "json", False))
        return USER_ERROR if isinstance(error, UserError) else OUR_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED


# ----------------------------------------------------------------------------------- parsing


class _Parser(argparse.ArgumentParser):
    """Says which command or flag may have been meant, with the usage of the command at hand."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuses what it does not know here, where the command's own flags are known."""
        asked, rest = super().parse_known_args(args, namespace)
        if rest:
            hint = did_you_mean(rest[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(rest)}.{hint}")
        return asked, rest

    def error(self, message: str) -> NoReturn:
        """Ends with 2."""
        if unknown := re.match(r"argument COMMAND: invalid choice: '([^']*)'", message):
            hint = did_you_mean(unknown[1], (verb.name for verb in VERBS.values()))
            message = f"no command {unknown[1]!r}.{hint} {self.prog} --help lists them"
        super().error(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="triton-magics", description="Develop Triton GPU kernels.", allow_abbrev=False
    )
    # The package itself leads to the notebook's side, which a terminal does without.
    version = sys.modules["triton_magics"].__version__
    parser.add_argument("--version", action="version", version=f"%(prog)s {version}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_quickstart(commands)
    for verb in VERBS.values():
        _add(commands, verb)
    return parser


def _add(commands: Any, verb: Verb) -> None:
    said, example = as_commands(verb.help), as_commands(verb.example.splitlines()[0])
    command = commands.add_parser(
        verb.name,
        aliases=[verb.word] if verb.word != verb.name else [],
        help=said,
        description=said,
        epilog=f"example: {example}",
        allow_abbrev=False,
    )
    for each in (*verb.arguments, *((_FILE,) if verb.cell else ())):
        each.add_to(command)
    command.add_argument(
        "--workspace", metavar="DIR", help="folder of kernels/ and logs/; this one by default"
    )
    command.add_argument(
        "--details", action="store_true", help="every detail, also those that are long"
    )
    command.add_argument("--json", action="store_true", help="the value as JSON, and nothing else")
    command.set_defaults(act=lambda asked: _do(verb, asked))


def _add_quickstart(commands: Any) -> None:
    text = "Copies the notebooks to begin with into a folder."
    command = commands.add_parser("quickstart", help=text, description=text, allow_abbrev=False)
    command.add_argument("folder", metavar="DIR", help="where to; made if it is not there")
    command.add_argument("--force", action="store_true", help="overwrite notebooks that are there")
    command.set_defaults(act=_quickstart)


# ------------------------------------------------------------------------------------- verbs


def _do(verb: Verb, asked: argparse.Namespace) -> int:
    from triton_magics.lab import Lab

    if verb.cell:
        asked.cell, asked.cell_offset = _read(asked.file), 0
    with Lab(asked.workspace) as lab:
        try:
            value = _value(verb, lab, asked)
        finally:
            for note in lab.notes():
                print(f"! {as_commands(note)}", file=sys.stderr)
    _print(value.model_dump_json(indent=2) if asked.json else _shown(value, asked.details))
    return _exit_code(verb, value)


def _value(verb: Verb, lab: Lab, asked: argparse.Namespace) -> Value:
    """What the Lab returns; of an interrupted job what is known of it."""
    if sys.stderr.isatty():
        lab.on_progress = _show_progress
    try:
        return verb.call(lab, asked)
    except KeyboardInterrupt:
        if lab.last is None or getattr(lab.last, "status", None) != "interrupted":
            raise
        return lab.last
    finally:
        if sys.stderr.isatty():
            print(_CLEAR, end="", file=sys.stderr, flush=True)


def _shown(value: Value, details: bool) -> str:
    from triton_magics import report

    return report.command_line_text(value, as_commands, details=details).rstrip()


def _print(text: str) -> None:
    """The text, as far as whoever reads the pipe wants it: `| head` is no fault."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(verb: Verb, value: Value) -> int:
    if getattr(value, "status", None) == "interrupted":
        return INTERRUPTED
    return FAILED if verb.judges and failed(value) else PASSED


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise BadValue(f"{file} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadValue(f"{file} can't be read: {error}") from error


def _show_progress(step: Progress) -> None:
    done = f" · {step.done} of {step.total}" if step.total else ""
    print(f"{_CLEAR}{step.stage}{done}", end="", file=sys.stderr, flush=True)


def _tell_error(error: TritonMagicsError, *, as_json: bool) -> None:
    kind, message = type(error).__name__, as_commands(str(error))
    if as_json:
        print(json.dumps({"kind": "error", "type": kind, "message": message}, indent=2))
    else:
        print(f"{kind}: {message}", file=sys.stderr)


# -------------------------------------------------------------------------------- quickstart


def _quickstart(asked: argparse.Namespace) -> int:
    copied = copy_notebooks(Path(asked.folder), force=asked.force)
    for path in copied:
        print(path)
    print(f"next: jupyter lab {copied[0]}")
    return PASSED


def copy_notebooks(folder: Path, *, force: bool = False) -> tuple[Path, ...]:
    """The notebooks' copies in a folder, the quickstart first.

    Args:
        folder: made if it is not there.
        force: overwrite what is there.

    Raises:
        BadValue: a notebook of that name is there, and not `force`; or it can't be written.
        Unavailable: this installation has none.
    """
    found = _shipped_notebooks()
    if not found:
        raise Unavailable("this installation has no notebooks; install triton-magics anew")
    wanted = [(path, folder / path.name) for path in found]
    there = [str(copy) for _, copy in wanted if copy.exists()]
    if there and not force:
        raise BadValue(f"there already: {', '.join(there)}. --force overwrites")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, copy in wanted:
            shutil.copyfile(path, copy)
    except OSError as error:
        raise BadValue(f"the notebooks can't be copied: {error}") from error
    return tuple(copy for _, copy in wanted)


def _shipped_notebooks() -> list[Path]:
    """Those in the wheel, or of an editable install; the quickstart first."""
    source = next((path for path in _NOTEBOOKS if path.is_dir()), _NOTEBOOKS[0])
    return sorted(source.glob("*.ipynb"), key=lambda path: (path.stem != "quickstart", path.name))
