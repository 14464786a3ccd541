"""One method per verb, derived from its request; `verb_methods.pyi` has their signatures."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from triton_magics import verbs
from triton_magics.errors import UserError
from triton_magics.session import Session
from triton_magics.verbs._base import Verb
from triton_magics.verbs._phrase import as_python


class VerbMethods:
    """The verbs, in a session."""

    session: Session


def _method(verb: Verb) -> Callable[..., Any]:
    def call(self: VerbMethods, *args: Any, **options: Any) -> Any:
        try:
            return verb.run(self.session, verb.bind(args, options))
        except UserError as error:
            if error.next_step:
                error.add_note(f"Next: {as_python(error.next_step)}")
            raise

    call.__name__ = verbs.method_name(verb.name)
    call.__qualname__ = f"Lab.{call.__name__}"
    call.__doc__ = verb.doc
    signature = verb.signature
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *signature.parameters.values()]
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


class _LazyMethod:
    """Import a verb when its method is first looked up, and stand aside for the method."""

    def __init__(self, name: str, verb: str) -> None:
        self._name, self._verb = name, verb

    def __get__(self, lab: VerbMethods | None, owner: type[VerbMethods]) -> Callable[..., Any]:
        setattr(VerbMethods, self._name, _method(verbs.load(self._verb)))
        method: Callable[..., Any] = getattr(owner if lab is None else lab, self._name)
        return method


for _verb in verbs.names():
    for _name in map(verbs.method_name, (_verb, *verbs.old_names(_verb))):
        setattr(VerbMethods, _name, _LazyMethod(_name, _verb))
