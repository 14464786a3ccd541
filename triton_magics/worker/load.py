"""A version's file becomes a function; an exception out of it becomes a `KernelError`."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton

from triton_magics import ops
from triton_magics.config import cache_dir
from triton_magics.engine.protocol import OpRef, VersionRef
from triton_magics.model import KernelError
from triton_magics.worker.descriptors import ran_out, use_the_rest
from triton_magics.worker.hints import hint_for

GROUP = "__grp__"  # how Triton's list of an entry's files begins
MARK = "form-"
STEPS = (".source", ".ttir", ".ttgir", ".llir")


class UserFault(Exception):
    """Something that the user can mend and that is not a kernel's verdict."""


_COMPILER = ("CompilationError", "UnsupportedLanguageConstruct", "CompileTimeAssertionFailure")


class LoadError(Exception):
    """The version's own file could not be imported; `__cause__` is what it raised."""


@dataclass(frozen=True)
class Loaded:
    """A version, ready to be called with an op's inputs."""

    ref: VersionRef
    module: ModuleType
    call: Callable[..., Any]

    @property
    def name(self) -> str:
        """`v2_tiling`."""
        return self.ref.version


def load_op(ref: OpRef) -> ops.Op:
    """The op, built in or the user's own.

    Raises:
        UserFault: an own op's file is no op; the message says what is missing.
    """
    if ref.path is None:
        return ops.load(ref.name)
    try:
        return ops.load_file(Path(ref.path), ref.name)
    except Exception as error:
        raise UserFault(f"{ref.name}/reference.py: {type(error).__name__}: {error}") from error


def load_version(ref: VersionRef) -> Loaded:
    """Import a version by its path under a name of its own, and find its entry.

    Raises:
        LoadError: whatever the file raised, as `__cause__`.
        UserFault: the file is not the source that was asked for.
    """
    path = Path(ref.path)
    text = path.read_bytes().decode()
    body = "".join(text.splitlines(keepends=True)[ref.header_lines :])
    if hashlib.sha256(body.encode()).hexdigest() != ref.sha256:
        raise UserFault(f"{ref.shown_path} changed while it was being checked; run the cell again")
    name = _module_name(ref)
    module = sys.modules.get(name) or _import(name, path)
    return Loaded(ref, module, getattr(module, ref.entry))


def forget_version(ref: VersionRef) -> None:
    """Has the next load import it anew, with nothing that an earlier job had it keep."""
    sys.modules.pop(_module_name(ref), None)


def _module_name(ref: VersionRef) -> str:
    return f"triton_magics_kernel_{ref.version}_{ref.sha256[:12]}"


