"""One Lab on one GPU and on all: validations a minute, and times beside a busy neighbour.

    python tests/benchmarks/gpus.py [--out FILE] [--part rate|times|search|cores] [--validations 200] [--repeats 8]
    python tests/benchmarks/gpus.py --lanes 1,2,4 [--seconds 6]     (one GPU, 45 s in all)

Each part adds its rows to the file as soon as it has them. With one GPU the rows of several are left out;
without one the script runs in the interpreter, which only shows that it works.

`rate`: full plans of softmax sources that were never compiled, by `lab.map`. `busy` is the share of the
time in which a lane runs a job, `starting` the share in which it waits for a worker, `CPU ms` the parent's
CPU time for each validation. `times`: benchmarks of one version, alone, on all GPUs at once, and beside
validations on the others; with `pin_cores` off and on. `search`: `--search` of two grids of `record_grids.py`, on
one GPU and on all. `--part cores`: what each of several busy Python processes does beside the others,
without a GPU: how far the processor lets validations run side by side.

`--lanes`: only full plans by one Lab on one GPU, for so many seconds with each number of lanes; 0 is the default (more on demand) and comes alone or after 1. `cores` is how many CPU cores all
processes of the container kept busy, `CPU s` the same for each validation. Of that the table has the
parts of a worker: its warm-up, the judge, the subject process, and the processes that compile. The rest
are the fork server, compilers that were killed, and this process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from common import versions
from loop import KERNEL, variant
from record_grids import GRIDS

from triton_magics.config import Settings
from triton_magics.execution.local import gpu_detection
from triton_magics.execution.local.device_queue import DeviceQueue
from triton_magics.lab import Lab

TASKS = ("warm-up", "judge", "subject", "compilers")  # of a worker
N_GPUS = len(gpu_detection.gpus()) if gpu_detection.detect() == "gpu" else 0
LANES = (1, 2, 4)  # of each GPU


class Output:
    """The figures so far, in a file after each."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.value: dict[str, Any] = {
            "title": "one Lab on several GPUs",
            "date": time.strftime("%Y-%m-%d"),
            "versions": versions(),
            "gpus": [gpu.name for gpu in gpu_detection.gpus()] if N_GPUS else [],
            "rate": [],
            "times": [],
            "search": [],
            "cores": [],
        }

    def add(self, part: str, row: dict[str, Any]) -> None:
        """Print a row and write the file."""
        self.value[part].append(row)
        print(part, json.dumps(row), flush=True)
        if self._path:
            self._path.write_text(json.dumps(self.value, indent=1) + "\n")


@contextmanager
def lane_times() -> Iterator[dict[str, float]]:
    """Yield the seconds that lanes spend in jobs (`busy`), and waiting for workers (`starting`).

    Also the CPU seconds of the workers that have run `jobs`: before the job (`warm-up`) and in it.
    """
    spent: dict[str, float] = defaultdict(float)
    lock = threading.Lock()
    own = {"busy": DeviceQueue._run, "starting": DeviceQueue._worker}
    follow = DeviceQueue._follow

    def count_cpu(queue: DeviceQueue, job: Any, mode: Any, run: Any) -> Any:
        if mode == "compiler":
            return follow(queue, job, mode, run)
        workers = (run.worker, *run.helpers)
        before = [process_cpu_s(worker) for worker in workers]
        end = follow(queue, job, mode, run)
        after = [process_cpu_s(worker) for worker in workers]
        with lock:
            spent["jobs"] += 1
            spent["warm-up"] += sum(sum(one.values()) for one in before)
            for one, later in zip(before, after, strict=True):
                for name in one:
                    spent[name] += later[name] - one[name]
        return end

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            start_s = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                with lock:
                    spent[name] += time.perf_counter() - start_s

        return call

    DeviceQueue._run = timed("busy", own["busy"])  # type: ignore[method-assign]
    DeviceQueue._worker = timed("starting", own["starting"])  # type: ignore[method-assign]
    DeviceQueue._follow = count_cpu  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        DeviceQueue._follow = follow  # type: ignore[method-assign]
        DeviceQueue._run, DeviceQueue._worker = own["busy"], own["starting"]  # type: ignore[method-assign]


