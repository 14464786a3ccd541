"""Writes docs/magics.md and docs/api.md from the parsers and the Lab's own docstrings.

python scripts/reference.py            write them
python scripts/reference.py --check    end with 1 where they are out of date
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import triton_magics
from triton_magics.lab import Lab
from triton_magics.notebook.extension import TritonMagics
from triton_magics.notebook.help import Help
from triton_magics.notebook.magics import forms
from triton_magics.verbs import VERBS

DOCS = Path(__file__).parents[1] / "docs"
_MODULE = ("default_lab", "use", "configure", "close", "show")


def magics_page() -> str:
    """Every magic with its arguments, every setting, and the commands."""
    parts = [_MAGICS_HEAD]
    for form in forms(lambda _lab, _asked: None).values():
        own = Help(form.verb, form.verb.arguments)  # those of every magic are said once, above
        parts += [f"## `{form.verb.sign}`", own.markdown.rstrip()]
    parts += ["## Settings", _SETTINGS_HEAD, _settings_table()]
    commands = ", ".join(f"`{verb.name}`" for verb in VERBS.values())
    parts += ["## In a terminal", _CLI_HEAD.format(commands=commands)]
    return "\n\n".join(parts) + "\n"


def _settings_table() -> str:
    traits = TritonMagics.class_traits(config=True)
    rows = [
        f"| `{name}` | `{trait.default()!r}` | {trait.help.replace('<', '&lt;')} |"
        for name, trait in sorted(traits.items())
    ]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])


def api_page() -> str:
    """Every public method of a Lab, and what the module adds."""
    parts = [_API_HEAD]
    parts += ["## `Lab`", _entry(Lab, "triton_magics.Lab")]
    parts += [_entry(member, f"Lab.{name}") for name, member in _methods(Lab)]
    parts += ["## The module"]
    parts += [_entry(getattr(triton_magics, name), f"triton_magics.{name}") for name in _MODULE]
    return "\n\n".join(parts) + "\n"


def _methods(cls: type) -> Iterator[tuple[str, Callable[..., object]]]:
    """Its own, then those of its parts, in the order in which they stand in the code."""
    for part in cls.__mro__:
        for name, member in vars(part).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                yield name, member


class _Bare(str):
    """An annotation that is shown as it is written, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _entry(member: Callable[..., object], name: str) -> str:
    """A heading, the signature, and the docstring as it stands in the code."""
    signature = inspect.signature(member)
    own = [
        p.replace(annotation=_Bare(p.annotation))
        for p in signature.parameters.values()
        if p.name != "self"
    ]
    shown = signature.replace(parameters=own, return_annotation=_Bare(signature.return_annotation))
    call = _wrapped(f"{name.rpartition('.')[2]}{shown}")
    text = _prose(inspect.cleandoc(member.__doc__ or ""))
    return f"### `{name}`\n\n```python\n{call}\n```\n\n{text}"


def _wrapped(signature: str) -> str:
    """One argument a line where it would be too long."""
    if len(signature) <= 88:
        return signature
    head, _, rest = signature.partition("(")
    inside, _, result = rest.rpartition(")")
    return f"{head}(\n    " + ",\n    ".join(_split(inside)) + f",\n){result}"


def _split(arguments: str) -> list[str]:
    """At the commas that are in no bracket."""
    found, depth = [""], 0
    for sign in arguments:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return [argument.strip() for argument in found]


def _prose(docstring: str) -> str:
    """Google's sections as Markdown: `Args:` and its likes become lists."""
    lines: list[str] = []
    for line in docstring.splitlines():
        if line.endswith(":") and line[:-1] in ("Args", "Returns", "Raises", "Attributes"):
            lines += [f"**{line[:-1]}**", ""]
        elif line.startswith("    ") and not line.startswith("     "):
            lines.append(f"- {line.strip()}")
        else:
            lines.append(f"  {line.strip()}" if line.startswith("     ") else line)
    return "\n".join(lines).rstrip()


PAGES: dict[str, Callable[[], str]] = {"magics.md": magics_page, "api.md": api_page}

_MAGICS_HEAD = """# Magics

`%load_ext triton_magics` gives a notebook these. Each asks one method of `Lab` ([api](api.md)) and
returns its value, so that `x = %triton_bench softmax` works. Every one also takes

- `-o NAME`, which keeps the value in a variable;
- `-q`, which shows nothing; on a line magic a `;` at the end does the same;
- `--help`, which shows what is below;
- `--traceback`, which shows every frame where it fails;
- where it judges a kernel, `--no-raise`: a failed verdict is shown, and the cell passes all the same;
- where it takes long (validate, bench, sweep, ops), `--bg`: the cell ends at once, its output goes on
  changing, and its value is a handle: `.status`, `.result()`, `.cancel()`. Several run one after the other.

This page is written by `scripts/reference.py`; change the code, not the page."""

_SETTINGS_HEAD = """`%config TritonMagics` lists them with their values, `%config TritonMagics.strict = True`
sets one; in plain Python, `Lab(settings=Settings(strict=True))`. The environment sets it by
`TRITON_MAGICS_STRICT=1`, a workspace by its pyproject.toml:

```toml
[tool.triton_magics]
strict = true
```

What was chosen here goes before the environment, that before pyproject.toml, that before a profile of
IPython, that before the default. A name that is no setting is refused, and so is a value that it can't
have."""

_CLI_HEAD = """`triton-magics quickstart DIR` (or `python -m triton_magics`) copies the notebooks to begin with. The verbs are commands with
the same arguments: {commands}. Those that take a cell in a notebook take a file, or `-` for the
pipe. A magic's own word is a command too: `log` for `export`. `--workspace DIR` names the folder of
`kernels/` and `logs/`; `--json` prints the value as JSON, `--details` what is folded because it is long.
Hints and next steps name commands here, `triton-magics bench softmax`, where a notebook has
`%triton_bench softmax`; logs and exported notebooks keep the magics.

It ends with 0 where all is well, 1 after a verdict that is not `passed`, 2 where you can mend it,
3 where a part of this program failed, 130 when interrupted."""

_API_HEAD = """# Python API

Everything that a magic does, a call does:

```python
import triton_magics as tm

tm.write("softmax", "v1", open("v1.py").read())
tm.show(tm.validate("softmax", "v1"))
tm.show(tm.bench("softmax"))
```

The functions `tm.op`, `tm.write`, `tm.run`, `tm.validate`, ... are the methods of one default `Lab`,
in a notebook that of the magics. A verb returns a value, a failed kernel is its status; what the
caller can mend is raised as a `UserError`.

This page is written by `scripts/reference.py`; change the code, not the page."""


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the pages, or says which are out of date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(argv).check
    stale = [name for name, page in PAGES.items() if _read(DOCS / name) != page()]
    for name in stale:
        if not check:
            (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
        sys.stdout.write(f"{'out of date' if check else 'written'}: docs/{name}\n")
    return int(check and bool(stale))


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
