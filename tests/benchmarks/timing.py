"""What the benchmark's numbers are worth, on a GPU.

Net time against the span of the kernels by CUPTI; the spread of repeated benchmarks beside
`triton.testing.do_bench`; verdicts on a version against itself and against one made 3 % slower;
how long the whole protocol takes.

    python tests/benchmarks/timing.py [--json PATH] [--only repeated,protocol] [--seconds 170]

About 170 s on an H200 in all. What `--only` leaves out keeps the tables that PATH had.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from by_cupti import against_cupti, beside
from inprocess import SIZES, bench, four, right
from pairs import against_itself, against_slower

SECTIONS = {
    "repeated": "repeated",
    "protocol": "the protocol",
    "slower": "3 % slower",
    "cupti": "net time and CUPTI",
    "itself": "against itself",
}
DO_BENCH = 3  # repeats beside ours


def repeated(folder: Path, repeats: int) -> list[dict[str, Any]]:
    """(max - min) / median of the reported mean over whole benchmarks, beside do_bench."""
    import torch
    import triton

    from triton_magics import ops
    from triton_magics.worker.load import load_version
    from triton_magics.worker.lock import gpu_lock
    from triton_magics.worker.resources import environment

    ref = right(folder, "softmax")
    made = [bench("softmax", (ref,), seed=i, budget=0.0) for i in range(repeats)]
    alone = partial(gpu_lock, environment().gpu_uuid, alone=True, what="do_bench", waiting=str)
    calls = {"torch": ops.load("softmax").reference, "v1_right": load_version(ref).call}
    rows = []
    for size in SIZES:
        shape = ops.load("softmax").sizes[size]
        x = torch.randn(shape, device="cuda")
        for provider, call in calls.items():
            ours = [m.timing(provider, size).mean_us for m in made]
            medians = [m.timing(provider, size).median_us for m in made]
            with alone():
                theirs = [1e3 * triton.testing.do_bench(partial(call, x)) for _ in range(DO_BENCH)]
            rows.append(
                {
                    "what": f"softmax {provider} {size}", "mean us": statistics.median(ours),
                    "spread %": spread_pct(ours), "spread us": max(ours) - min(ours),
                    "spread of medians %": spread_pct(medians),
                    "tick us": made[0].tick_us, "do_bench us": statistics.median(theirs),
                    "do_bench spread %": spread_pct(theirs),
                }
            )  # fmt: skip
    return rows


def spread_pct(values: list[float]) -> float:
    """Range as a percentage of the median."""
    return 100 * (max(values) - min(values)) / statistics.median(values)


def protocol(folder: Path) -> list[dict[str, Any]]:
    """Wall seconds of whole benchmarks, three sizes, ten runs, nothing to compile."""
    refs = four(folder)
    bench("softmax", refs, seed=1, budget=0.0)
    rows = []
    for versions, budget, what in (
        (refs, 0.0, "four versions and torch, 3 x 10"),
        (refs, 10.0, "the same, with the rounds for verdicts"),
        (refs[:1], 0.0, "one version and torch, 3 x 10"),
    ):
        timed = [
            seconds(partial(bench, "softmax", versions, seed=seed, budget=budget))
            for seed in range(1 if budget else 3)
        ]
        rows.append(
            {
                "what": f"softmax, {what}",
                "median s": statistics.median(s for s, _ in timed), "min s": min(s for s, _ in timed),
                "most extra rounds": max(len(t.extra_us) for _, m in timed for t in m.timings),
                "calls": sum(
                    t.calls * (len(t.samples_us) + len(t.extra_us)) for t in timed[0][1].timings
                ),
                "discards": sum(d.count for _, m in timed for t in m.timings for d in t.discards),
            }
        )  # fmt: skip
    return rows


def seconds(act: Any) -> tuple[float, Any]:
    """How long it took, and what it gave."""
    start = time.perf_counter()
    made = act()
    return time.perf_counter() - start, made


def main() -> None:
    """Prints the tables; writes JSON where `--json` says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", type=lambda names: names.split(","), default=list(SECTIONS))
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--same", type=int, default=7, help="benchmarks of a source with itself")
    parser.add_argument("--slower", type=int, default=3, help="benchmarks at each length")
    parser.add_argument("--seconds", type=float, default=170, help="none with itself after those")
    parser.add_argument("--runs", type=Path, help="keeps what was timed of a source with itself")
    options = parser.parse_args()
    if unknown := set(options.only) - set(SECTIONS):
        parser.error(f"--only {','.join(unknown)}: known are {', '.join(SECTIONS)}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
        with beside(folder, wanted="cupti" in options.only) as told:
            everything(folder, told, options)


def everything(folder: Path, told: Callable[[], dict[str, Any]], options: Any) -> None:
    """The tables that are asked for, one after the other; those of before stay."""
    deadline = time.monotonic() + options.seconds
    before = options.json.read_text() if options.json and options.json.is_file() else "{}"
    tables: dict[str, Any] = json.loads(before).get("tables", {})

    def by_another() -> list[dict[str, Any]]:
        found = told()
        tables["the GPU's work"] = [{k: found[k] for k in ("work s", "gates s")}]
        return against_cupti(folder, found["calls"])

    def keep(section: str, rows: list[dict[str, Any]]) -> None:
        tables[SECTIONS[section]] = rows
        write(tables, options)

    steps = {
        "repeated": lambda: repeated(folder, options.repeats),
        "protocol": lambda: protocol(folder),
        "slower": lambda: against_slower(folder, options.slower),
        "cupti": by_another,
        "itself": lambda: against_itself(
            folder, options.same, deadline, partial(keep, "itself"), options.runs
        ),
    }
    for section, step in steps.items():
        if section not in options.only:
            continue
        start = time.perf_counter()
        try:
            keep(section, step())
        except Exception:  # noqa: BLE001 (the other tables are worth having)
            traceback.print_exc()
            continue
        took = time.perf_counter() - start
        show(f"{SECTIONS[section]} ({took:.0f} s)", tables[SECTIONS[section]])


def write(tables: dict[str, Any], options: Any) -> None:
    """What is known so far, so that a run that is stopped leaves it."""
    import torch
    from common import versions

    whole = {
        "gpu": torch.cuda.get_device_name(), "date": time.strftime("%Y-%m-%d"),
        "versions": versions(), "command": " ".join(["python", *sys.argv]), "tables": tables,
    }  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(whole, indent=1) + "\n")


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """A table as text."""
    print(f"\n{title}\n" + " | ".join(rows[0]))
    for row in rows:
        print(" | ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
