"""Offer each verb as a magic: parse the line, call the Lab once, return the value."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from IPython.core.error import UsageError
from IPython.core.magic import no_var_expand

from triton_magics import lab_thread, verbs
from triton_magics.errors import Interrupted, TritonMagicsError
from triton_magics.notebook import tracebacks
from triton_magics.notebook.discarded import is_value_discarded, is_value_displayed
from triton_magics.notebook.display import corrected_cell, template_cell
from triton_magics.notebook.help import Help
from triton_magics.notebook.magic_line import MagicLine, expand_variables
from triton_magics.verbs._arguments import Argument, BadLine, Parser, argument

if TYPE_CHECKING:
    from triton_magics.lab import Lab
    from triton_magics.notebook.background import Job
    from triton_magics.notebook.display import Display
    from triton_magics.verbs._base import Request, Verb


class NotebookSession(Protocol):
    """The part of the extension that a magic uses.

    Attributes:
        shell: the IPython shell.
        display: shows values in the running cell.
    """

    shell: Any
    display: Display

    def wait_for_imports(self, *, quiet: bool) -> None:
        """Return once the engine is imported; unless quiet, show meanwhile that it is."""

    def progress(
        self, title: str, quiet: bool, *, is_job: bool = False
    ) -> AbstractContextManager[Lab]:
        """Give the Lab; meanwhile show progress and a kernel's prints."""

    def start_job(
        self,
        verb: Callable[[Lab], Any],
        *,
        title: str,
        passes: Callable[[Any], bool],
        quiet: bool = False,
    ) -> Job:
        """Start a job in the background."""

    def open_panel(self, lab: Lab, request: Any) -> Any:
        """Return a panel, or the state where no panel can be shown."""


PANEL = "panel"  # a magic whose verb only a notebook has
_HELP = ("-h", "--help")
_QUIET = ("-q", "--quiet")
_COMMON = (
    argument("-o", "--out", metavar="NAME", help="store the value in this variable"),
    argument(*_QUIET, action="store_true", help="show nothing"),
    argument("--traceback", action="store_true", help="show every frame of an error"),
    argument(*_HELP, action="store_true", help="show this"),
)
_NO_RAISE = argument(
    "--no-raise", action="store_true", help="show a failed verdict without failing the cell"
)
_BG = argument(
    "--bg", action="store_true", help="run in the background; the value is .result() of the handle"
)


@dataclass(frozen=True)
class Form:
    """The arguments and the parser of a magic."""

    verb: Verb
    arguments: tuple[Argument, ...]
    parser: Parser

    @classmethod
    def of(cls, verb: Verb) -> Form:
        """Return the form of a verb, with the options that every magic has."""
        more = (*((_NO_RAISE,) if verb.judges else ()), *((_BG,) if verb.long_running else ()))
        own = (*verb.arguments, *more, *_COMMON)
        return cls(verb, own, Parser(verb.sign, own))

    @property
    def help(self) -> Help:
        """The help for `?`, `--help` and docs/magics.md."""
        return Help(self.verb, self.arguments)


def form_of(name: str) -> Form:
    """Return the form of a magic, by its name without `triton_`; imports its verb."""
    lab_thread.wait_for_imports()
    if name == PANEL:
        from triton_magics.notebook.panel_verb import VERB

        return Form.of(VERB)
    return Form.of(verbs.load(name))


@dataclass
class MagicCall:
    """A parsed line: verb, request, options of every magic, and later the value."""

    verb: Verb
    request: Request
    options: Namespace
    value: Any = field(default=None)

    @property
    def title(self) -> str:
        """Title of the progress line: `validate softmax v2`."""
        names = (getattr(self.request, field, None) for field in ("op", "version"))
        return " ".join([self.verb.name, *(str(name) for name in names if name)])

    @property
    def is_job(self) -> bool:
        """True if a worker has to run something."""
        return self.verb.judges or self.verb.long_running

    @property
    def no_raise(self) -> bool:
        """True if a failed verdict does not fail the cell."""
        return getattr(self.options, "no_raise", False) or not self.verb.judges

    def passes(self, value: Any) -> bool:
        """Return True if the cell passes; an interrupted one does not."""
        if not self.verb.judges:
            return True
        if getattr(value, "status", None) == "interrupted":
            return False
        return self.no_raise or not verbs.is_failure(value)


