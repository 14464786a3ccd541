"""Write docs/magics.md, api.md and rest.md from the verbs, the server and the docstrings of Lab.

python scripts/reference.py            write them
python scripts/reference.py --check    end with 1 where they are out of date
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import triton_magics
from triton_magics import model, verbs
from triton_magics.lab import Lab
from triton_magics.notebook.extension import TritonMagics
from triton_magics.notebook.help import Help
from triton_magics.notebook.magics import PANEL, form_of
from triton_magics.serve.app import create_app
from triton_magics.serve.job_service import JobService
from triton_magics.verbs._base import Verb

ROOT = Path(__file__).parents[1]
_MODULE = ("default_lab", "use", "configure", "close", "show")


def magics_page() -> str:
    """Return a page with every magic and its arguments, every setting, and the commands."""
    parts = [_MAGICS_HEAD]
    for name in (*(verb.name for verb in verbs.every()), PANEL):
        form = form_of(name)
        own = Help(form.verb, form.verb.arguments)  # those of every magic stand once, above
        parts += [f"## `{form.verb.sign}`", own.markdown.rstrip()]
    parts += ["## Settings", _SETTINGS_HEAD, _settings_table()]
    commands = ", ".join(f"`{verb.command.split()[-1]}`" for verb in verbs.every())
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
    """Return a page with every public method of Lab and every function of the module."""
    parts = [_API_HEAD]
    parts += ["## `Lab`", _entry(Lab, "triton_magics.Lab")]
    methods = [verbs.method_name(verb.name) for verb in verbs.every()]
    every = {name: getattr(Lab, name) for name in methods}
    parts += [_entry(member, f"Lab.{name}") for name, member in every.items()]
    parts += [_entry(member, f"Lab.{name}") for name, member in _methods(Lab, every)]
    parts += ["## The module"]
    parts += [_entry(getattr(triton_magics, name), f"triton_magics.{name}") for name in _MODULE]
    return "\n\n".join(parts) + "\n"


def _methods(cls: type, verbs_of_it: Container[str]) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the methods that are no verbs, in the order in which they stand in the code."""
    for name, member in vars(cls).items():
        if inspect.isfunction(member) and not name.startswith("_") and name not in verbs_of_it:
            yield name, member


class _Bare(str):
    """An annotation that is shown as it is written, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _entry(member: Callable[..., object], name: str) -> str:
    """Return a heading, the signature and the docstring."""
    signature = inspect.signature(member)
    own = [
        p.replace(annotation=_Bare(p.annotation))
        for p in signature.parameters.values()
        if p.name != "self"
    ]
    shown = signature.replace(parameters=own, return_annotation=_Bare(signature.return_annotation))
    call = _wrap(f"{name.rpartition('.')[2]}{shown}")
    text = _prose(inspect.cleandoc(member.__doc__ or ""))
    return f"### `{name}`\n\n```python\n{call}\n```\n\n{text}"


def _wrap(signature: str) -> str:
    """Break a long signature into one argument a line."""
    if len(signature) <= 88:
        return signature
    head, _, rest = signature.partition("(")
    inside, _, result = rest.rpartition(")")
    return f"{head}(\n    " + ",\n    ".join(_split(inside)) + f",\n){result}"


def rest_page() -> str:
    """Return a page with every route of the server, the fields of its requests, and examples."""
    from triton_magics.serve.rest import offered_verbs

    with tempfile.TemporaryDirectory() as folder:
        service = JobService(Lab(folder))
        try:
            document = create_app(service).openapi()
        finally:
            service.close()
    schemas = document["components"]["schemas"]
    verbs_of = {f"/v1/{verb.name}": verb for verb in offered_verbs()}
    rows = ["| route | |", "|---|---|"]
    details: list[str] = []
    of_verbs: list[str] = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            title = f"{method.upper()} {path}"
            if path in verbs_of:
                of_verbs.append(_verb_route(title, verbs_of[path], operation))
                continue
            text = operation.get("description") or operation["summary"]
            rows.append(f"| `{title}` | {' '.join(text.split())} |")
            if body := operation.get("requestBody"):
                name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                details.append(f"## `{title}`\n\n{_fields_table(schemas, name)}")
    details.append(f"## A kernel\n\n{_fields_table(schemas, 'KernelCode')}")
    return "\n\n".join([_REST_HEAD, "\n".join(rows), *details, *of_verbs]) + "\n"


def _verb_route(title: str, verb: Verb, operation: dict[str, Any]) -> str:
    example = json.dumps(operation["requestBody"]["content"]["application/json"]["example"])
    link = f"[its arguments](magics.md#{verb.sign.lstrip('%')})"
    return f"## `{title}`\n\n{verb.help} The body has {link}:\n\n    {example}"


def _fields_table(schemas: dict[str, Any], name: str) -> str:
    schema = schemas[name]
    rows = ["| field | type | default |", "|---|---|---|"]
    for field, each in schema["properties"].items():
        default = "required" if field in schema.get("required", ()) else each.get("default", "")
        shown = "" if default is None or default == {} else default
        rows.append(f"| `{field}` | {_type_text(each)} | {shown} |")
    return "\n".join(rows)


def _type_text(schema: dict[str, Any]) -> str:
    """Return `integer, 1 to 10000` of a schema."""
    members = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    each = {**schema, **members[0]} if members else schema
    if "$ref" in each:
        return each["$ref"].rpartition("/")[2].replace("KernelCode", "[kernel](#a-kernel)")
    if "enum" in each:
        return ", ".join(f"`{value}`" for value in each["enum"])
    least = each.get("minimum", each.get("exclusiveMinimum"))
    most = each.get("maximum", each.get("exclusiveMaximum"))
    limits = f", {least} to {most}" if least is not None and most is not None else ""
    return f"{each.get('type', 'any')}{limits}"


def _split(arguments: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts, depth = [""], 0
    for sign in arguments:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [argument.strip() for argument in parts]


def _prose(docstring: str) -> str:
    """Convert Google's sections to Markdown: `Args:` and its likes become lists."""
    lines: list[str] = []
    for line in docstring.splitlines():
        if line.endswith(":") and line[:-1] in ("Args", "Returns", "Raises", "Attributes"):
            lines += [f"**{line[:-1]}**", ""]
        elif line.startswith("    ") and not line.startswith("     "):
            lines.append(f"- {line.strip()}")
        else:
            lines.append(f"  {line.strip()}" if line.startswith("     ") else line)
    return "\n".join(lines).rstrip()


