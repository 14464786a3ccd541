"""The help of a magic, from its arguments: for `?`, for `--help` and for docs/magics.md."""

from __future__ import annotations

from dataclasses import dataclass

from triton_magics.verbs import Argument, Verb

_WIDTH = 24


@dataclass(frozen=True)
class Help:
    """What a magic does, how it is written, an example, and what each argument means."""

    verb: Verb
    arguments: tuple[Argument, ...]

    @property
    def faces(self) -> dict[str, str]:
        """As a display shows it."""
        return {"text/plain": self.text, "text/markdown": self.markdown}

    @property
    def usage(self) -> str:
        """`%triton_best OP [--now] ...`: what must stand first, then what may."""
        places = [a for a in self.arguments if a.positional]
        options = [a for a in self.arguments if not a.positional]
        words = [*map(_place, places), *(f"[{_spelt(a, all_flags=False)}]" for a in options)]
        return " ".join([self.verb.sign, *words])

    @property
    def text(self) -> str:
        """As plain text."""
        rows = "\n".join(f"  {_spelt(a):<{_WIDTH}} {a.options['help']}" for a in self.arguments)
        example = "\n".join(f"  {line}" for line in self.verb.example.splitlines())
        return f"{self.verb.help}\n\n{self.usage}\n\n{rows}\n\nExample:\n{example}\n"

    @property
    def markdown(self) -> str:
        """As Markdown, with a table of the arguments."""
        rows = "\n".join(f"| `{_spelt(a)}` | {a.options['help']} |" for a in self.arguments)
        return (
            f"{self.verb.help}\n\n```python\n{self.verb.example}\n```\n\n"
            f"```text\n{self.usage}\n```\n\n| argument | meaning |\n|---|---|\n{rows}\n"
        )


def _place(argument: Argument) -> str:
    """`OP`, `[OP]` where it may be missing, `[VERSION ...]` where there may be several."""
    metavar = str(argument.options["metavar"])
    forms = {"?": f"[{metavar}]", "*": f"[{metavar} ...]"}
    return forms.get(argument.options.get("nargs"), metavar)  # type: ignore[arg-type]


def _spelt(argument: Argument, *, all_flags: bool = True) -> str:
    """`-o NAME, --out NAME`."""
    metavar = str(argument.options.get("metavar", ""))
    if argument.positional:
        return metavar
    flags = argument.flags if all_flags else argument.flags[:1]
    return ", ".join(f"{flag} {metavar}".rstrip() for flag in flags)