def _import(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserFault(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.dont_write_bytecode = True  # a version is loaded once here; no __pycache__ beside it
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise LoadError(str(error)) from error
    return module


# ------------------------------------------------------------------------------------ errors


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and what caused it, outermost first."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether it says, in whoever's words, that there was no memory left."""
    return any(
        isinstance(link, torch.OutOfMemoryError | MemoryError)
        or (isinstance(link, RuntimeError) and "can't allocate memory" in str(link))
        for link in _chain(error)
    )


def raised_in(error: BaseException, path: str) -> bool:
    """Whether the exception itself was raised by a line of that file, not by what it called."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename == path


def _compile_place(error: BaseException, module: ModuleType | None) -> tuple[int, int] | None:
    """File line and 1-based column of a Triton CompilationError, which counts from the `def`."""
    source: Any = getattr(error, "src", None)
    node: Any = getattr(error, "node", None)
    if module is None or source is None or not hasattr(node, "lineno"):
        return None
    for value in vars(module).values():
        function = getattr(value, "fn", value)
        while hasattr(function, "fn") and not isinstance(function, triton.runtime.JITFunction):
            function = function.fn
        jit = value if isinstance(value, triton.runtime.JITFunction) else function
        if isinstance(jit, triton.runtime.JITFunction) and jit.src == source:
            return _first_line(jit) + node.lineno - 1, node.col_offset + 1
    return None


def _first_line(jit: Any) -> int:
    """File line of the `def` of a kernel; `src` starts there, decorators left out."""
    start = int(jit.starting_line_number)
    for offset, line in enumerate(jit.raw_src):
        if line.lstrip().startswith("def "):
            return start + offset
    return start


def _frame_place(error: BaseException, path: str) -> tuple[int, int | None] | None:
    """File line and column of the innermost frame in that file."""
    if isinstance(error, SyntaxError) and error.filename == path and error.lineno:
        return error.lineno, error.offset
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    if not own or own[-1].lineno is None:
        return None
    column = own[-1].colno
    return own[-1].lineno, None if column is None else column + 1


def refused_by_compiler(error: KernelError) -> bool:
    """Whether Triton's compiler or ptxas says that it can't be compiled."""
    words = ("ptxas", "passmanager::run failed")
    return error.kind in _COMPILER or any(word in error.message.lower() for word in words)


def in_short(error: KernelError) -> str:
    """A version's error in one line, with the line of its cell."""
    line = f" (cell line {error.cell_line})" if error.cell_line else ""
    return f"{error.kind}: {error.message[:200]}{line}"


def explain(error: BaseException, ref: VersionRef, module: ModuleType | None = None) -> KernelError:
    """What an exception out of a version's code says, and at which of its lines.

    The deepest exception of the chain that points into the file wins: Triton and its interpreter
    wrap what was raised.
    """
    if ran_out(error):
        use_the_rest()
    chain = list(_chain(error))
    if isinstance(error, LoadError):
        chain = chain[1:]
    module = module or sys.modules.get(_module_name(ref))
    place: tuple[int, int | None] | None = None
    told = chain[0]
    for link in chain:
        here = _compile_place(link, module) or _frame_place(link, ref.path)
        if here:
            place, told = here, link
    message = str(getattr(told, "error_message", None) or _first_words(told))
    # A compile error in a function that the kernel calls has its reason deeper.
    deepest = chain[-1]
    if (
        deepest is not told
        and getattr(told, "src", None) is not None
        and not getattr(told, "error_message", None)
    ):
        message = str(getattr(deepest, "error_message", None) or _first_words(deepest))
    text = "".join(traceback.format_exception(chain[0]))
    return _error(type(told).__name__, message, place, ref, text)


def at_line(kind: str, message: str, file_line: int, ref: VersionRef) -> KernelError:
    """What happened at a line of the version's file, without an exception."""
    place = (file_line, None) if file_line > 0 else None
    return _error(kind, message, place, ref, "")


def _sendable(text: str) -> str:
    """The text with lone surrogates written out, which no JSON can carry."""
    return text.encode("utf-8", "backslashreplace").decode()


def _first_words(error: BaseException) -> str:
    try:
        words = str(error).strip()
    except Exception:  # noqa: BLE001 (an exception of the version's own, that can't say what it is)
        words = ""
    return words or type(error).__name__


def _error(
    kind: str,
    message: str,
    place: tuple[int, int | None] | None,
    ref: VersionRef,
    text: str,
) -> KernelError:
    message, text = _sendable(message), _sendable(text)
    hint = hint_for(f"{kind}: {message}")
    if place is None:
        return KernelError(kind=kind, message=message, hint=hint, traceback=text[-8000:])
    file_line, column = place
    line = file_line - ref.header_lines
    lines = Path(ref.path).read_text().splitlines()
    code = lines[file_line - 1] if 0 < file_line <= len(lines) else None
    return KernelError(
        kind=kind,
        message=message,
        line=line if line > 0 else None,
        column=column,
        cell_line=line + ref.cell_offset if line > 0 else None,
        file=ref.shown_path,
        file_line=file_line,
        code=code,
        hint=hint,
        traceback=text[-8000:],
    )


# ------------------------------------------------------------------------------ compile cache


def _made_by() -> Path:
    made_by = f"{torch.__version__}-{triton.__version__}".replace("+", "_")
    return cache_dir() / "compiled" / made_by


def _shared(ref: VersionRef) -> Path:
    return _made_by() / ref.sha256[:24]


def _common() -> Path:
    """Launchers: one per signature, whatever the kernel, and a second of gcc each."""
    return _made_by() / "launchers"


@contextmanager
def compile_cache(refs: tuple[VersionRef, ...]) -> Iterator[None]:
    """Seeds this child's Triton cache with what earlier children compiled of the same source.

    What this job compiles is published afterwards, by rename, so that no child ever sees half an
    entry. Triton names an entry by the hash of all that went into it.
    """
    own = os.environ.get("TRITON_CACHE_DIR")
    if not own:
        yield
        return
    private = Path(own)
    private.mkdir(parents=True, exist_ok=True)
    for folder in (_common(), *map(_shared, refs)):
        _seed(folder, private)
    before = {p.name for p in private.iterdir()}
    try:
        yield
    finally:
        with suppress(OSError):  # a full disk, no descriptor left: the next job compiles anew
            _publish_fresh(private, before, refs)


def _publish_fresh(private: Path, before: set[str], refs: tuple[VersionRef, ...]) -> None:
    fresh = [p for p in private.iterdir() if p.name not in before and _is_whole(p)]
    launchers = [p for p in fresh if any(p.glob("*.so"))]
    _publish(launchers, _common())
    if len(refs) == 1:
        _publish([p for p in fresh if p not in launchers], _shared(refs[0]))


def _is_whole(entry: Path) -> bool:
    """Whether a compile came to its end there: its last file is the list of the others.

    A launcher is a library alone, and a mark (see `precompile`) an empty folder.
    """
    if entry.name.startswith(MARK):
        return True
    if not entry.is_dir():
        return False
    return any(name.startswith(GROUP) or name.endswith(".so") for name in os.listdir(entry))


def _seed(shared: Path, private: Path) -> None:
    """Copies the entries that are not there yet; one that is may be mapped into this process."""
    with suppress(OSError):  # another user's, or none: what nobody touches is swept after a month
        os.utime(shared)
    if not shared.is_dir():
        return
    for entry in shared.iterdir():
        if not entry.name.startswith(".") and not (private / entry.name).exists():
            _take_over(entry, private / entry.name)


def _take_over(entry: Path, own: Path) -> None:
    """Copies an entry; one that can't be had whole is compiled anew."""
    try:
        _copy(entry, own)
        _settle(own)
    except OSError:  # it was swept just now, or there is no room
        shutil.rmtree(own, ignore_errors=True)
    except (ValueError, KeyError, TypeError):  # its list was cut short when the machine went down
        shutil.rmtree(own, ignore_errors=True)
        shutil.rmtree(entry, ignore_errors=True)


def _settle(entry: Path) -> None:
    """Has the list of an entry name its files where they are now.

    Triton writes whole paths into it. They lead to the folder of the child that compiled, which is
    gone when that child is.
    """
    for group in entry.glob(f"{GROUP}*.json"):
        listed = json.loads(group.read_text())["child_paths"]
        names = [name for name in listed if (entry / name).exists()]
        group.unlink()  # not to write into what others have linked
        group.write_text(json.dumps({"child_paths": {n: str(entry / n) for n in names}}))


def _copy(entry: Path, to: Path) -> None:
    """What a launch needs of an entry, without the forms that its code went through on the way.

    A library is copied, for all versions launch by it, and who writes into his own must not change
    theirs. What only this source has is linked: where files are slow, to copy an entry takes 2 ms.
    """
    to.mkdir()
    with os.scandir(entry) as files:
        for file in files:
            if not file.name.endswith(STEPS) and file.is_file():
                give = shutil.copyfile if file.name.endswith(".so") else _link
                give(file.path, f"{to}/{file.name}")


def _link(file: str, to: str) -> None:
    """The same file under another name; Triton writes into none that is there, it replaces it."""
    try:
        os.link(file, to)
    except OSError:  # on another disk, or one without links
        shutil.copyfile(file, to)


def _publish(fresh: list[Path], shared: Path) -> None:
    if not fresh:
        return
    shared.mkdir(parents=True, exist_ok=True)
    for entry in fresh:
        half = shared / f".{entry.name}.{os.getpid()}"
        _copy(entry, half)
        try:
            half.rename(shared / entry.name)
        except OSError:  # another child published the same entry first
            shutil.rmtree(half)
