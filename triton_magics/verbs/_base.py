"""A verb and its request, from which every front end derives what it offers."""

from __future__ import annotations

import inspect
from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Self, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, field_validator
from pydantic.fields import FieldInfo

from triton_magics.errors import BadName, BadValue, UserError
from triton_magics.next_step import NextStep
from triton_magics.verbs._arguments import Argument, split_commas
from triton_magics.verbs._refusal import refusal

if TYPE_CHECKING:
    from triton_magics.session import Session

ArgKind = Literal["place", "option", "cell", "python"]
_UNSET: Any = object()
_EXAMPLES = {"op": "softmax", "version": "v1", "pattern": "reduction"}


@dataclass(frozen=True)
class Arg:
    """The form of a request's field on a line of words, and in a call.

    Attributes:
        help: meaning, for `--help` and docs.
        kind: `place`: a word by its position; `option`: a flag; `cell`: the notebook's cell, or a
            file; `python`: in calls only.
        flags: of an option; by default `--` and the field's name.
        names: kinds of names that its values are, for completion: op, version, size, dtype ...
        metavar: placeholder in help; by default the name of a place in capitals.
        nargs: as in argparse.
        read: makes a value of one word.
        join: makes the field's value of all values on the line.
        const: value that the bare flag stands for.
        positional: the call takes it by position; by default a place and a cell are so taken.
        variadic: the call takes it as `*name`.
        choices: returns the known values, for help; for names that a package can add.
        doc: meaning in a call, where it differs from `help`.
        is_local: it names a program of this machine, so that no server takes it.
    """

    help: str
    kind: ArgKind = "option"
    flags: tuple[str, ...] = ()
    names: str = ""
    metavar: str | None = None
    nargs: str | None = None
    read: Callable[[str], Any] | None = None
    join: Callable[[list[Any]], Any] | None = None
    const: Any = _UNSET
    positional: bool | None = None
    variadic: bool = False
    choices: Callable[[], Sequence[str]] | None = None
    doc: str = ""
    is_local: bool = False

    @property
    def by_position(self) -> bool:
        """True where a call may pass it without its name."""
        return self.kind in ("place", "cell") if self.positional is None else self.positional

    @property
    def is_constant(self) -> bool:
        """True for a bare flag that stands for one value of its field."""
        return self.const is not _UNSET


def place(help: str, **more: Any) -> Arg:  # noqa: A002 (argparse's word)
    """Describe a word that stands by its position."""
    return Arg(help, kind="place", **more)


def option(help: str, *flags: str, **more: Any) -> Arg:  # noqa: A002
    """Describe an option; without flags it is named after its field."""
    return Arg(help, flags=flags, **more)


def constant(help: str, flag: str, value: object) -> Arg:  # noqa: A002
    """Describe a bare flag that stands for a value."""
    return Arg(help, flags=(flag,), const=value)


def rule(check: Callable[[Any], object]) -> AfterValidator:
    """Make a validator of a check that raises UserError; None is not checked."""

    def apply(value: Any) -> Any:
        if value is not None:
            try:
                check(value)
            except UserError as error:
                raise ValueError(error) from error
        return value

    return AfterValidator(apply)


