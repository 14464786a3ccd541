"""`triton-magics`: the verbs of the notebook in a terminal, and the quickstart notebooks.

Exit codes: 0 success; 1 a verdict that is not `passed`, or a machine that `doctor` finds not
usable; 2 an error of the caller; 3 an error of this program; 130 an interrupt.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from triton_magics import verbs
from triton_magics.cli import shell_completion
from triton_magics.cli.quickstart import run_quickstart
from triton_magics.errors import (
    BadValue,
    Interrupted,
    TritonMagicsError,
    UserError,
    did_you_mean,
)
from triton_magics.verbs._arguments import Argument, argument
from triton_magics.verbs._phrase import as_command, with_step

if TYPE_CHECKING:
    from triton_magics.execution.protocol import Progress
    from triton_magics.lab import Lab
    from triton_magics.verbs._base import Request, Verb

PASSED, FAILED, USER_ERROR, OUR_ERROR, INTERRUPTED = 0, 1, 2, 3, 130
_FEWEST_COLUMNS, _MOST_COLUMNS = 60, 100
_CLEAR = "\r\x1b[2K"  # clears the line of a terminal
_EXAMPLES = """examples:
  triton-magics op softmax                              the op: shapes, references, techniques
  triton-magics template fused softmax v1 --to v1.py    a first version, as a file
  triton-magics kernel softmax v1 v1.py                 save it as a version
  triton-magics validate softmax v1                     check it against float64
  triton-magics bench softmax --json | jq .derived      time it beside torch; figures for a script

exit codes:
  0 success  1 not passed, or doctor: not usable  2 your error  3 our error  130 interrupted