def stub() -> str:
    """Return the methods of the verbs with their signatures, for type checkers and editors."""
    methods = "\n".join(_stub_of(verb, name, "    ") for verb, name in _names_of_verbs())
    return f"{_STUB_HEAD.format(models=_imported_models())}\n{methods}"


def module_stub() -> str:
    """Return the functions of the package, for type checkers and editors."""
    functions = "\n".join(_stub_of(verb, name, "") for verb, name in _names_of_verbs())
    return f"{_MODULE_HEAD.format(models=_imported_models())}\n{functions}"


def _names_of_verbs() -> list[tuple[Verb, str]]:
    return [
        (verb, verbs.method_name(name))
        for verb in verbs.every()
        for name in (verb.name, *verbs.old_names(verb.name))
    ]


def _imported_models() -> str:
    results = {word for verb in verbs.every() for word in re.findall(r"[A-Z]\w+", _result(verb))}
    return ", ".join(sorted(results & set(vars(model))))


def _result(verb: Verb) -> str:
    return str(verb.signature.return_annotation)


def _stub_of(verb: Verb, name: str, indent: str) -> str:
    """Return the stub of a method (indented) or of a function; of `all`, a result of its own."""
    one, _, all_of_them = _result(verb).partition(" | ")
    if all_of_them != f"{one}s":
        return textwrap.indent(_definition(verb, name, _result(verb), bool(indent)), indent)
    narrow = _definition(verb, name, all_of_them, bool(indent), version="Literal['all']")
    head, _, tail = narrow.partition("(\n")
    ignored = f"{head}(  # type: ignore[overload-overlap]\n{tail}"
    wide = _definition(verb, name, one, bool(indent))
    return textwrap.indent(f"@overload\n{ignored}\n@overload\n{wide}", indent)


def _definition(verb: Verb, name: str, result: str, is_method: bool, **types: str) -> str:
    parameters = ["self"] if is_method else []
    for p in verb.signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not any(q.startswith("*") for q in parameters):
            parameters.append("*")
        star = "*" if p.kind is p.VAR_POSITIONAL else ""
        default = "" if p.default is p.empty else f" = {p.default!r}"
        parameters.append(f"{star}{p.name}: {types.get(p.name, p.annotation)}{default}")
    lines = "".join(f"    {p},\n" for p in parameters)
    doc = textwrap.indent(verb.doc.rstrip(), "    ").strip()
    call = f"def {name}(\n{lines})" if lines else f"def {name}()"
    return f'{call} -> {result}:\n    """{doc}\n    """\n'