class Request(BaseModel):
    """Parameters of a verb, checked; each field carries its `Arg`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Take the description of each field, for the JSON schema, from its `Arg`."""
        for field in cls.model_fields.values():
            own = [arg for arg in args_of(field) if not arg.is_constant]
            if field.description is None and own:
                field.description = own[0].doc or own[0].help

    @field_validator("*", mode="after")
    @classmethod
    def _freeze(cls, value: Any) -> Any:
        """Take a list as a tuple, which no caller changes later."""
        return tuple(value) if isinstance(value, list) else value

    @property
    def local_fields(self) -> tuple[str, ...]:
        """Fields with a value that names a program of this machine."""
        return tuple(
            name
            for name, field in type(self).model_fields.items()
            if getattr(self, name) is not None and any(arg.is_local for arg in args_of(field))
        )

    def evolve(self, **changes: object) -> Self:
        """Return this request with other values in some fields, checked again."""
        return self.checked({**dict(self), **changes})

    @classmethod
    def checked(cls, values: Mapping[str, object]) -> Self:
        """Return a request of these values.

        Raises:
            UserError: names every value that is not allowed, and what is.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise refusal(cls, error) from None


def args_of(field: FieldInfo) -> tuple[Arg, ...]:
    """Return the ways in which a field is written; a later one replaces an earlier of its flags."""
    args = [each for each in field.metadata if isinstance(each, Arg)]
    return tuple({(each.kind, each.flags): each for each in args}.values())


@dataclass(frozen=True)
class Switch:
    """A flag of one verb that asks for another, which has most of its arguments.

    Attributes:
        flag: `--plan`.
        verb: name of the other.
        alone: no op may stand beside it.
    """

    flag: str
    verb: str
    help: str
    alone: bool = False


@dataclass(frozen=True)
class Verb:
    """One thing to do: a request, the function that does it, and facts for the front ends.

    Attributes:
        name: of its module, the Lab's method, the command, and after `triton_` of the magic.
        request: its parameters.
        run: does it, in a session; returns its result.
        help: one sentence.
        example: lines to type in a notebook.
        rank: place in lists, in the order of work.
        takes_cell: the field `source` is a notebook's cell, a file on the command line.
        judges: its result can be a failed verdict, which fails a cell or a command.
        long_running: a notebook offers to run it in the background.
        runs_jobs: it runs jobs, though it neither judges nor takes long; see `is_queued`.
        reads_files: it reads files outside the workspace, so that no server offers it.
        switches: flags that ask for another verb.
        page: makes a value to show of a result that has no view of its own.
    """

    name: str
    request: type[Request]
    run: Callable[[Session, Any], Any]
    help: str
    example: str
    rank: int
    takes_cell: bool = False
    judges: bool = False
    long_running: bool = False
    runs_jobs: bool = False
    reads_files: bool = False
    switches: tuple[Switch, ...] = ()
    page: Callable[[Any], Any] | None = None

    @property
    def is_queued(self) -> bool:
        """True where it needs a device: a server queues it."""
        return self.judges or self.long_running or self.runs_jobs

    @property
    def magic(self) -> str:
        """Name of the magic, without its sign."""
        return f"triton_{self.name}"

    @property
    def sign(self) -> str:
        """First word of its line in a notebook: `%triton_bench`, `%%triton_kernel`."""
        return f"{'%%' if self.takes_cell else '%'}{self.magic}"

    @property
    def command(self) -> str:
        """Its first words in a terminal: `triton-magics bench`."""
        return f"triton-magics {self.name.replace('_', '-')}"

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """Arguments of a line, in the order of the request's fields."""
        own = [
            _argument(name, field, arg)
            for name, field in self.request.model_fields.items()
            for arg in args_of(field)
            if arg.kind in ("place", "option")
        ]
        return (*own, *map(_switch, self.switches))

    @cached_property
    def signature(self) -> inspect.Signature:
        """Signature of the call, without `self`."""
        fields = self.request.model_fields.items()
        parameters = [_parameter(name, field) for name, field in fields]
        parameters.sort(key=lambda p: p.kind)  # stable: by position, *variadic, by name
        result = inspect.get_annotations(self.run).get("return", "Any")
        return inspect.Signature(parameters, return_annotation=result)

    @cached_property
    def doc(self) -> str:
        """Docstring of the call: that of `run`, with the parameters."""
        text = inspect.cleandoc(self.run.__doc__ or self.help)
        args = [
            f"    {name}: {field.description or ''}"
            for name, field in self.request.model_fields.items()
        ]
        head, raises, rest = text.partition("\nRaises:\n")
        section = "\nArgs:\n" + "\n".join(args) + "\n" if args else ""
        return f"{head.rstrip()}\n{section}{raises}{rest}".rstrip() + "\n"

    def bind(self, args: Sequence[object], options: Mapping[str, object]) -> Request:
        """Return the request of a call.

        Raises:
            TypeError: an argument is missing, unknown or given twice.
            UserError: a value is not allowed.
        """
        return self.request.checked(self.signature.bind(*args, **options).arguments)

    def read(self, line: Namespace, *, cell: str | None = None, cell_offset: int = 0) -> Request:
        """Return the request of a parsed line.

        Args:
            line: the arguments that were given, by the names of the fields.
            cell: text of the cell or file, where the verb takes one.
            cell_offset: lines of the cell before its source.

        Raises:
            BadName: a word that it needs is missing.
            UserError: a value is not allowed.
        """
        values: dict[str, Any] = {}
        for name, field in self.request.model_fields.items():
            if hasattr(line, name):
                joins = [arg.join for arg in args_of(field) if arg.join]
                value = getattr(line, name)
                values[name] = joins[0](value) if joins else value
        if self.takes_cell:
            cell_fields = {"source": cell or "", "cell_offset": cell_offset}
            values |= {k: v for k, v in cell_fields.items() if k in self.request.model_fields}
        self._require(values)
        return self.request.checked(values)

    def _require(self, values: Mapping[str, object]) -> None:
        """Refuse a line without a word that it needs, and that argparse lets through."""
        fields = self.request.model_fields.items()
        for name, field in fields:
            if field.is_required() and name not in values:
                instead = "".join(f", or add {switch.flag}" for switch in self.switches)
                raise BadName(f"name the {name}{instead}.", next_step=self._shortest)

    @property
    def _shortest(self) -> NextStep:
        """An example with the words that the verb needs, and no others."""
        needed = (
            name
            for name, field in self.request.model_fields.items()
            if field.is_required() and any(arg.kind == "place" for arg in args_of(field))
        )
        return NextStep(self.name, {name: _EXAMPLES.get(name, name.upper()) for name in needed})

    def redirect(self, line: Namespace) -> str:
        """Return the verb that a line asks for: this one, or that of a switch on it.

        Raises:
            BadValue: an op stands beside a switch that takes none.
        """
        name: str = getattr(line, "switch", self.name)
        for switch in self.switches:
            op = getattr(line, "op", None)
            if switch.verb == name and switch.alone and op is not None:
                raise BadValue(f"{switch.flag} takes no op: leave out {op}")
        return name


