"""Cost of `%load_ext triton_magics` in seconds and memory, beside importing numpy.

python tests/benchmarks/load.py [--json PATH]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from common import report

REPEATS = 9
PROBE = """
import json, resource, sys, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
def megabytes():
    with open("/proc/self/status") as file:
        return int(next(l for l in file if l.startswith("VmRSS")).split()[1]) / 1024
before, start = megabytes(), time.perf_counter()
{code}
seconds = time.perf_counter() - start
print(json.dumps([seconds, megabytes() - before, "torch" in sys.modules]))
"""
CASES = {
    "%load_ext triton_magics": "shell.run_line_magic('load_ext', 'triton_magics')",
    "… and the first %triton_ref": (
        "shell.run_line_magic('load_ext', 'triton_magics'); "
        "shell.run_line_magic('triton_ref', 'online softmax -q')"
    ),
    "import numpy": "import numpy",
}


def measure(code: str) -> tuple[float, float, bool]:
    """Return median seconds and megabytes over fresh processes, and whether torch was imported."""
    runs = []
    for _ in range(REPEATS):
        child = subprocess.run(
            [sys.executable, "-c", PROBE.replace("{code}", code)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        runs.append(json.loads(child.stdout.splitlines()[-1]))
    return (
        statistics.median(r[0] for r in runs),
        statistics.median(r[1] for r in runs),
        any(r[2] for r in runs),
    )


def main() -> None:
    """Print the table."""
    costs = {name: measure(code) for name, code in CASES.items()}
    base = costs["import numpy"][0]
    rows = [
        {"what": name, "s": s, "MB": mb, "of numpy's time": s / base, "torch imported": torch}
        for name, (s, mb, torch) in costs.items()
    ]
    report("Loading the extension", rows, repeats=REPEATS)


if __name__ == "__main__":
    main()
