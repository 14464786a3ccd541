"""Each verb as a magic: parse the line, call the Lab once, return the value."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from IPython.core.error import UsageError
from IPython.core.magic import no_var_expand

from triton_magics.errors import TritonMagicsError
from triton_magics.notebook import tracebacks
from triton_magics.notebook.help import Help
from triton_magics.verbs import OP, VERBS, Argument, BadLine, Parser, Verb, argument, failed

if TYPE_CHECKING:
    from triton_magics.notebook.background import Job
    from triton_magics.notebook.extension import Extension

Magic = Callable[..., object]
_HELP = ("-h", "--help")
_VARIABLE = re.compile(r"(?<!\S)(--[\w-]+ +)\{([^\W\d]\w*)\}(?!\S)")  # --cases {plan}
_COMMON = (
    argument("-o", "--out", metavar="NAME", help="keep the value in this variable"),
    argument("-q", "--quiet", action="store_true", help="show nothing"),
    argument("--traceback", action="store_true", help="where it fails, every frame of it"),
    argument(*_HELP, action="store_true", help="show this"),
)
_NO_RAISE = argument(
    "--no-raise", action="store_true", help="show a failed verdict, but let the cell pass"
)
_BG = argument(
    "--bg", action="store_true", help="beside the notebook: gives a handle, .result() the value"
)
_LONG = ("validate", "bench", "take", "sweep")
_DOCK = argument("--dock", action="store_true", help="at JupyterLab's side; needs the extra `dock`")


@dataclass(frozen=True)
class Form:
    """A verb as a magic: what it takes, and the parser of that."""

    verb: Verb
    arguments: tuple[Argument, ...]
    parser: Parser

    @classmethod
    def of(cls, verb: Verb) -> Form:
        """With the options that every magic has."""
        more = (*((_NO_RAISE,) if verb.judges else ()), *((_BG,) if verb.name in _LONG else ()))
        own = (*verb.arguments, *more, *_COMMON)
        return cls(verb, own, Parser(verb.sign, own))

    @property
    def kind(self) -> str:
        """`line` or `cell`."""
        return "cell" if self.verb.cell else "line"

    @property
    def help(self) -> Help:
        """What `?`, `--help` and docs/magics.md show."""
        return Help(self.verb, self.arguments)


class Line(NamedTuple):
    """What was typed: the arguments, and whether a `;` silences the value."""

    text: str
    silent: bool

    @classmethod
    def of(cls, typed: str, *, cell: bool) -> Line:
        """Only a line magic may end in `;`."""
        text = typed.strip()
        if cell or not text.endswith(";"):
            return cls(text, False)
        return cls(text.rstrip("; "), True)


def forms(open_panel: Callable[[Any, Namespace], Any]) -> dict[str, Form]:
    """Every magic by its name, the panel included.

    Args:
        open_panel: makes the panel of an op; only a notebook has it.
    """
    panel = Verb(
        name="panel",
        magic="triton_panel",
        arguments=(OP, _DOCK),
        call=open_panel,
        cell=False,
        judges=False,
        help="An op beside the code, live, with buttons: versions, plots, references, log, engine.",
        example="%triton_panel softmax --dock",
    )
    return {verb.magic: Form.of(verb) for verb in (*VERBS.values(), panel)}


def magic(form: Form, extension: Extension) -> Magic:
    """The function that IPython calls for a magic.

    Args:
        form: the verb and its parser.
        extension: where values are shown and kept.
    """

    # Not `@output_can_be_silenced`: after the work is done its tokenizer fails at `tl.dot(`.
    @no_var_expand
    def run(line: str, cell: str | None = None) -> object:
        typed = Line.of(line, cell=form.verb.cell)
        if not set(_HELP).isdisjoint(typed.text.split()):
            extension.display.show_bundle(form.help.faces)
            return None
        asked = _parsed(form.parser, _filled(typed.text, extension.shell.user_ns))
        asked.cell, asked.cell_offset = cell, _lines_above(form.verb.sign, extension.display.cell)
        asked.quiet = asked.quiet or typed.silent
        return _shown(form.verb, extension, asked)

    run.__name__ = form.verb.magic
    run.__doc__ = form.help.text
    return run


def _lines_above(sign: str, cell: str) -> int:
    """Lines of the cell before its source: the magic's, and blank ones or `%%time` above it."""
    lines = enumerate(cell.splitlines(), 1)
    starts = (n for n, line in lines if line.lstrip("# \t").startswith(sign))
    return next(starts, 1)


def _filled(line: str, variables: Mapping[str, Any]) -> str:
    """The line with the value of each `{variable}` that an option is given; all else stays.

    Raises:
        UsageError: there is no such variable.
    """

    def value(found: re.Match[str]) -> str:
        if found[2] not in variables:
            raise UsageError(f"{found[0]}: there is no variable {found[2]}")
        return found[1] + shlex.quote(str(variables[found[2]]))

    return _VARIABLE.sub(value, line)


def _parsed(parser: Parser, line: str) -> Namespace:
    try:
        asked = parser.parse_line(line)
    except BadLine as error:
        raise UsageError(str(error)) from None
    if asked.out is not None and not asked.out.isidentifier():
        raise UsageError(f"-o {asked.out}: that is no name of a variable")
    return asked


def _shown(verb: Verb, extension: Extension, asked: Namespace) -> object:
    """The value, for IPython to show; a failed verdict is shown here, and raised."""
    beside = getattr(asked, "bg", False)
    act = _begun if beside else _value
    value: Any = act(verb, extension, asked)
    if asked.out is not None:
        extension.shell.user_ns[asked.out] = value
    if beside:
        return value
    if verb.name == "template":
        extension.shell.set_next_input(value.cell)
    if not verb.judges or _passes(value, asked.no_raise):
        return None if asked.quiet else value
    if not asked.quiet:
        extension.display.show(value)
    above = not asked.quiet and not extension.display.in_notebook
    raise tracebacks.failure(value, whole=asked.traceback, above=above)


def _begun(verb: Verb, extension: Extension, asked: Namespace) -> Job:
    """The handle of a call that runs beside the notebook."""
    return extension.begin(
        lambda lab: verb.call(lab, asked),
        title=_title(verb, asked),
        passes=lambda value: not verb.judges or _passes(value, asked.no_raise),
        quiet=asked.quiet,
    )


def _value(verb: Verb, extension: Extension, asked: Namespace) -> Any:
    try:
        return extension.perform(
            lambda lab: verb.call(lab, asked), title=_title(verb, asked), quiet=asked.quiet
        )
    except TritonMagicsError as error:
        if asked.traceback:
            raise
        offset = asked.cell_offset if verb.cell else 0
        raise tracebacks.explained(error, cell_offset=offset) from None
    except KeyboardInterrupt as interrupt:
        lines = ["KeyboardInterrupt: stopped; what was done by then is kept"]
        raise tracebacks.told(interrupt, lines) from None


def _title(verb: Verb, asked: Namespace) -> str:
    """`validate softmax v2`."""
    given = (getattr(asked, name, None) for name in ("op", "version"))
    return " ".join([verb.name, *(str(name) for name in given if name)])


def _passes(value: Any, no_raise: bool) -> bool:
    """Whether the cell may pass; after an interrupt none does."""
    from triton_magics.model import Status

    if getattr(value, "status", None) is Status.INTERRUPTED:
        return False
    return no_raise or not failed(value)
