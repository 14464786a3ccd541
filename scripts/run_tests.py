"""Run the tests in two processes at the same time, and print the output of one after the other.

    python scripts/run_tests.py [pytest options]

On two cores it takes a little more than half of the time of one process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
IN_FOLDERS = ("tests/notebook", "tests/harness", "tests/faults")  # about half of the time


def commands(options: list[str]) -> tuple[list[str], list[str]]:
    """Return the two commands: the tests in these folders, and all others."""
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    others = [f"--ignore={folder}" for folder in IN_FOLDERS]
    return [*pytest, *IN_FOLDERS], [*pytest, *others, "tests"]


def main() -> int:
    """Run both; return the first exit status that is not 0."""
    here, beside = commands(sys.argv[1:])
    with subprocess.Popen(
        beside, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        status = subprocess.run(here, cwd=ROOT, check=False).returncode
        output, _ = process.communicate()
    print(output, flush=True)
    return status or process.returncode


if __name__ == "__main__":
    sys.exit(main())