class Magic:
    """The function that IPython calls for one magic; its verb is imported when it is first used."""

    def __init__(self, name: str, *, takes_cell: bool, extension: NotebookSession) -> None:
        """Make a magic.

        Args:
            name: name of the verb.
            takes_cell: True for a cell magic.
            extension: shows values and keeps the Lab.
        """
        self.name = self.__name__ = f"triton_{name}"
        self.kind = "cell" if takes_cell else "line"
        self._verb_name = name
        self._extension = extension
        # Not `@output_can_be_silenced`: after the work is done its tokenizer fails at `tl.dot(`.
        no_var_expand(self)  # `expand_variables` heeds quotes
        self.needs_local_scope = True  # the variables of a function that calls the magic

    @cached_property
    def form(self) -> Form:
        """The verb's arguments and their parser."""
        return form_of(self._verb_name)

    @property
    def help_text(self) -> str:
        """Text of `%triton_bench?`."""
        return self.form.help.text

    def __call__(
        self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None
    ) -> object:
        """Parse the line, call the Lab, return the value."""
        call = self._parse(line, cell, local_ns or {})
        if call is None:
            return None
        extension, quiet = self._extension, call.options.quiet
        if getattr(call.options, "bg", False):
            return self._start_job(call)
        with (
            self._translate_errors(call.options, call),
            extension.progress(call.title, quiet, is_job=call.is_job) as lab,
        ):
            if self._verb_name == PANEL:
                call.value = extension.open_panel(lab, call.request)
            else:
                call.value = lab.perform(call.verb, call.request)
        return self._show(call)

    def _parse(self, line: str, cell: str | None, local_ns: Mapping[str, Any]) -> MagicCall | None:
        """Return the parsed line; None if it asks for help, which is displayed."""
        extension = self._extension
        magic_line = MagicLine.parse(line, is_cell=self.kind == "cell")
        words = magic_line.text.split()
        quiet = magic_line.silent or not set(_QUIET).isdisjoint(words)
        extension.wait_for_imports(quiet=quiet)
        form = self.form
        if not set(_HELP).isdisjoint(words):
            extension.display.show_bundle(form.help.mime_bundle)
            return None
        variables = {**extension.shell.user_ns, **local_ns}
        options = _parse_options(form.parser, expand_variables(magic_line.text, variables))
        options.quiet = options.quiet or magic_line.silent
        options.cell_offset = _count_lines_above(form.verb.sign, extension.display.cell)
        with self._translate_errors(options):
            name = form.verb.redirect(options)
            verb = form.verb if name == form.verb.name else verbs.load(name)
            request = verb.read(options, cell=cell, cell_offset=options.cell_offset)
        return MagicCall(verb, request, options)

    @contextmanager
    def _translate_errors(
        self, options: Namespace, call: MagicCall | None = None
    ) -> Iterator[None]:
        """Explain errors in one line; store the partial value of an interrupted job."""
        try:
            yield
        except TritonMagicsError as error:
            if options.traceback:
                raise
            offset = options.cell_offset if self.kind == "cell" else 0
            raise tracebacks.explain_error(error, cell_offset=offset) from None
        except Interrupted as interrupt:
            if call is None:
                raise
            call.value = interrupt.value
        except KeyboardInterrupt as interrupt:
            lines = ["KeyboardInterrupt: stopped; completed work is saved"]
            raise tracebacks.set_lines(interrupt, lines) from None

    def _start_job(self, call: MagicCall) -> Job:
        """Start the call in the background; return its handle."""

        def perform(lab: Lab) -> Any:
            return lab.perform(call.verb, call.request)

        job = self._extension.start_job(
            perform, title=call.title, passes=call.passes, quiet=call.options.quiet
        )
        if call.options.out is not None:
            self._extension.shell.user_ns[call.options.out] = job
        return job

    def _show(self, call: MagicCall) -> object:
        """Return the value for IPython to show; show and raise a failed verdict."""
        extension, options, value = self._extension, call.options, call.value
        if options.out is not None:
            extension.shell.user_ns[options.out] = value
        if call.verb.name == "template":
            extension.shell.set_next_input(template_cell(value))
        if call.verb.name == "fix":
            extension.shell.set_next_input(corrected_cell(value), replace=True)
        if call.passes(value):
            page = call.verb.page(value) if call.verb.page else value
            if options.quiet:
                return None if is_value_displayed() else value
            if page is not None and is_value_discarded():
                extension.display.show(page)
            return page
        if not options.quiet:
            extension.display.show(value)
        raise tracebacks.kernel_failure(
            value, full_traceback=options.traceback, value_is_shown=not options.quiet
        )


# IPython reads the help of a magic here. A class body cannot set both this and a docstring.
Magic.__doc__ = property(lambda magic: magic.help_text)  # type: ignore[assignment]


def make_magics(extension: NotebookSession) -> tuple[Magic, ...]:
    """Return every magic, the panel included; imports no verb."""
    with_cell = verbs.cell_names()
    return tuple(
        Magic(name, takes_cell=name in with_cell, extension=extension)
        for name in (*verbs.names(), PANEL)
    )


def _count_lines_above(sign: str, cell: str) -> int:
    """Count the lines before the source: the magic, and blank lines or `%%time` above it."""
    lines = enumerate(cell.split("\n"), 1)
    starts = (n for n, line in lines if line.lstrip("# \t").startswith(sign))
    return next(starts, 1)


def _parse_options(parser: Parser, line: str) -> Namespace:
    try:
        options = parser.parse_line(line)
    except BadLine as error:
        raise UsageError(str(error)) from None
    if options.out is not None and not options.out.isidentifier():
        raise UsageError(f"-o {options.out}: not a name of a variable")
    return options
