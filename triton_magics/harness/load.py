"""Load a version's file as a function, and convert its exceptions to `KernelError`."""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS

from triton_magics import exception_text, operators
from triton_magics.errors import BadValue
from triton_magics.execution import sandbox
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.harness import job_sources
from triton_magics.harness.process.descriptor_reserve import is_exhaustion_error, release_reserve
from triton_magics.harness.process.device import kernel_runtime
from triton_magics.harness.version_call import make_call
from triton_magics.languages.kernel_runtime import KernelRuntime, SourcePlace
from triton_magics.model import KernelError, source_lines

SANDBOX_KINDS = ("PermissionError", "ModuleNotFoundError")  # raised by what a sandbox hides
SANDBOX_HINT = (
    "a version can use its own temporary folder, the packages and, to read, the working folder; "
    "the setting sandbox = 'off' allows all that you may do"
)
RAISED_OUTSIDE = (
    "raised outside the version's call: by a signal handler, a destructor, a hook or a function "
    "that it replaced"
)
CHANGED_PROCESS = (
    "triton_magics' own code failed in the version's process; a version causes this if it changes "
    "modules, builtins or descriptors"
)
_TRACE_FRAME = re.compile(r'^ +File "(.+)", line (\d+)', re.MULTILINE)


class UserFault(Exception):
    """An error that the user can fix and that is not a verdict on a kernel."""


class LoadError(Exception):
    """The version's own file could not be imported; `__cause__` is what it raised."""


@dataclass(frozen=True)
class LoadedVersion:
    """A version, ready to be called with an op's inputs."""

    ref: VersionRef
    module: ModuleType
    call: Callable[..., Any]

    @property
    def name(self) -> str:
        """Return the version's name, such as `v2_tiling`."""
        return self.ref.version

    @property
    def runtime(self) -> KernelRuntime:
        """Return the runtime of its language."""
        return kernel_runtime(self.ref.language)


def load_op(ref: OpRef) -> operators.Op:
    """Load an op, built in or the user's own.

    Raises:
        UserFault: the user's file is no valid op; the message gives the reason.
    """
    name = ref.gradient_of or ref.name
    if ref.source is None:
        return _derive(operators.load(name), ref)
    try:
        return _derive(operators.load_file(job_sources.op_path(ref), name), ref)
    except BaseException as error:  # exit() too: the file is the user's own
        raise UserFault(f"{ref.shown_path}: {exception_text.one_line(error)}") from error


def _derive(op: operators.ModuleOp, ref: OpRef) -> operators.Op:
    """Return the op on the inputs of a file, or the op of its gradients."""
    if ref.inputs is not None:
        try:
            content = operators.unpack(ref.inputs.data)
            tensors = operators.read_tensors(ref.inputs.name, content)
            op = operators.on_recorded_inputs(op, ref.inputs.name, tensors)
        except BadValue as error:
            raise UserFault(str(error)) from error
    return operators.BackwardOp(ref.name, op) if ref.gradient_of else op


def load_version(ref: VersionRef) -> LoadedVersion:
    """Import a version under a name of its own, and find its entry.

    Raises:
        LoadError: whatever the module raised, as `__cause__`; or it has no such entry.
    """
    name = _module_name(ref)
    module = sys.modules.get(name) or _import(ref, name, job_sources.write_version(ref))
    if not hasattr(module, ref.entry):
        missing = f"the module defines no {ref.entry}, the entry of its source"
        raise LoadError(missing) from AttributeError(missing)
    try:
        op = partial(load_op, ref.op) if ref.op else lambda: None
        entry, runtime = getattr(module, ref.entry), kernel_runtime(ref.language)
        call = make_call(entry, module, runtime, op)
    except BaseException as error:
        raise LoadError(str(error)) from error
    return LoadedVersion(ref, module, call)


def forget_version(ref: VersionRef) -> None:
    """Make the next load import the version again, without state of earlier jobs."""
    sys.modules.pop(_module_name(ref), None)


def registers_operators(version: LoadedVersion) -> bool:
    """Return whether a version defines operators of torch: a second import would destroy them."""
    own = version.module.__name__
    functions = (f for operator in [*OPDEFS.values()] for f in _with_wrapped(operator._init_fn))
    return any(f.__module__ == own for f in functions)


def _with_wrapped(function: FunctionType) -> Iterator[FunctionType]:
    """Yield a function and those that it wraps: torch may register a wrapper of its own."""
    yield function
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty cell
            if isinstance(cell.cell_contents, FunctionType):
                yield cell.cell_contents


def _module_name(ref: VersionRef) -> str:
    return f"triton_magics_kernel_{ref.version}_{job_sources.digest(ref.source)[:12]}"


def _import(ref: VersionRef, name: str, path: Path) -> ModuleType:
    try:
        return kernel_runtime(ref.language).load(name, path)
    except BaseException as error:
        raise LoadError(exception_text.message(error)) from error


@contextmanager
def compile_cache(
    refs: Sequence[VersionRef], *, language: str | None = None, is_warm_up: bool = False
) -> Iterator[None]:
    """Share the compiled kernels of these versions with other workers.

    Args:
        refs: the versions.
        language: a language in which more sources may be compiled.
        is_warm_up: they are ours, and no other has run in this worker.
    """
    by_language: dict[str, list[str]] = {language: []} if language else {}
    for ref in refs:
        by_language.setdefault(ref.language, []).append(ref.sha256)
    with ExitStack() as stack:
        for name, sources in by_language.items():
            stack.enter_context(kernel_runtime(name).compile_cache(sources, is_warm_up=is_warm_up))
        yield


