"""Write a next step as the user types it: a magic, a command, a call."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from triton_magics import verbs
from triton_magics.next_step import NextStep
from triton_magics.verbs._arguments import read_knob, split_commas
from triton_magics.verbs._base import Arg, Verb, args_of


def as_magic(step: NextStep) -> str:
    """Return `%triton_validate softmax v3 --dtype float16`."""
    verb = verbs.find(step.verb)
    if verb is None:
        return " ".join([f"%triton_{step.verb}", *map(str, step.arguments.values())])
    return " ".join([verb.sign, *_words(verb, step.arguments, file=False)])


def as_command(step: NextStep) -> str:
    """Return `triton-magics validate softmax v3 --dtype float16`; FILE stands for a cell."""
    verb = verbs.find(step.verb)
    if verb is None:
        return " ".join(["triton-magics", step.verb, *map(str, step.arguments.values())])
    return " ".join([verb.command, *_words(verb, step.arguments, file=True)])


def as_python(step: NextStep) -> str:
    """Return `tm.validate('softmax', 'v3', dtypes=('float16',))`."""
    verb = verbs.find(step.verb)
    by_position: list[str] = []
    by_name: list[str] = []
    for name, value in step.arguments.items():
        field = verb.request.model_fields.get(name) if verb else None
        arg = next(iter(args_of(field)), None) if field else None
        if arg is not None and arg.variadic and isinstance(value, Sequence):
            by_position += map(repr, value)
        elif arg is not None and arg.by_position:
            by_position.append(repr(value))
        else:
            by_name.append(f"{name}={value!r}")
    name = verbs.method_name(verb.name if verb else step.verb)
    return f"tm.{name}({', '.join([*by_position, *by_name])})"


def with_step(text: str, step: NextStep | None, phrase: Callable[[NextStep], str]) -> str:
    """Return `softmax v1 has not passed ... Next: %triton_validate softmax v1`."""
    return f"{text} Next: {phrase(step)}" if step else text


def _words(verb: Verb, arguments: Mapping[str, object], *, file: bool) -> Iterator[str]:
    options: list[str] = []
    for name, field in verb.request.model_fields.items():
        args = args_of(field)
        if args and args[0].kind == "cell" and file:
            yield "FILE"
        if name not in arguments or not args:
            continue
        if args[0].kind == "place":
            yield from map(_quote, _values(args[0], arguments[name]))
        else:
            options += _option(name, args, arguments[name])
    yield from options


def _option(name: str, args: Sequence[Arg], value: Any) -> Iterator[str]:
    for arg in args:
        if arg.is_constant and arg.const == value:
            yield arg.flags[0]
            return
    arg = next(arg for arg in args if not arg.is_constant)
    flag = arg.flags[0] if arg.flags else f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        if value != flag.startswith("--no-"):
            yield flag
        return
    for word in _values(arg, value):
        yield flag
        yield _quote(word)


def _values(arg: Arg, value: Any) -> list[str]:
    """Return the words of a value: one, or one for each of several."""
    if isinstance(value, Mapping):
        return [f"{name}={','.join(map(str, values))}" for name, values in value.items()]
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [str(value)]
    if arg.read is split_commas:
        return [",".join(map(str, value))]
    if value and all(isinstance(each, int) for each in value) and arg.read is not read_knob:
        return ["x".join(map(str, value))]  # one shape
    return [word for each in value for word in _values(arg, each)]


def _quote(word: str) -> str:
    """Return a word as a shell reads it; a placeholder such as OP stays as it is."""
    return shlex.quote(word)
