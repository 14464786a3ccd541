"""What the benchmark's numbers are worth, on a GPU.

Net time against the span of the kernels by CUPTI; the spread of repeated benchmarks beside
`triton.testing.do_bench`; verdicts on a version against itself and against one made 3 % slower;
how long the whole protocol takes.

    python tests/benchmarks/timing.py [--json PATH] [--only repeated,protocol] [--seconds 170]

About 170 s on an H200 in all. What `--only` leaves out keeps the tables that PATH had.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
KERNELS = ROOT / "tests" / "faults" / "kernels"
OPS = ("softmax", "vector_add", "layer_norm")
SIZES = ("small", "medium", "large")
SHAPES = {"small": 256, "medium": 1024, "large": 4096}
MARK = "mark_kernel"
NEAR_US, NEAR = 0.15, 0.03  # of CUPTI's span, whichever is larger
SPINS = (9_000, 20_000, 80_000)  # cycles: raw times of about 8, 14 and 44 us on an H200
SLOWER = 0.03
NAMES = 16  # of one source
PAIRS = 13  # of versions that take turns, one more than there are neighbours
VERDICTS = ("faster", "slower", "same", "undecided")
SECTIONS = {
    "repeated": "repeated",
    "protocol": "the protocol",
    "slower": "3 % slower",
    "cupti": "net time and CUPTI",
    "itself": "against itself",
}
FOUND = ("found", "same", "undecided", "wrong way")
DO_BENCH = 3  # repeats beside ours
SPINNING = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, SPIN: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)
    now = start
    while now - start < SPIN:
        now = tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)

def triton_vector_add(x, y, alpha=1.0):
    out = torch.empty_like(x)
    n = out.numel()
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, alpha, SPIN={spin}, BLOCK=1024)
    return out
"""


class Quiet:
    """A reporter that tells nobody."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def version(folder: Path, op: str, name: str, source: str) -> Any:
    """A source as a version that a worker loads."""
    from triton_magics.engine.protocol import VersionRef

    digest = hashlib.sha256(source.encode()).hexdigest()
    path = folder / f"{op}_{name}_{digest[:8]}.py"
    path.write_text(source)
    return VersionRef(
        version=name, attempt=1, path=str(path), sha256=digest, entry=f"triton_{op}",
        header_lines=0, cell_offset=0, shown_path=path.name,
    )  # fmt: skip


def bench(
    op: str,
    versions: tuple[Any, ...],
    seed: int,
    sizes: tuple[str, ...] = SIZES,
    budget: float = 10.0,
) -> Any:
    """One benchmark, in this process, as the worker makes it."""
    from triton_magics.engine.protocol import BenchJob, OpRef
    from triton_magics.worker import bench as worker

    job = BenchJob(
        op=OpRef(name=op), versions=versions, sizes=sizes, runs=10, dtype="float32", seed=seed,
        budget_s=budget,
    )  # fmt: skip
    made, _ = worker.run(job, Quiet())
    assert made.passed, made
    return made


def right(folder: Path, op: str, name: str = "v1_right") -> Any:
    """A correct version of an op."""
    return version(folder, op, name, (KERNELS / f"{op}_right.py").read_text())


# ---------------------------------------------------------------------------------- by CUPTI


def by_cupti(folder: Path) -> dict[str, Any]:
    """Net time and CUPTI's span of the same calls, microseconds; and the protocol's work.

    A process of its own makes the same benchmarks with the profiler attached.
    """
    from triton_magics.worker import bench as worker

    found: dict[str, Any] = {}
    for op in OPS:
        calls: list[str] = []
        worker._GAUGED.clear()  # what the timer adds is another in each session of the profiler
        with marked(calls):
            made, events = profiled(partial(bench, op, (right(folder, op),), seed=1, budget=0.0))
        spans = spans_us(events)
        assert len(spans) == len(calls), (len(spans), len(calls))
        by_name: dict[str, list[float]] = {}
        for name, span in zip(calls, spans, strict=True):
            by_name.setdefault(name, []).append(span)
        for t in made.timings:
            spans = by_name[f"{t.provider} {t.size}"]
            found[f"{op} {t.provider} {t.size}"] = {
                "net us": t.median_us, "CUPTI us": statistics.median(spans),
            }  # fmt: skip
    refs = four(folder)
    bench("softmax", refs, seed=1, budget=0.0)
    _, events = profiled(partial(bench, "softmax", refs, seed=2, budget=0.0))
    gates = sum(e.time_range.end - e.time_range.start for e in events if "spin_kernel" in e.name)
    whole = sum(e.time_range.end - e.time_range.start for e in events)
    return {"calls": found, "work s": (whole - gates) / 1e6, "gates s": gates / 1e6}


def profiled(act: Any) -> tuple[Any, list[Any]]:
    """What it gives, and what the GPU did meanwhile, in order."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        made = act()
    events = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return made, sorted(events, key=lambda e: e.time_range.start)