def _argument(name: str, field: FieldInfo, arg: Arg) -> Argument:
    """Translate a field for argparse; what a line does not name is not in the namespace."""
    options: dict[str, Any] = {"help": arg.help + _default_text(field, arg), "default": SUPPRESS}
    base, choices = _plain_type(field.annotation)
    if arg.kind == "place":
        options |= {"metavar": arg.metavar or name.upper(), "nargs": arg.nargs, "type": arg.read}
        return Argument((name,), arg.names, {k: v for k, v in options.items() if v is not None})
    flags = arg.flags or (f"--{name.replace('_', '-')}",)
    options["dest"] = name
    if arg.is_constant:
        return Argument(flags, "", options | {"action": "store_const", "const": arg.const})
    if base is bool:
        action = "store_false" if field.default is True else "store_true"
        return Argument(flags, "", options | {"action": action})
    options |= {"metavar": arg.metavar or name.upper(), "nargs": arg.nargs, "choices": choices}
    options["type"] = arg.read or (base if base in (int, float) else None)
    if base is Sequence and arg.nargs is None:
        options["action"] = "extend" if arg.read is split_commas else "append"
    options = {k: v for k, v in options.items() if v is not None}
    return Argument(flags, arg.names, options, arg.choices)


def _default_text(field: FieldInfo, arg: Arg) -> str:
    """Return ` (default: 10)` for an option with a default that a line can name."""
    is_named = arg.kind == "option" and not arg.is_constant and "(default:" not in arg.help
    is_named = is_named and field.default != ""
    is_value = isinstance(field.default, str | int | float) and not isinstance(field.default, bool)
    return f" (default: {field.default})" if is_named and is_value else ""


def _switch(switch: Switch) -> Argument:
    options = {"help": switch.help, "action": "store_const", "const": switch.verb}
    return Argument((switch.flag,), "", {**options, "dest": "switch", "default": SUPPRESS})


def _plain_type(annotation: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Return the type without None (a sequence's is Sequence), and the choices of a Literal."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        members = [each for each in get_args(annotation) if each is not NoneType]
        return _plain_type(members[0]) if len(members) == 1 else (str, None)
    if origin is Literal:
        return str, get_args(annotation)
    return origin or annotation, None


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    arg = next(iter(args_of(field)), Arg(""))
    if arg.variadic:
        return inspect.Parameter(name, inspect.Parameter.VAR_POSITIONAL, annotation="str")
    places = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    kind = places[arg.by_position]
    default = inspect.Parameter.empty if field.is_required() else field.default
    return inspect.Parameter(name, kind, default=default, annotation=type_text(field.annotation))


def type_text(annotation: Any) -> str:
    """Return a type as one writes it: `Sequence[tuple[int, ...]] | None`."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is NoneType:
        return "None"
    if annotation is Ellipsis:
        return "..."
    if origin in (Union, UnionType):
        return " | ".join(map(type_text, inner))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, inner))}]"
    if origin is not None and hasattr(annotation, "__metadata__"):
        return type_text(inner[0])
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(type_text, inner))}]"
    return str(getattr(annotation, "__name__", annotation))
