"""Check a kernel in the tests of a project: `from triton_magics.testing import check`.

    def test_softmax():
        check("kernels/softmax.py", "softmax")

Nothing is left on disk. The processes of the first check serve the next ones and end with Python.
"""

from __future__ import annotations

import atexit
import hashlib
import inspect
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from triton_magics.config import Settings
from triton_magics.errors import BadValue
from triton_magics.execution import Executor, registry
from triton_magics.execution.scratch import owned_folder
from triton_magics.lab import Lab
from triton_magics.model import PlanName, Validation

Code = str | Path | Callable[..., Any]


def check(
    kernel: Code,
    op: str | None = None,
    *,
    reference: Code | None = None,
    entry: str | None = None,
    type: str = "triton",  # noqa: A002 (the name of the option)
    plan: PlanName = "full",
    dtypes: Sequence[str] | None = None,
    seed: int | None = None,
) -> Validation:
    """Check that a kernel computes what an op or a reference does.

    Args:
        kernel: a file, or the function that launches the kernels, in a file of its own.
        op: an op that ships: softmax.
        reference: in place of `op`: a file with `reference` and `make_inputs`, or a function of it.
        entry: the function to call, where a file has several.
        type: kernel language: triton, cuda, torch ...
        plan: full, quick or thorough.
        dtypes: only these; by default all that the op declares.
        seed: of the inputs; by default a new one, which the error names.

    Returns:
        The validation, which passed.

    Raises:
        AssertionError: the kernel is wrong, or could not be checked; with the verdict's text.
        BadValue: neither or both of `op` and `reference`; a file that can't be read.
        UserError: no such op, a reference that can't be used, a source without an entry.
    """
    if (op is None) == (reference is None):
        raise BadValue("name an op that ships (softmax), or a reference=")
    if callable(kernel) and entry is None:
        entry = kernel.__name__
    source = _read(kernel)
    with owned_folder() as folder:
        lab = Lab(folder, settings=Settings.load(None), executor=_executor())
        try:
            name = op or _define(lab, _read(reference))
            lab.write(name, "v1", source, type=type, entry=entry)
            result = lab.validate(name, "v1", plan=plan, dtypes=dtypes, seed=seed)
        finally:
            lab.session.workspace.close()
    if not result.passed:
        raise AssertionError(_text_of(result))
    assert isinstance(result, Validation)
    return result


def _define(lab: Lab, source: str) -> str:
    """Define an op from its source; return its name."""
    name = f"reference_{hashlib.sha256(source.encode()).hexdigest()[:8]}"
    lab.reference(name, source)
    return name


def _read(code: Code | None) -> str:
    """Return the text of a file, or of the file of a function.

    Raises:
        BadValue: it can't be read.
    """
    file = inspect.getsourcefile(code) if callable(code) else code
    try:
        return Path(file or "").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadValue(f"{file} can't be read: {error}") from error


def _text_of(result: Any) -> str:
    from triton_magics import rendering
    from triton_magics.verbs._phrase import as_command

    return rendering.command_line_text(result, as_command).rstrip()


@cache
def _executor() -> Executor:
    """Return the executor of all checks of this process."""
    executor = registry.create(Settings.load(None))
    atexit.register(executor.close)
    return executor


__all__ = ["check"]
