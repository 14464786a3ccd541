"""Accuracy and repeatability of benchmarks on a GPU.

Net time against the span of the kernels by CUPTI; the spread of repeated benchmarks beside
`triton.testing.do_bench`; verdicts on a version against itself and against one that is 3 %
slower; the duration of the whole protocol.

    python tests/benchmarks/timing.py [--json PATH] [--only repeated,protocol] [--seconds 170]

About 170 s on an H200 in all. Tables that `--only` omits stay in PATH unchanged.
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


def repeatability(folder: Path, repeats: int) -> list[dict[str, Any]]:
    """Return (max - min) / median of the reported mean over benchmarks, beside do_bench."""
    import torch
    import triton

    from triton_magics import operators
    from triton_magics.harness.load import load_version
    from triton_magics.harness.process.device import environment
    from triton_magics.harness.process.gpu_lock import gpu_lock

    ref = right(folder, "softmax")
    benchmarks = [bench("softmax", (ref,), seed=i, budget=0.0) for i in range(repeats)]
    alone = partial(
        gpu_lock, environment().gpu_uuid, exclusive=True, purpose="do_bench", on_wait=str
    )
    calls = {"torch": operators.load("softmax").reference, "v1_right": load_version(ref).call}
    rows = []
    for size in SIZES:
        shape = operators.load("softmax").sizes[size]
        x = torch.randn(shape, device="cuda")
        for provider, call in calls.items():
            ours = [m.timing(provider, size).mean_us for m in benchmarks]
            medians = [m.timing(provider, size).median_us for m in benchmarks]
            with alone():
                theirs = [1e3 * triton.testing.do_bench(partial(call, x)) for _ in range(DO_BENCH)]
            rows.append(
                {
                    "what": f"softmax {provider} {size}", "mean us": statistics.median(ours),
                    "spread %": spread_pct(ours), "spread us": max(ours) - min(ours),
                    "spread of medians %": spread_pct(medians),
                    "tick us": benchmarks[0].tick_us, "do_bench us": statistics.median(theirs),
                    "do_bench spread %": spread_pct(theirs),
                }
            )  # fmt: skip
    return rows


def spread_pct(values: list[float]) -> float:
    """Return the range as a percentage of the median."""
    return 100 * (max(values) - min(values)) / statistics.median(values)


def protocol(folder: Path) -> list[dict[str, Any]]:
    """Return wall seconds of benchmarks of three sizes and ten runs without compilation."""
    refs = four(folder)
    bench("softmax", refs, seed=1, budget=0.0)
    rows = []
    for versions, budget, label in (
        (refs, 0.0, "four versions and torch, 3 x 10"),
        (refs, 10.0, "the same, with the rounds for verdicts"),
        (refs[:1], 0.0, "one version and torch, 3 x 10"),
    ):
        runs = [
            seconds(partial(bench, "softmax", versions, seed=seed, budget=budget))
            for seed in range(1 if budget else 3)
        ]
        rows.append(
            {
                "what": f"softmax, {label}",
                "median s": statistics.median(s for s, _ in runs), "min s": min(s for s, _ in runs),
                "most extra rounds": max(len(t.extra_us) for _, m in runs for t in m.timings),
                "calls": sum(
                    t.calls * (len(t.samples_us) + len(t.extra_us)) for t in runs[0][1].timings
                ),
                "discards": sum(d.count for _, m in runs for t in m.timings for d in t.discards),
            }
        )  # fmt: skip
    return rows


def seconds(act: Any) -> tuple[float, Any]:
    """Return the seconds of a call and its result."""
    start = time.perf_counter()
    result = act()
    return time.perf_counter() - start, result


def main() -> None:
    """Print the tables, and write JSON to `--json PATH`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", type=lambda names: names.split(","), default=list(SECTIONS))
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--same", type=int, default=7, help="benchmarks of a source with itself")
    parser.add_argument("--slower", type=int, default=3, help="benchmarks at each length")
    parser.add_argument(
        "--seconds",
        type=float,
        default=170,
        help="start no benchmark of a source with itself after those",
    )
    parser.add_argument(
        "--runs", type=Path, help="a JSON Lines file of the net times of a source with itself"
    )
    options = parser.parse_args()
    if unknown := set(options.only) - set(SECTIONS):
        parser.error(f"--only {','.join(unknown)}: known are {', '.join(SECTIONS)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
        with beside(folder, with_profiler="cupti" in options.only) as read_cupti:
            measure_all(folder, read_cupti, options)


def measure_all(folder: Path, read_cupti: Callable[[], dict[str, Any]], options: Any) -> None:
    """Measure the requested tables one after the other; keep the other tables."""
    deadline = time.monotonic() + options.seconds
    before = options.json.read_text() if options.json and options.json.is_file() else "{}"
    tables: dict[str, Any] = json.loads(before).get("tables", {})

    def by_another() -> list[dict[str, Any]]:
        cupti = read_cupti()
        tables["the GPU's work"] = [{k: cupti[k] for k in ("work s", "gates s")}]
        return against_cupti(folder, cupti["calls"])

    def keep(section: str, rows: list[dict[str, Any]]) -> None:
        tables[SECTIONS[section]] = rows
        write(tables, options)

    steps = {
        "repeated": lambda: repeatability(folder, options.repeats),
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
    """Write the tables so far, so that an interrupted run keeps them."""
    import torch
    from common import versions

    whole = {
        "gpu": torch.cuda.get_device_name(), "date": time.strftime("%Y-%m-%d"),
        "versions": versions(), "command": " ".join(["python", *sys.argv]), "tables": tables,
    }  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(whole, indent=1) + "\n")


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Print a table."""
    print(f"\n{title}\n" + " | ".join(rows[0]))
    for row in rows:
        print(" | ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
