"""The step that a person or a program should take next, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NextStep:
    """A verb and its arguments; each front end writes it in its own form.

    `NextStep("validate", {"op": "softmax", "version": "v3"})` is `%triton_validate softmax v3` in a
    notebook, `triton-magics validate softmax v3` in a terminal, and
    `{"verb": "validate", "arguments": {...}}` in JSON.

    Attributes:
        verb: name of the verb, as in `triton_magics.verbs`.
        arguments: by the names of the verb's request, in the order in which they are typed.
    """

    verb: str
    arguments: Mapping[str, object] = field(default_factory=dict)