environment:
  TRITON_MAGICS_<SETTING>  a setting, such as TRITON_MAGICS_WORKSPACE
  NO_COLOR, FORCE_COLOR    never, always colour the output"""
_OTHERS = ("quickstart", "completion", "serve", "mcp", "skill", "setup", "executor")
_FILE = argument("file", help="the version's source; - for standard input")
_COMMON = (
    argument(
        "--workspace",
        metavar="DIR",
        default=argparse.SUPPRESS,
        help="folder of kernels/ and logs/ (default: the current one)",
    ),
    *(
        argument(flag, action="store_true", default=argparse.SUPPRESS, help=text)
        for flag, text in (
            ("--details", "show all details, long ones too"),
            ("--json", "print the value as JSON, and nothing else"),
        )
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code.

    Args:
        argv: the words after the program's name; by default those of the process.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an output that can't show a character escapes it
            stream.reconfigure(errors="backslashreplace")
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == [shell_completion.COMMAND]:
        for name in shell_completion.completions(words[1:], _OTHERS, _COMMON, _arguments_of):
            _print(name)
        return PASSED
    if not words:
        _parser().print_help()
        return PASSED
    options = _parser().parse_args(words)
    try:
        return int(options.function(options))
    except TritonMagicsError as error:
        _print_error(error, as_json=getattr(options, "json", False))
        return USER_ERROR if isinstance(error, UserError) else OUR_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED


# ----------------------------------------------------------------------------------- parsing


class _Parser(argparse.ArgumentParser):
    """A parser whose errors suggest a command or flag and show the command's usage."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown words here, where the command's own flags are known."""
        options, rest = super().parse_known_args(args, namespace)
        if rest:
            hint = did_you_mean(rest[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(rest)}.{hint}")
        return options, rest

    def error(self, message: str) -> NoReturn:
        """Print the error and end with exit code 2."""
        if unknown := re.match(r"argument COMMAND: invalid choice: '([^']*)'", message):
            hint = did_you_mean(unknown[1], (*verbs.names(), *_OTHERS))
            message = f"no command {unknown[1]!r}.{hint} {self.prog} --help lists them"
        super().error(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="triton-magics",
        description="Develop GPU kernels: write, validate, benchmark, choose, keep the record.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    # Importing the package by name would reach the notebook layer, which a terminal does not need.
    version = sys.modules["triton_magics"].__version__
    parser.add_argument("-V", "--version", action="version", version=f"%(prog)s {version}")
    _add_common(parser)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_quickstart(commands)
    _add_completion(commands)
    _add_servers(commands)
    for verb in verbs.every():
        _add(commands, verb)
    return parser


def _add(commands: Any, verb: Verb) -> None:
    command = commands.add_parser(
        verb.command.split()[-1],
        aliases=(*verbs.old_names(verb.name), *((verb.name,) if "_" in verb.name else ())),
        help=verb.help,
        description=verb.help,
        epilog=f"example:\n  {_example(verb)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for each in _arguments(verb):
        each.add_to(command)
    command.set_defaults(function=lambda options: _perform(verb, options))


def _arguments_of(name: str) -> tuple[Argument, ...]:
    return _arguments(verbs.load(name))


def _arguments(verb: Verb) -> tuple[Argument, ...]:
    return (*verb.arguments, *((_FILE,) if verb.takes_cell else ()), *_COMMON)


def _add_common(parser: argparse.ArgumentParser) -> None:
    """Let the options of every verb stand before its name too."""
    for each in _COMMON:
        each.add_to(parser)


def _add_completion(commands: Any) -> None:
    text = "Print a script for your shell that completes commands, options, ops and versions."
    command = commands.add_parser(
        "completion",
        help=text,
        description=text,
        epilog=shell_completion.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    shells = tuple(shell_completion.SCRIPTS)
    command.add_argument("shell", choices=shells, metavar="SHELL", help=", ".join(shells))
    command.set_defaults(function=_print_script)


def _print_script(options: argparse.Namespace) -> int:
    _print(shell_completion.SCRIPTS[options.shell])
    return PASSED


def _add_quickstart(commands: Any) -> None:
    text = "Copy the quickstart notebooks into a folder."
    command = commands.add_parser("quickstart", help=text, description=text, allow_abbrev=False)
    command.add_argument("folder", metavar="DIR", help="target folder; created if missing")
    command.add_argument("--force", action="store_true", help="overwrite existing notebooks")
    command.set_defaults(function=run_quickstart)


def _add_servers(commands: Any) -> None:
    from triton_magics.serve import agent_commands
    from triton_magics.serve import command as servers

    text = "Serve the verbs over REST and MCP on one port."
    command = commands.add_parser("serve", help=text, description=text, allow_abbrev=False)
    servers.add_arguments(command)
    command.set_defaults(function=servers.serve)
    text = "Serve the verbs to an agent over MCP, on standard input and output."
    command = commands.add_parser("mcp", help=text, description=text, allow_abbrev=False)
    servers.add_stdio_arguments(command)
    command.set_defaults(function=servers.serve_stdio)
    agent_commands.add_commands(commands)
    text = "Run the jobs of a notebook on another machine; its executor starts this by ssh."
    command = commands.add_parser("executor", help=text, description=text, allow_abbrev=False)
    command.set_defaults(function=_run_executor)


def _run_executor(options: argparse.Namespace) -> NoReturn:
    from triton_magics.config import Settings
    from triton_magics.execution.remote_stdio import run_stdio

    run_stdio(Settings.load())


# ------------------------------------------------------------------------------------- verbs


def _perform(verb: Verb, options: argparse.Namespace) -> int:
    from triton_magics.lab import Lab

    source = _read(options.file) if verb.takes_cell else None
    name = verb.redirect(options)
    verb = verb if name == verb.name else verbs.load(name)
    request = verb.read(options, cell=source)
    with Lab(getattr(options, "workspace", None)) as lab:
        try:
            value = _value(verb, lab, request)
        finally:
            for note in lab.note_reader().new():
                print(f"! {with_step(*note, as_command)}", file=sys.stderr)
    if getattr(options, "json", False):
        _print(_as_json(value))
    else:
        _print(_as_text(verb, value, details=getattr(options, "details", False)))
    return _exit_code(verb, value)


def _value(verb: Verb, lab: Lab, request: Request) -> Any:
    """Return the result, or the partial result of an interrupted job."""
    if sys.stderr.isatty():
        lab.on_progress = _show_progress
    try:
        return lab.perform(verb, request)
    except Interrupted as interrupt:
        return interrupt.value
    finally:
        if sys.stderr.isatty():
            print(_CLEAR, end="", file=sys.stderr, flush=True)


def _as_json(value: Any) -> str:
    from triton_magics.rendering.render_json import to_json_text

    return to_json_text(value)


def _as_text(verb: Verb, value: Any, *, details: bool) -> str:
    from triton_magics import rendering
    from triton_magics.rendering.terminal_colors import color_verdicts, wants_color

    page = verb.page(value) if verb.page else value
    columns = shutil.get_terminal_size((_MOST_COLUMNS, 24)).columns  # $COLUMNS, or the terminal's
    width = min(max(columns, _FEWEST_COLUMNS), _MOST_COLUMNS)
    text = rendering.command_line_text(page, as_command, details=details, width=width).rstrip()
    return color_verdicts(text) if wants_color(sys.stdout) else text


def _print(text: str) -> None:
    """Print the text; a closed pipe (`| head`) is not an error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(verb: Verb, value: Any) -> int:
    if getattr(value, "status", None) == "interrupted":
        return INTERRUPTED
    if getattr(value, "kind", None) == "diagnosis":
        return FAILED if value.worst == "bad" else PASSED
    return FAILED if verb.judges and verbs.is_failure(value) else PASSED


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadValue(f"{file} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadValue(f"{file} can't be read: {error}") from error


def _show_progress(step: Progress) -> None:
    done = f" · {step.done} of {step.total}" if step.total else ""
    print(f"{_CLEAR}{step.stage}{done}", end="", file=sys.stderr, flush=True)


def _print_error(error: TritonMagicsError, *, as_json: bool) -> None:
    kind, step = type(error).__name__, getattr(error, "next_step", None)
    if as_json:
        from triton_magics.rendering.render_json import SCHEMA_VERSION

        value: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION, "kind": "error", "type": kind, "message": str(error)
        }  # fmt: skip
        if step:
            value["next_step"] = {"verb": step.verb, "arguments": dict(step.arguments)}
        print(json.dumps(value, indent=2))
    else:
        print(f"{kind}: {with_step(str(error), step, as_command)}", file=sys.stderr)


def _example(verb: Verb) -> str:
    """Return the first line of the verb's example as a command."""
    words = verb.example.splitlines()[0].removeprefix(verb.sign).split(" ")
    if verb.takes_cell:
        words.insert(1 + sum(each.positional for each in verb.arguments), "FILE")
    return f"{verb.command}{' '.join(words)}"
