"""Writing of next steps: each front end passes the function that writes its own form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import code

Phrase = Callable[[NextStep], str]
# Pages of the knowledge base name steps as `{{validate op=softmax version=v1}}`.
_PLACEHOLDER = re.compile(r"\{\{(\w+)((?: \w+=\S+?)*)\}\}")


def plain(step: NextStep) -> str:
    """Return the verb and its arguments without the form of any front end: `bench softmax`."""
    return " ".join([step.verb, *(_word(value) for value in step.arguments.values())])


def _word(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_word(field_value)}" for name, field_value in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return " ".join(map(_word, value))
    return str(value)


def step_code(step: NextStep, phrase: Phrase) -> str:
    """Return the step in the form of the front end, marked as code."""
    return code(phrase(step))


def fill(markdown: str, phrase: Phrase) -> str:
    """Return a page of the knowledge base with its steps written out."""
    return _PLACEHOLDER.sub(lambda match: phrase(_step(match)), markdown)


def _step(match: re.Match[str]) -> NextStep:
    pairs = (pair.partition("=") for pair in match[2].split())
    return NextStep(match[1], {name: value for name, _, value in pairs})
