"""Full plans of the best version of each op, never compiled: seconds, and of the machine's cores.

    python tests/benchmarks/plans_of_ops.py [OP ...] [--json PATH]

All ops with a notebook, one after the other, in one Lab. Other work on the machine counts as well.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from common import report  # noqa: E402
from loop import wait_for_standby  # noqa: E402

import op_texts  # noqa: E402
from triton_magics.lab import Lab  # noqa: E402


def core_seconds() -> float:
    """Return the seconds that the cores of this machine have worked."""
    ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:4]  # user, nice, system
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print a row for each op."""
    names = [name for name in sys.argv[1:] if name in op_texts.known_ops()] or op_texts.known_ops()
    rows = []
    with tempfile.TemporaryDirectory() as folder, Lab(folder) as lab:
        for op in names:
            sources = op_texts.kernels(op)
            newest = max(sources, key=lambda name: int(name[1:].split("_")[0]))
            lab.op(op)
            lab.write(op, "v1_newest", sources[newest], compile=False)
            wait_for_standby(lab)
            core_s, start_s = core_seconds(), time.perf_counter()
            verdict = lab.validate(op, "v1", plan="full")
            took_s = time.perf_counter() - start_s
            rows.append({
                "op": op, "version": newest, "status": verdict.status, "cases": len(verdict.cases),
                "s": took_s, "s of a core": core_seconds() - core_s,
            })  # fmt: skip
        device = lab.engine_state().device
    report(f"Full plans on {device}", rows)


if __name__ == "__main__":
    main()