_MODULE_HEAD = '''"""The package for type checkers. Written by scripts/reference.py; change the verb, not this file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from triton_magics.config import Settings
from triton_magics.lab import Lab as Lab
from triton_magics.model import {models}

__version__: str

def default_lab() -> Lab: ...
def open_lab() -> Lab | None: ...
def use(lab: Lab) -> None: ...
def configure(settings: Settings | None) -> None: ...
def close() -> None: ...
def show(value: object) -> None: ...
def load_ipython_extension(shell: Any) -> None: ...
def unload_ipython_extension(shell: Any) -> None: ...
'''

_STUB_HEAD = '''"""The methods of the verbs. Written by scripts/reference.py; change the verb, not this file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, overload

from triton_magics.model import {models}
from triton_magics.session import Session

class VerbMethods:
    session: Session
'''

STUB = "triton_magics/lab/verb_methods.pyi"
MODULE_STUB = "triton_magics/__init__.pyi"
PAGES: dict[str, Callable[[], str]] = {
    "docs/magics.md": magics_page,
    "docs/api.md": api_page,
    "docs/rest.md": rest_page,
    STUB: stub,
    MODULE_STUB: module_stub,
}

_MAGICS_HEAD = """# Magics

`%load_ext triton_magics` adds these magics. Each calls one method of `Lab` ([Python API](api.md)) and
returns its value, so `x = %triton_bench softmax` works. Every magic also takes

- `-o NAME`: assign the value to a variable;
- `-q`: show nothing; a `;` at the end of a line magic does the same;
- `--help`: show the help below;
- `--traceback`: show every frame of an error.

A magic that judges a kernel takes `--no-raise`: a failed verdict is shown and does not fail the cell.

A magic that runs long (validate, bench, sweep, ops) takes `--bg`: it runs in the background. The cell
ends at once, its output is updated, and its value is a handle with `.status`, `.result()` and
`.cancel()`. Several background jobs run one after the other.

This page is generated by `scripts/reference.py`."""

_REST_HEAD = """# REST API

The routes of [the server](server.md), with the fields of their requests. `GET /openapi.json` has the
same for programs, and the schema of each answer. A field that is not listed is refused; every fault
of a request is named at once. `?wait=false` answers at once with a job, `?wait=20` after 20 seconds.

This page is generated by `scripts/reference.py`."""

_SETTINGS_HEAD = """`%config TritonMagics` lists the settings with their values. The first of these places that has a
setting decides:

1. `%config TritonMagics.strict = True`, or in Python `Lab(settings=Settings(strict=True))` with
   `Settings` from `triton_magics.config`
2. the environment: `TRITON_MAGICS_STRICT=1`
3. the workspace's pyproject.toml:

   ```toml
   [tool.triton_magics]
   strict = true
   ```

4. a profile of IPython
5. the default

An unknown setting is refused, and so is a value that is not allowed."""

_CLI_HEAD = """The verbs are commands with the same arguments: {commands}.

    triton-magics validate softmax v1 --json

[Command line](command_line.md) has the exit codes, the JSON and shell completion."""

_API_HEAD = """# Python API

Every verb is a method of `Lab` and a function of the package, under the name of its magic and command:

```python
import triton_magics as tm

tm.kernel("softmax", "v1", open("v1.py").read())
tm.show(tm.validate("softmax", "v1"))
tm.show(tm.bench("softmax"))
```

The functions `tm.op`, `tm.kernel`, `tm.run`, `tm.validate`, ... are the methods of one default `Lab`. In a
notebook it is the Lab of the magics. A verb returns a value; a kernel that fails is a status of that
value. An error that the caller can fix is a `UserError` (`triton_magics.errors`).

This page is generated by `scripts/reference.py`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages, or report the outdated ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(argv).check
    stale = [name for name, page in PAGES.items() if _read(ROOT / name) != page()]
    for name in stale:
        if not check:
            (ROOT / name).write_text(PAGES[name](), encoding="utf-8")
        sys.stdout.write(f"{'out of date' if check else 'written'}: {name}\n")
    return int(check and bool(stale))


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