# ------------------------------------------------------------------------------------ errors


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether the exception, or a cause of it, reports that memory ran out."""
    return any(
        exception_text.is_a(link, torch.OutOfMemoryError, MemoryError)
        or (
            exception_text.is_a(link, RuntimeError)
            and "can't allocate memory" in exception_text.text_of(link)
        )
        for link in exception_text.chain(error)
    )


def raised_in(error: BaseException, ref: VersionRef) -> bool:
    """Return whether a line of the version itself raised it, not a function that it called."""
    code = None
    for frame, _ in traceback.walk_tb(exception_text.stack(error)):
        code = frame.f_code
    return code is not None and code.co_filename == str(job_sources.version_path(ref))


def _frame_place(error: BaseException, path: str) -> SourcePlace | None:
    """Return the line and column of the innermost frame in that file."""
    if place := _syntax_place(error, path):
        return place
    place, trace = None, exception_text.stack(error)
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == path:
            positions = next(islice(code.co_positions(), trace.tb_lasti // 2, None), None)
            column = positions[2] if positions else None
            place = SourcePlace(trace.tb_lineno, None if column is None else column + 1)
        trace = trace.tb_next
    return place


def _syntax_place(error: BaseException, path: str) -> SourcePlace | None:
    if not exception_text.is_a(error, SyntaxError):
        return None
    read = partial(exception_text.attribute, error)
    if read("filename") != path or type(read("lineno")) is not int:
        return None
    column = read("offset")
    return SourcePlace(read("lineno"), column if type(column) is int else None)


def one_line_error(error: KernelError) -> str:
    """Return a version's error in one line, with its line."""
    line = f" (cell line {error.cell_line})" if error.cell_line else ""
    return f"{error.kind}: {error.message[:200]}{line}"


def make_kernel_error(
    error: BaseException, ref: VersionRef, module: ModuleType | None = None
) -> KernelError:
    """Return an exception out of a version's code as a value, with the line that raised it.

    The deepest exception of the chain that points into the file wins: compilers and interpreters
    wrap what was raised.
    """
    if is_exhaustion_error(error):
        release_reserve()
    runtime = kernel_runtime(ref.language)
    chain = exception_text.chain(error)
    if type(error) is LoadError:
        chain = chain[1:]
    module = module or sys.modules.get(_module_name(ref))
    path = str(job_sources.version_path(ref))
    place, deepest = None, 0
    for i, link in enumerate(chain):
        if link_place := runtime.error_place(link, module) or _frame_place(link, path):
            place, deepest = link_place, i
    message = runtime.error_message(chain, deepest) or exception_text.message(chain[deepest])
    text = exception_text.format_error(chain[0]).replace(path, ref.shown_path)
    return _make_error(exception_text.class_name(chain[deepest]), message, place, ref, text)


def error_at_line(kind: str, message: str, file_line: int, ref: VersionRef) -> KernelError:
    """Return an error at a line of the version's file that raised no exception."""
    place = SourcePlace(file_line) if file_line > 0 else None
    return _make_error(kind, message, place, ref, "")


def outside_error(message: str, trace: str, refs: Sequence[VersionRef]) -> KernelError:
    """Return an error of this program, in the process of these versions, as one of a version.

    Args:
        message: `ValueError: its message`.
        trace: Python's traceback; the innermost line of a version in it is the place.
        refs: the versions of the job, at least one.
    """
    kind, _, text = message.partition(": ")
    paths = {str(job_sources.version_path(ref)): ref for ref in refs}
    frames = [(paths[f], int(n)) for f, n in _TRACE_FRAME.findall(trace) if f in paths]
    ref, line = frames[-1] if frames else (refs[-1], 0)
    place = SourcePlace(line) if line else None
    error = _make_error(kind, text or kind, place, ref, _with_shown_paths(trace, paths))
    return error.evolve(hint=RAISED_OUTSIDE if place else CHANGED_PROCESS)


def _with_shown_paths(trace: str, paths: Mapping[str, VersionRef]) -> str:
    for path, ref in paths.items():
        trace = trace.replace(path, ref.shown_path)
    return trace


def _make_error(
    kind: str,
    message: str,
    place: SourcePlace | None,
    ref: VersionRef,
    text: str,
) -> KernelError:
    message, text = exception_text.shorten(message), exception_text.sendable(text)
    hint = advice = None
    lines = source_lines(ref.source)
    code = lines[place[0] - 1] if place and 0 < place[0] <= len(lines) else None
    with contextlib.suppress(Exception):  # the version may have closed or removed what it needs
        runtime = kernel_runtime(ref.language)
        hint = runtime.hint_for(f"{kind}: {message}")
        advice = runtime.corrected_line(message, code) if code else None
    if kind in SANDBOX_KINDS and sandbox.is_active():
        hint = SANDBOX_HINT
    if place is None:
        return KernelError(kind=kind, message=message, hint=hint, traceback=text[-8000:])
    file_line, column = place
    line = file_line - ref.header_lines
    return KernelError(
        kind=kind,
        message=message,
        line=line if line > 0 else None,
        column=column,
        cell_line=ref.cell_line(file_line) if line > 0 else None,
        file=ref.shown_path,
        file_line=file_line,
        code=code,
        hint=hint,
        advice=advice,
        traceback=text[-8000:],
    )
