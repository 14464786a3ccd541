"""Compile each sound kernel of knowledge/mistakes.md, and each mistake in it; print the messages.

    python tests/languages/compile_mistakes.py        # a line of JSON for each

It is a process of its own because Triton must not interpret here.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.pop("TRITON_INTERPRET", None)
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.harness.kit import Recorder, version_of
from triton_magics import knowledge
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import CompileJob
from triton_magics.harness import compile_job as compiler


def explain(name: str, op: str, source: str) -> dict[str, object]:
    """Return the result of compiling a source for sm_90."""
    path = Path(tempfile.mkdtemp()) / "v1.py"
    path.write_text(source)
    job = CompileJob(op=OpRef(name=op), version=version_of(path, op), sizes=("small",))
    result, _ = compiler.run(job, Recorder())
    error = result.error.model_dump(mode="json") if result.error else None
    return {
        "name": name,
        "status": result.status.value,
        "error": error,
        "note": result.refused or result.note,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        kernels = knowledge.sound_kernels(knowledge.shipped().mistakes)
        for op, source in kernels.items():
            print(json.dumps(explain(op, op, source)))
        for mistake in knowledge.mistakes():
            source = kernels[mistake.kernel].replace(mistake.right, mistake.wrong)
            print(json.dumps(explain(mistake.title, mistake.kernel, source)))


if __name__ == "__main__":
    main()