@contextmanager
def marked(calls: list[str]) -> Iterator[None]:
    """Benchmarks whose every timed call lies between two marks, outside of its events.

    `calls` gets who was called.
    """
    import torch
    from kernels.mark import mark_kernel

    from triton_magics.worker import bench as worker

    plain = worker.TIMERS["gated"]
    nothing = torch.zeros(16, device="cuda")

    def mark() -> None:
        mark_kernel[(1,)](nothing, BLOCK_SIZE=16)

    mark()  # compiled by now

    class Marked(plain):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            flush = self._flush
            self._flush = lambda: (flush(), mark())
            self.gauging = False

        def gauged(self, own_us: Any) -> Any:
            self.gauging = True
            try:
                return super().gauged(own_us)
            finally:
                self.gauging = False

        def _try(self, call: Any, *, first: bool) -> Any:
            kept = call.kept
            calls.append("gauge" if self.gauging else called(call))
            return super()._try(replace(call, kept=lambda v: (mark(), kept(v))[1]), first=first)

    def called(call: Any) -> str:
        bound = dict(zip(call.act.__code__.co_freevars, call.act.__closure__, strict=True))
        rows = bound["given"].cell_contents[0].shape[0]
        size = next(s for s, n in SHAPES.items() if rows == n)
        return f"{names[call.of]} {size}"

    providers = worker.providers
    names: dict[Any, str] = {}

    def named(*args: Any) -> Any:
        made = tuple(replace(p, call=partial(p.call)) for p in providers(*args))
        names.update({p.call: p.name for p in made})
        return made

    worker.TIMERS["gated"], worker.providers = Marked, named
    try:
        yield
    finally:
        worker.TIMERS["gated"], worker.providers = plain, providers


def spans_us(events: list[Any]) -> list[float]:
    """From the first kernel's start to the last one's end, between pairs of marks."""
    spans, inside = [], None
    for event in events:
        if event.name != MARK:
            if inside is not None:
                inside += [event.time_range.start, event.time_range.end]
        elif inside is None:
            inside = []
        else:
            spans.append(max(inside) - min(inside))
            inside = None
    return spans


def against_cupti(folder: Path, calls: dict[str, Any]) -> list[dict[str, Any]]:
    """Net time beside CUPTI's span of the same calls; and net time without CUPTI, in this process."""
    rows = []
    for op in OPS:
        made = bench(op, (right(folder, op),), seed=1, budget=0.0)
        for timing in made.timings:
            what = f"{op} {timing.provider} {timing.size}"
            net, cupti = calls[what]["net us"], calls[what]["CUPTI us"]
            near = max(NEAR_US, NEAR * cupti)
            rows.append(
                {
                    "what": what, "CUPTI us": cupti, "net us": net, "difference us": net - cupti,
                    "within": abs(net - cupti) <= near,
                    "net us, no CUPTI": timing.median_us,
                    "its difference us": timing.median_us - cupti,
                    "within too": abs(timing.median_us - cupti) <= near,
                }
            )  # fmt: skip
    return rows


# ------------------------------------------------------------------------------ repeatability


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


# ----------------------------------------------------------------------------------- verdicts


def against_itself(
    folder: Path,
    benchmarks: int,
    deadline: float,
    said: Callable[[list[Any]], None],
    runs: Path | None,
) -> list[dict[str, Any]]:
    """One source under many names; each neighbouring pair is a comparison of a kernel with itself."""
    counts: dict[str, Counter[str]] = {}
    rounds: dict[str, list[int]] = {}
    rows: list[dict[str, Any]] = []
    for i in range(benchmarks):
        op = ("softmax", "vector_add")[i % 2]
        names = [f"v{n}_same" for n in range(1, NAMES + 1)]
        refs = tuple(right(folder, op, name) for name in names)
        made = bench(op, refs, seed=1000 + i, budget=60.0)
        keep_runs(runs, op, made)
        for told in neighbours(made, names):
            counts.setdefault(told.size, Counter())[told.verdict] += 1
            rounds.setdefault(told.size, []).append(told.rounds)
        rows = [verdict_row(f"itself, {size}", counts[size], rounds[size]) for size in counts]
        whole = sum(counts.values(), Counter())
        rows.append(verdict_row("itself, all", whole, [n for r in rounds.values() for n in r]))
        said(rows)
        if time.monotonic() > deadline:
            break
    return rows


