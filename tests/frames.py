"""List the frames of the main job: front end to executor, executor to pipe, loop to first check.

    python tests/frames.py

Only frames of triton_magics count. The executor may write to the pipe in a thread of its own.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    os.environ["TRITON_INTERPRET"] = "1"

import triton_magics

PACKAGE = Path(triton_magics.__file__).parent
KERNEL = Path(__file__).parent / "faults" / "kernels" / "softmax_right.py"
CHECKS = PACKAGE / "harness" / "correctness" / "output_checks.py"
WRITES = ("send", "sendall", "sendmsg", "write", "writev")
Profile = Callable[[FrameType, str, Any], None]


def own_frames(frame: FrameType | None) -> list[FrameType]:
    """Return the package's frames of a stack, the outermost first."""
    stack = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(str(PACKAGE)):
            stack.append(frame)
        frame = frame.f_back
    return stack[::-1]


def names(stack: list[FrameType]) -> list[str]:
    """Return `lab/lab.py:Lab.validate` of each frame."""
    return [
        f"{Path(f.f_code.co_filename).relative_to(PACKAGE)}:{f.f_code.co_qualname}" for f in stack
    ]


@contextmanager
def set_profile(profile: Profile) -> Iterator[None]:
    """Call a function at every call and return, in this thread and in new ones."""
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def frames_to_the_pipe(folder: Path) -> tuple[list[str], list[str]]:
    """Trace a validation that a magic starts, up to the write of its job to the pipe.

    Returns:
        the frames from the magic to `Executor.submit`, and those of the executor that write.
    """
    from IPython.core.interactiveshell import InteractiveShell

    from triton_magics.execution.job_requests import ValidateJob
    from triton_magics.execution.protocol import Order
    from triton_magics.lab import Lab

    submits: list[list[str]] = []
    writes: list[list[str]] = []

    def has_job(frame: FrameType) -> bool:
        values = list(frame.f_locals.values())
        jobs = [value.job if isinstance(value, Order) else value for value in values]
        return any(isinstance(job, ValidateJob) for job in jobs)

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        is_write = event == "c_call" and getattr(arg, "__name__", "") in WRITES
        is_submit = event == "call" and frame.f_code.co_name == "submit"
        stacks = submits if is_submit else writes if is_write else None
        if stacks == [] and has_job(frame):
            stacks.append(names(own_frames(frame)))

    shell = InteractiveShell()
    with Lab(folder) as lab:
        lab.op("softmax")
        lab.write("softmax", "v1", KERNEL.read_text(), compile=False)
        shell.run_line_magic("load_ext", "triton_magics")
        triton_magics.use(lab)
        with set_profile(profile):
            shell.run_line_magic("triton_validate", "softmax v1 --quick --shape 3x5 -q")
        shell.extension_manager.unload_extension("triton_magics")
    return submits[0], [name for name in writes[0] if name not in submits[0]]


def frames_to_the_check() -> list[str]:
    """Return the frames from the worker's loop to the first check of an output."""
    from tests.harness.kit import job_for
    from triton_magics.execution.protocol import Order
    from triton_magics.harness import __main__ as worker

    stacks: list[list[str]] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == str(CHECKS) and not stacks:
            stacks.append(names(own_frames(frame)))

    order = Order(nonce="0", job=job_for(KERNEL, plan="quick", shapes=((3, 5),)))
    with set_profile(profile):
        worker.serve(iter([order]), lambda frame: None)
    return stacks[0]


def main() -> None:
    """Print the three stacks as JSON."""
    with tempfile.TemporaryDirectory() as scratch:
        front_end, executor = frames_to_the_pipe(Path(scratch))
    stacks = {"front end": front_end, "executor": executor, "harness": frames_to_the_check()}
    print(json.dumps(stacks, indent=1))


if __name__ == "__main__":
    main()
