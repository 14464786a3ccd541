"""Replace the paths of a worker's scratch files by the user's, in text for the user."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import JobRequest
from triton_magics.execution.scratch import SOURCES


class ShownPaths:
    """Replaces paths of the sources that a worker loaded by the user's paths."""

    def __init__(self, scratch: Path | None, job: JobRequest | None) -> None:
        """Prepare for a job.

        Args:
            scratch: the worker's folder; None: nothing is replaced.
            job: its job.
        """
        self._names = {} if job is None else _shown_names(job)
        prefix = re.escape(f"{scratch}/{SOURCES}/")
        names = "|".join(map(re.escape, self._names))
        usable = scratch is not None and self._names
        self._files = re.compile(f"{prefix}[0-9a-f]{{24}}/({names})") if usable else None

    def replace_in(self, text: str) -> str:
        """Return the text with the user's paths."""
        if self._files is None:
            return text
        return self._files.sub(lambda match: self._names[match[1]], text)


def _shown_names(job: JobRequest) -> dict[str, str]:
    op: OpRef | None = getattr(job, "op", None)
    names = {
        f"{ref.version}{PurePosixPath(ref.shown_path).suffix}": ref.shown_path for ref in job.refs
    }
    for i, _ in enumerate(getattr(job, "points", ()), 1):  # configurations of a sweep
        shown = job.refs[0].shown_path
        names[f"v{i}{PurePosixPath(shown).suffix}"] = shown
    return names if op is None else {"reference.py": op.shown_path, **names}


__all__ = ["ShownPaths"]