def keep_runs(path: Path | None, op: str, made: Any) -> None:
    """Adds everyone's net time of every run to a file of JSON lines, microseconds."""
    if path is None:
        return
    times = [(t.size, t.provider, t.calls, t.samples_us + t.extra_us) for t in made.timings]
    with path.open("a") as lines:
        lines.write(json.dumps({"op": op, "tick us": made.tick_us, "runs": times}) + "\n")


def against_slower(folder: Path, benchmarks: int) -> list[dict[str, Any]]:
    """Versions whose kernels take turns to do 3 % more, at three lengths."""
    rows = []
    for spin in SPINS:
        one, twice = (spinning(folder, f"v{n}_spin", n * spin) for n in (1, 2))
        tried = bench("vector_add", (one, twice), seed=7, sizes=("small",), budget=0.0)
        net = tried.timing("v1_spin", "small").median_us
        per_us = spin / (tried.timing("v2_spin", "small").median_us - net)
        cycles = (spin, round(spin + SLOWER * net * per_us))
        names = [f"v{n}_{('spin', 'slower')[n % 2]}" for n in range(PAIRS + 1)][1:]
        refs = tuple(spinning(folder, name, cycles["slower" in name]) for name in names)
        counts, rounds, ratios = Counter(), [], []
        for i in range(benchmarks):
            made = bench("vector_add", refs, seed=2000 + i, sizes=("small",))
            for told in neighbours(made, names):
                slow = "slower" in told.candidate
                is_right = told.verdict == ("slower" if slow else "faster")
                open_ones = told.verdict in ("same", "undecided")
                counts["found" if is_right else told.verdict if open_ones else "wrong way"] += 1
                rounds.append(told.rounds)
                ratios.append(told.ratio if slow else 1 / told.ratio)
        raw = statistics.median(made.timing(names[1], "small").raw_us)
        row = verdict_row(f"3 % slower at {raw:.1f} us raw", counts, rounds, FOUND)
        rows.append({**row, "median ratio": statistics.median(ratios)})
    return rows


def neighbours(made: Any, names: list[str]) -> list[Any]:
    """Its comparisons of each version with the one before it."""
    pairs = set(zip(names[1:], names, strict=False))
    return [c for c in made.comparisons if (c.candidate, c.baseline) in pairs]


def spinning(folder: Path, name: str, cycles: int) -> Any:
    """An addition that lasts at least so many cycles."""
    return version(folder, "vector_add", name, SPINNING.replace("{spin}", str(cycles)))


def verdict_row(
    what: str, counts: Counter[str], rounds: list[int], words: tuple[str, ...] = VERDICTS
) -> dict[str, Any]:
    """How often each verdict came, and after how many rounds."""
    return {
        "what": what, "comparisons": counts.total(), **{w: counts[w] for w in words},
        "mean rounds": statistics.fmean(rounds), "most rounds": max(rounds),
    }  # fmt: skip


# ----------------------------------------------------------------------------------- protocol


def four(folder: Path) -> tuple[Any, ...]:
    """The same softmax in four versions."""
    source = (KERNELS / "softmax_right.py").read_text()
    return tuple(version(folder, "softmax", f"v{i}_x", f"{source}\n# {i}\n") for i in range(1, 5))


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
    parser.add_argument("--cupti", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.only) - set(SECTIONS):
        parser.error(f"--only {','.join(unknown)}: known are {', '.join(SECTIONS)}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
        if options.cupti:
            options.cupti.write_text(json.dumps(by_cupti(folder)))
            return
        with cupti_beside(folder, options) as told:
            everything(folder, told, options)


@contextmanager
def cupti_beside(folder: Path, options: Any) -> Iterator[Callable[[], dict[str, Any]]]:
    """A process with the profiler, beside this one: the GPU's lock keeps their benchmarks apart.

    Gives what waits for its end and tells what it has found.
    """
    path = folder / "cupti.json"
    wanted = "cupti" in options.only
    child = subprocess.Popen([sys.executable, __file__, "--cupti", str(path)]) if wanted else None

    def told() -> dict[str, Any]:
        assert child is not None
        assert child.wait(timeout=120) == 0
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    try:
        yield told
    finally:
        if child:
            child.kill()


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
