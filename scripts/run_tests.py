"""Run the tests by groups, two groups at the same time; print the output of each as it ends.

    python scripts/run_tests.py [pytest options]

On two cores it takes a little more than half of the time of one process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("harness", "faults", "notebook", "languages", "serve")
"""Folders of tests with groups of their own; the longest first, so that both processes end
together. All other tests are one group, and begin first. The first folder is two groups."""
N_PROCESSES = 2
NO_TESTS = 5  # pytest's exit status of a group in which none was selected


def groups() -> tuple[tuple[str, ...], ...]:
    """Return the arguments of each group; together they name every test once."""
    others = tuple(f"--ignore=tests/{folder}" for folder in FOLDERS)
    longest, *folders = FOLDERS
    files = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "tests" / longest).rglob("test_*.py"))
    return (
        (*others, "tests"), tuple(files[::2]), tuple(files[1::2]),
        *((f"tests/{folder}",) for folder in folders),
    )  # fmt: skip


def run_group(words: Sequence[str]) -> tuple[int, str]:
    """Run a group; return its exit status and its output."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, f"{' '.join(words)[:200]}\n{done.stdout}"


def main() -> int:
    """Run all groups; return the first exit status of a failure, or 0."""
    statuses = []
    with ThreadPoolExecutor(N_PROCESSES) as processes:
        runs = [processes.submit(run_group, (*sys.argv[1:], *words)) for words in groups()]
        for run in as_completed(runs):
            status, output = run.result()
            print(output, flush=True)
            statuses.append(status)
    if set(statuses) == {NO_TESTS}:
        return NO_TESTS
    return next((status for status in statuses if status not in (0, NO_TESTS)), 0)


if __name__ == "__main__":
    sys.exit(main())