def process_cpu_s(worker: Any) -> dict[str, float]:
    """Return the CPU seconds of a worker's processes so far, by their task."""
    judge, subject = (cpu_times_s(pid) for pid in (worker.pid, worker.subject_pid))
    return {"judge": judge[0], "compilers": judge[1], "subject": sum(subject)}


def cpu_times_s(pid: int | None) -> tuple[float, float]:
    """Return the CPU seconds of a process, and of the children that it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, 0.0
    user, system, children_user, children_system = map(int, fields[11:15])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + system) / ticks, (children_user + children_system) / ticks


def settings_of(gpus: str, **more: Any) -> Settings:
    """Return settings with these GPUs; in the interpreter without any."""
    return Settings(gpus=gpus if N_GPUS > 1 else "all" if N_GPUS else "", **more)


def steps(number: int, *, written: bool) -> list[dict[str, Any]]:
    """Return the steps of a new version: it is saved, maybe compiled, and validated in full."""
    name, source = f"v{number}_rate", variant(number)
    kernel = {"op": "softmax", "version": name, "source": source, "compile": written}
    validate = {"op": "softmax", "version": name, "plan": "full" if N_GPUS else "quick"}
    return [{"verb": "kernel", "arguments": kernel}, {"verb": "validate", "arguments": validate}]


def rate(gpus: int, lanes: int, pinned: bool, written: bool, n: int) -> dict[str, Any]:
    """Return the figures of n validations by one Lab."""
    names = ",".join(map(str, range(gpus)))
    settings = settings_of(names, lanes=lanes, pin_cores=pinned)
    with tempfile.TemporaryDirectory() as folder, Lab(folder, settings=settings) as lab:
        warm = [steps(number, written=written) for number in range(1, 2 * gpus * lanes + 1)]
        assert all(result.entry.ok for result in lab.map(warm))
        lines = [steps(len(warm) + 1 + number, written=written) for number in range(n)]
        with lane_times() as spent:
            start_s, cpu_s = time.perf_counter(), time.process_time()
            results = list(lab.map(lines))
            wall_s, cpu_s = time.perf_counter() - start_s, time.process_time() - cpu_s
        wrong = [r.entry.error or r.entry.status for r in results if not r.entry.ok]
        own = [r.value.duration_s for r in results if r.entry.ok]
    places = wall_s * gpus * lanes
    return {
        "gpus": gpus, "lanes": lanes, "pinned": pinned, "written in the batch": written,
        "validations": n, "wall_s": round(wall_s, 2), "a minute": round(60 * n / wall_s, 1),
        "busy": round(spent["busy"] / places, 3), "starting": round(spent["starting"] / places, 3),
        "worker_s": round(statistics.median(own), 3) if own else None,
        "CPU ms": round(1e3 * cpu_s / n, 1), "failed": wrong[:3],
    }  # fmt: skip


def rates(output: Output, n: int) -> None:
    """Measure one GPU and all, with each number of lanes; at last with pinned cores."""
    counts = sorted({1, max(N_GPUS, 1)})
    for lanes, gpus in itertools.product(LANES, counts):
        output.add("rate", rate(gpus, lanes, False, False, max(n * gpus // counts[-1], 12)))
    if N_GPUS > 1:
        output.add("rate", rate(N_GPUS, 2, True, False, n))


def used_cpu_s() -> float:
    """Return the CPU time that this container has used, else that of the machine, seconds."""
    usage = Path("/sys/fs/cgroup/cpu.stat")
    if usage.exists():
        return float(usage.read_text().split()[1]) / 1e6
    ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return sum(map(int, (*ticks[:3], *ticks[5:8]))) / os.sysconf("SC_CLK_TCK")


def lane_rates(output: Output, lanes: list[int], seconds: float) -> None:
    """Measure one Lab with each number of lanes, one after the other."""
    settings, number = settings_of("0"), itertools.count(1)
    with tempfile.TemporaryDirectory() as folder, Lab(folder, settings=settings) as lab:
        for count in lanes:
            settings.lanes = count
            output.add("rate", lane_rate(lab, count, seconds, number))


def lane_rate(lab: Lab, lanes: int, seconds: float, number: Iterator[int]) -> dict[str, Any]:
    """Return the figures of so many seconds of validations, after two for each lane."""
    begun_s, shown = time.perf_counter(), lanes or "on demand"
    lanes = lanes or 2  # of 16 cores; the second opens after some jobs
    results = lab.map(steps(next(number), written=False) for _ in range(200 * lanes))
    done: list[Any] = []
    with lane_times() as spent:
        warm = [next(results) for _ in range((2 if lanes == shown else 5) * lanes)]
        assert all(r.entry.ok for r in warm), warm
        spent.clear()  # a job that runs now counts whole, one that runs at the end not at all
        start_s, cpu_s = time.perf_counter(), used_cpu_s()
        while (wall_s := time.perf_counter() - start_s) < seconds or not done:
            done.append(next(results))
        cpu_s = used_cpu_s() - cpu_s
    results.close()  # type: ignore[attr-defined]
    own = [r.value.duration_s for r in done if r.entry.ok]
    tasks = {f"{task} CPU s": round(spent[task] / max(spent["jobs"], 1), 2) for task in TASKS}
    return {
        "lanes": shown, "validations": len(done), "a minute": round(60 * len(done) / wall_s, 1),
        "busy": round(spent["busy"] / wall_s / lanes, 3),
        "starting": round(spent["starting"] / wall_s / lanes, 3),
        "worker_s": round(statistics.median(own), 3) if own else None,
        "cores": round(cpu_s / wall_s, 1), "of": os.cpu_count(), **tasks,
        "CPU s": round(cpu_s / len(done), 1),
        "warm_s": round(start_s - begun_s, 1),
        "failed": [r.entry.error or r.entry.status for r in done if not r.entry.ok][:3],
    }  # fmt: skip


BENCH = {"op": "softmax", "versions": ["v1"], "runs": 20}


def time_repeatedly(lab: Lab, repeats: int, at_once: int) -> list[Any]:
    """Return the benchmarks of one version."""
    lines = [{"verb": "bench", "arguments": BENCH}] * repeats
    results = list(lab.map(lines, at_once=at_once))
    assert all(r.entry.ok for r in results), [r.entry for r in results if not r.entry.ok]
    return [r.value for r in results]


def times(output: Output, repeats: int) -> None:
    """Time a version alone, at once on all GPUs, and beside validations; add the medians."""
    for pinned in (False, True):
        alone = [str(i) for i in range(max(N_GPUS, 1))]
        names = ["all", *alone, ",".join(alone[1:])]
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            labs = [
                stack.enter_context(
                    Lab(folder / str(i), settings=settings_of(name, pin_cores=pinned))
                )
                for i, name in enumerate(names)
                if name
            ]
            samples = measure_times(labs, repeats)
        for (mode, uuid), rows in sorted(samples.items()):
            for size in rows[0][0]:
                own = [first[size] for first, _ in rows]
                ratio = [torch[size] / first[size] for first, torch in rows if torch]
                output.add("times", {
                    "pinned": pinned, "mode": mode, "gpu": uuid, "size": size,
                    "benchmarks": len(own), "median_us": round(statistics.median(own), 3),
                    "least_us": round(min(own), 3), "most_us": round(max(own), 3),
                    "of torch": round(statistics.median(ratio), 4) if ratio else None,
                })  # fmt: skip


Sample = tuple[dict[str, float], dict[str, float]]  # of the version and of torch, us by size


def measure_times(labs: list[Lab], repeats: int) -> dict[tuple[str, str], list[Sample]]:
    """Return the times by mode and GPU, in two blocks, so that a drift hits every mode.

    Args:
        labs: of all GPUs, of each alone, and, if there are several, of all but the first.
        repeats: benchmarks of a block, for each GPU.
    """
    n_gpus = max(N_GPUS, 1)
    every, alone, busy = labs[0], labs[1 : 1 + n_gpus], labs[1 + n_gpus :]
    for lab in (every, *alone) if busy else alone:
        lab.kernel("softmax", "v1", KERNEL.read_text(), compile=False)
        assert lab.validate("softmax", "v1", plan="quick").passed
        at_once = n_gpus if lab is every else 1
        time_repeatedly(lab, 2 * at_once, at_once)
    samples: dict[tuple[str, str], list[Sample]] = defaultdict(list)

    def add(mode: str, benchmarks: list[Any]) -> None:
        for benchmark in benchmarks:
            uuid = benchmark.environment.gpu_uuid or "none"
            own = {t.size: t.mean_us for t in benchmark.timings if t.provider != "torch"}
            torch = {t.size: t.mean_us for t in benchmark.timings if t.provider == "torch"}
            samples[mode, uuid].append((own, torch))

    for _ in range(2):
        for lab in alone:
            add("alone", time_repeatedly(lab, repeats, 1))
        if busy:
            add("at once", time_repeatedly(every, n_gpus * repeats, n_gpus))
            with validating(busy[0]):
                add("beside validations", time_repeatedly(alone[0], repeats, 1))
    return samples


@contextmanager
def validating(lab: Lab) -> Iterator[None]:
    """Validate versions one after the other in a thread, until the block ends."""
    stop, has_begun = threading.Event(), threading.Event()
    number = len(lab.versions("softmax"))

    def work() -> None:
        for result in lab.map(steps(number + i, written=False) for i in range(1, 500)):
            assert result.entry.ok, result.entry
            has_begun.set()
            if stop.is_set():
                return

    thread = threading.Thread(target=work)
    thread.start()
    has_begun.wait(120)
    try:
        yield
    finally:
        stop.set()
        thread.join()


SEARCHED = ("softmax", "matmul")


def searches(output: Output) -> None:
    """Search grids of the recorded kernels; without a GPU nothing can be searched."""
    for gpus in range(1, N_GPUS + 1):
        for op in SEARCHED:
            output.add("search", search(op, gpus))


def search(op: str, gpus: int) -> dict[str, Any]:
    """Return the end of a search of a grid by so many GPUs."""
    grid, names = GRIDS[op], ",".join(map(str, range(gpus)))
    kernel = Path(__file__).parent / "kernels" / f"grid_{op}.py"
    with (
        tempfile.TemporaryDirectory() as folder,
        Lab(folder, settings=settings_of(names)) as lab,
    ):
        lab.kernel(op, "v1", kernel.read_text())
        size = "x".join(map(str, grid["shape"]))
        start_s = time.perf_counter()
        sweep = lab.sweep(
            op, "v1", grid["knobs"], size=size, dtype=grid["dtype"], search=True, budget=60
        )
        wall_s = time.perf_counter() - start_s
    best = sweep.best
    return {
        "op": op, "gpus": gpus, "wall_s": round(wall_s, 1), "status": sweep.status,
        "tried": len(sweep.configurations), "of": sweep.space,
        "best": best.settings if best else None,
        "us": round(best.timing.mean_us, 2) if best and best.timing else None,
        "full plan, cases": sweep.best_cases, "conditions": sweep.conditions,
    }  # fmt: skip


def core_rates(output: Output, seconds: float = 2.0) -> None:
    """Measure the work of each of several busy processes, as a share of what one does alone."""
    cores = len(os.sched_getaffinity(0))
    alone = None
    for count in sorted({1, max(cores // 4, 1), max(cores // 2, 1), cores}):
        with multiprocessing.get_context("spawn").Pool(count) as pool:
            pool.map(_busy_loops, [0.1] * count, chunksize=1)  # all of them have started
            each = statistics.mean(pool.map(_busy_loops, [seconds] * count, chunksize=1))
        alone = alone or each
        output.add("cores", {"processes": count, "of": cores, "each": round(each / alone, 3)})


def _busy_loops(seconds: float) -> float:
    """Return how many loops over some MB of objects a process does in a second."""
    loops, start_s = 0, time.perf_counter()
    while time.perf_counter() - start_s < seconds:
        {str(number): number for number in range(20_000)}
        loops += 1
    return loops / (time.perf_counter() - start_s)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--part", choices=("rate", "times", "search", "cores"), action="append")
    parser.add_argument("--validations", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--lanes", metavar="1,2,4")
    parser.add_argument("--seconds", type=float, default=6.0)
    args = parser.parse_args()
    output = Output(args.out)
    if args.lanes:
        lane_rates(output, [int(n) for n in args.lanes.split(",")], args.seconds)
        return
    parts = args.part or ["times", "rate", "search"]
    if "times" in parts:
        times(output, args.repeats)
    if "rate" in parts:
        rates(output, args.validations)
    if "search" in parts:
        searches(output)
    if "cores" in parts:
        core_rates(output)


if __name__ == "__main__":
    main()
