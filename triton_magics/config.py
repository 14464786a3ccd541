"""Settings, read once: `%config TritonMagics.name = value`, or `Settings(...)` in plain Python."""

from __future__ import annotations

import os
from pathlib import Path

from traitlets import Bool, Float, Int, Unicode
from traitlets.config import Configurable


class Settings(Configurable):
    """What a user may set; each has its default here and nowhere else."""

    workspace = Unicode("", help="Folder of kernels/ and logs/; empty: where the notebook is.").tag(
        config=True
    )
    strict = Bool(False, help="Steps that the workflow does not allow are errors.").tag(config=True)
    min_writes = Int(3, min=1, help="Distinct versions before an op may end.").tag(config=True)
    device = Unicode("auto", help="`auto`, `gpu` or `interpreter`.").tag(config=True)
    target = Int(90, help="Compute capability to cross-compile for where there is no GPU.").tag(
        config=True
    )
    silence_s = Float(20.0, min=0.1, help="Seconds without progress before a job is killed.").tag(
        config=True
    )
    compile_s = Float(120.0, min=0.1, help="The same while it compiles or autotunes.").tag(
        config=True
    )
    job_s = Float(300.0, min=0.1, help="Seconds that a whole job may take.").tag(config=True)
    validate_budget_s = Float(
        20.0, min=0.1, help="Seconds that the interpreter may spend on one validation."
    ).tag(config=True)
    bench_budget_s = Float(60.0, min=0.1, help="Seconds that one benchmark may take.").tag(
        config=True
    )
    host_memory_gib = Float(
        0.0, min=0.0, help="GiB that a worker may take; 0: three quarters of the machine's memory."
    ).tag(config=True)
    history = Bool(True, help="Write logs/<op>_log.jsonl as things happen.").tag(config=True)


LOCKS = Path("/tmp/triton_magics-locks")  # noqa: S108 (shared by all users, on purpose)


def cache_dir() -> Path:
    """Where compiled kernels, measured ceilings and locks are kept: local disk, per user."""
    base = os.environ.get("TRITON_MAGICS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(base) / "triton_magics" if base else Path.home() / ".cache" / "triton_magics"
