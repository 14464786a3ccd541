"""Read and write kernels/: one file per version, a cell's code byte for byte under a header."""

from __future__ import annotations

from typing import NamedTuple

from triton_magics import languages
from triton_magics.errors import BadKernelSource, BadName
from triton_magics.languages import KernelLanguage
from triton_magics.model import KernelSource, parse_version
from triton_magics.store.safe_files import Folder

# Comments, not a docstring: a cell may begin with its own docstring and a __future__ import, and
# after a second docstring that import is a syntax error. Two lines: Python reads a coding line of a
# file in line 1 or 2 only, so one at the top of a cell has no effect here.
_HEADER = (
    "{name}, written by triton_magics. Below these two lines is the notebook's cell,",
    "byte for byte. An edit made here is kept: it becomes the version's next attempt.",
)
HEADER_LINES = len(_HEADER)
_PACKAGE_MARK = b'"""Written by triton_magics'
_PACKAGE = '''"""Written by triton_magics: the versions of {op}, each loaded when it is asked for.

`from kernels.{op} import v1` gives the module of version 1, whatever its full name is;
`from kernels.{op} import best` the function of the version to ship, which triton_magics chose.
"""

from importlib import import_module as _import_module
from pathlib import Path as _Path

# The files here, not a list of them: two branches that add a version each merge without a conflict.
_FILES = _Path(__file__).parent.glob("v*.py")
_NUMBERS = {{path.stem: path.stem.split("_")[0][1:] for path in _FILES}}
_NAMES = [name for name in _NUMBERS if name.isidentifier() and _NUMBERS[name].isdecimal()]
VERSIONS = tuple(sorted(_NAMES, key=lambda name: int(_NUMBERS[name])))
_BY_NUMBER = {{name.split("_")[0]: name for name in VERSIONS}}


def __getattr__(name):
    if name == "best":
        try:
            return _import_module(".chosen", __name__).best
        except ModuleNotFoundError as error:
            if error.name != f"{{__name__}}.chosen":
                raise
            raise AttributeError("no version of {op} is chosen yet: `best` does") from None
    module = _BY_NUMBER.get(name, name)
    if module in VERSIONS:
        return _import_module(f".{{module}}", __name__)
    raise AttributeError(f"{{__name__}} has no {{name!r}}; its versions: {{', '.join(VERSIONS)}}")


def __dir__():
    return [*globals(), *VERSIONS, *_BY_NUMBER, "best"]
'''
CHOSEN_MARK = f"{_PACKAGE_MARK.decode()}: the version of "
_CHOSEN = '''{mark}{op} to ship.

{reason}
"""

from .{version} import {entry} as best

__all__ = ["best"]
'''
_ROOT = '"""Written by triton_magics: one package per op."""\n'


class Module(NamedTuple):
    """A version's file: its body, how many header lines are above it, its language."""

    body: str
    header_lines: int
    language: str


def version_path(op: str, version: str, suffix: str) -> str:
    """Return the path of a version's file, relative to the workspace."""
    return f"kernels/{op}/{version}{suffix}"


def reference_path(op: str) -> str:
    """Return the path of an own op's reference, relative to the workspace."""
    return f"kernels/{op}/reference.py"


def render(source: KernelSource) -> bytes:
    """Return the file of a version: header, if it has one, and body.

    Raises:
        UnknownName: its language is not installed.
    """
    language = languages.get(source.language)
    lines = _header(source.op, source.version, language)[: source.header_lines]
    return "".join(f"{line}\n" for line in lines).encode() + source.source.encode()


def split_header(data: bytes, op: str, version: str, language: KernelLanguage) -> Module:
    """Return a file's body without its header; a user may have deleted the header.

    Raises:
        BadKernelSource: not UTF-8.
    """
    *lines, rest = data.split(b"\n", HEADER_LINES)
    header = [line.encode() for line in _header(op, version, language)]
    has_header = [line.removesuffix(b"\r") for line in lines] == header
    path = version_path(op, version, language.suffix)
    body = decode_source(rest if has_header else data, path)
    return Module(body, HEADER_LINES if has_header else 0, language.name)


def decode_source(data: bytes, path: str) -> str:
    """Return a file's text.

    Raises:
        BadKernelSource: not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadKernelSource(f"{path} is not UTF-8 ({error.reason}): save it as UTF-8") from error


def _header(op: str, version: str, language: KernelLanguage) -> list[str]:
    """Return the header; it names any language but the default one."""
    named = "" if language.name == languages.DEFAULT else f" (language: {language.name})"
    name = f"{op} {version}{named}"
    return [f"{language.comment} {line.format(name=name)}" for line in _HEADER]


def read_module(files: Folder, op: str, version: str, language: str | None = None) -> Module | None:
    """Return a version's file; None where there is none.

    Args:
        files: the workspace.
        op: canonical name.
        version: whole name.
        language: of the version; by default the one that the header names, else the first with
            the file's suffix.
    """
    candidates = [languages.get(language)] if language else languages.available()
    first: Module | None = None
    for each in candidates:
        data = files.read(version_path(op, version, each.suffix))
        module = None if data is None else split_header(data, op, version, each)
        if module and module.header_lines:
            return module
        first = first or module
    return first


def write_module(files: Folder, source: KernelSource) -> None:
    """Write a version's file whole."""
    files.replace(source.path, render(source))


def write_packages(files: Folder, op: str) -> None:
    """Write kernels/__init__.py and the op's, unless they are current or the user's own."""
    _write_package(files, "kernels/__init__.py", _ROOT)
    text = _PACKAGE.format(op=op)
    _write_package(files, f"kernels/{op}/__init__.py", text)


def chosen_module(source: KernelSource, reason: str) -> str:
    """Return the text of kernels/OP/chosen.py, which names the version to ship.

    Args:
        source: the version.
        reason: of the choice.
    """
    plain = reason.replace("\\", "/").replace('"', "'")
    return _CHOSEN.format(
        mark=CHOSEN_MARK, op=source.op, version=source.version, entry=source.entry, reason=plain
    )


def _write_package(files: Folder, path: str, text: str) -> None:
    old = files.read(path)
    is_users = old is not None and old.strip() and not old.startswith(_PACKAGE_MARK)
    if not is_users and old != text.encode():
        files.replace(path, text.encode())


def modules_of(files: Folder, op: str) -> tuple[str, ...]:
    """Return the versions that have a file in the op's folder, by number."""
    suffixes = {language.suffix for language in languages.available()}
    names = files.names(f"kernels/{op}")
    versions = {n.removesuffix(s) for n in names for s in suffixes if n.endswith(s)}
    return tuple(sorted(filter(_is_version, versions), key=lambda n: (parse_version(n)[0], n)))


def _is_version(name: str) -> bool:
    try:
        parse_version(name)
    except BadName:
        return False
    return True
