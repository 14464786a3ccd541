"""Write the help of a magic from its arguments, for `?`, `--help` and docs/magics.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from triton_magics.verbs._arguments import Argument

if TYPE_CHECKING:
    from triton_magics.verbs._base import Verb

_WIDTH = 24


@dataclass(frozen=True)
class Help:
    """Help of one magic: purpose, usage, example and arguments."""

    verb: Verb
    arguments: tuple[Argument, ...]

    @property
    def mime_bundle(self) -> dict[str, str]:
        """Text and Markdown."""
        return {"text/plain": self.text, "text/markdown": self.markdown}

    @property
    def usage(self) -> str:
        """Return `%triton_best OP [--now] ...`."""
        positional = [a for a in self.arguments if a.positional]
        options = [a for a in self.arguments if not a.positional]
        words = [
            *map(_placeholder, positional),
            *(f"[{_flags_text(a, all_flags=False)}]" for a in options),
        ]
        return " ".join([self.verb.sign, *words])

    @property
    def text(self) -> str:
        """Plain text."""
        rows = "\n".join(f"  {_flags_text(a):<{_WIDTH}} {a.help}" for a in self.arguments)
        example = "\n".join(f"  {line}" for line in self.verb.example.splitlines())
        return f"{self.verb.help}\n\n{self.usage}\n\n{rows}\n\nExample:\n{example}\n"

    @property
    def markdown(self) -> str:
        """Markdown with a table of the arguments."""
        rows = "\n".join(f"| `{_flags_text(a)}` | {a.help} |" for a in self.arguments)
        return (
            f"{self.verb.help}\n\n```python\n{self.verb.example}\n```\n\n"
            f"```text\n{self.usage}\n```\n\n| argument | meaning |\n|---|---|\n{rows}\n"
        )


def _placeholder(argument: Argument) -> str:
    """Return `OP`, `[OP]` if optional, `[VERSION ...]` if several are allowed."""
    metavar = str(argument.options["metavar"])
    forms = {"?": f"[{metavar}]", "*": f"[{metavar} ...]"}
    return forms.get(argument.options.get("nargs"), metavar)  # type: ignore[arg-type]


def _flags_text(argument: Argument, *, all_flags: bool = True) -> str:
    """Return `-o NAME, --out NAME`."""
    metavar = str(argument.options.get("metavar", ""))
    if argument.positional:
        return metavar
    flags = argument.flags if all_flags else argument.flags[:1]
    return ", ".join(f"{flag} {metavar}".rstrip() for flag in flags)
