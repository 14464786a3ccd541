"""The kernels/ folder: one module per version, a cell's code byte for byte under a header."""

from __future__ import annotations

from triton_magics.errors import BadKernelSource, BadName
from triton_magics.model import KernelSource, parse_version
from triton_magics.workspace.files import Folder

# Comments, not a docstring: a cell may begin with its own docstring and a __future__ import, and
# after a second docstring that import is a syntax error. Two lines: a coding line at the top of a
# cell would mean something in line 2 of a file.
_HEADER = (
    "# {op} {version}, written by triton_magics. Below these two lines is the notebook's cell,",
    "# byte for byte. An edit made here is kept: it becomes the version's next attempt.",
)
HEADER_LINES = len(_HEADER)
_PACKAGE_MARK = b'"""Written by triton_magics'
_PACKAGE = '''"""Written by triton_magics: the versions of {op}, each loaded when it is asked for.

`from kernels.{op} import v1` gives the module of version 1, whatever its full name is.
"""

from importlib import import_module as _import_module

VERSIONS = {versions!r}
_BY_NUMBER = {{name.split("_")[0]: name for name in VERSIONS}}


def __getattr__(name):
    module = _BY_NUMBER.get(name, name)
    if module in VERSIONS:
        return _import_module(f".{{module}}", __name__)
    raise AttributeError(f"{{__name__}} has no {{name!r}}; its versions: {{', '.join(VERSIONS)}}")


def __dir__():
    return [*globals(), *VERSIONS, *_BY_NUMBER]
'''
_ROOT = '"""Written by triton_magics: one package per op."""\n'


def module_path(op: str, version: str) -> str:
    """Where a version's module is, relative to the workspace."""
    return f"kernels/{op}/{version}.py"


def reference_path(op: str) -> str:
    """Where the reference of a user's own op is, relative to the workspace."""
    return f"kernels/{op}/reference.py"


def render(source: KernelSource) -> bytes:
    """The module of a version: header, if it has one, and body."""
    lines = _header(source.op, source.version)[: source.header_lines]
    return "".join(f"{line}\n" for line in lines).encode() + source.source.encode()


def split(data: bytes, op: str, version: str) -> tuple[str, int]:
    """A module's body and how many header lines are above it: 2, or 0 where a person cut them.

    Raises:
        BadKernelSource: not UTF-8.
    """
    *lines, rest = data.split(b"\n", HEADER_LINES)
    header = [line.encode() for line in _header(op, version)]
    has_header = [line.removesuffix(b"\r") for line in lines] == header
    body = decoded(rest if has_header else data, module_path(op, version))
    return body, HEADER_LINES if has_header else 0


def decoded(data: bytes, path: str) -> str:
    """A file's text.

    Raises:
        BadKernelSource: not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadKernelSource(f"{path} is not UTF-8 ({error.reason}): save it as UTF-8") from error


def _header(op: str, version: str) -> list[str]:
    return [line.format(op=op, version=version) for line in _HEADER]


def read_module(files: Folder, op: str, version: str) -> tuple[str, int] | None:
    """Body and header lines of a version's module; None where there is no file."""
    data = files.read(module_path(op, version))
    return None if data is None else split(data, op, version)


def write_module(files: Folder, source: KernelSource) -> None:
    """Write a version's module whole."""
    files.replace(module_path(source.op, source.version), render(source))


def write_packages(files: Folder, op: str, versions: tuple[str, ...]) -> None:
    """Write kernels/__init__.py and the op's, unless they are up to date or a person's own."""
    _write_package(files, "kernels/__init__.py", _ROOT)
    text = _PACKAGE.format(op=op, versions=versions)
    _write_package(files, f"kernels/{op}/__init__.py", text)


def _write_package(files: Folder, path: str, text: str) -> None:
    old = files.read(path)
    theirs = old is not None and old.strip() and not old.startswith(_PACKAGE_MARK)
    if not theirs and old != text.encode():
        files.replace(path, text.encode())


def modules_of(files: Folder, op: str) -> tuple[str, ...]:
    """Versions that have a file in the op's folder, by number."""
    names = [n.removesuffix(".py") for n in files.names(f"kernels/{op}") if n.endswith(".py")]
    return tuple(
        sorted((n for n in names if _is_version(n)), key=lambda n: (parse_version(n)[0], n))
    )


def _is_version(name: str) -> bool:
    try:
        parse_version(name)
    except BadName:
        return False
    return True
