"""Run everything that needs a GPU, in parts that fit a limit of time, on one GPU or several.

    python scripts/gpu_steps.py --list                       the steps, and which are done
    python scripts/gpu_steps.py --limit 560                  the steps that are not done and still fit
    python scripts/gpu_steps.py --limit 560 loop 'notebook-*'    these, in this order

Each GPU runs a step at a time. Steps that measure times run beside each other on different GPUs,
never beside steps that keep the processor busy. A step runs only where the rest of the limit holds
its expected time, and is stopped at the limit. Its output is in build/gpu/NAME.log, its figures in
build/gpu/NAME.json. `--archive FILE.tar.gz` keeps both, and every file of the repository that the
steps wrote, up to date in one file: what is there survives whatever happens next.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from triton_magics.execution.local import gpu_detection

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "gpu"
WRITTEN = ("docs", "notebooks", "scripts/notebooks", "tests/benchmarks")  # by steps
STOP_S = 3.0  # for each signal
END_S = 2 * STOP_S + 4.0  # for the signals, and the last archive
MIN_SHARE = 0.4  # of its expected time, for a step whose results count however far it came


@dataclass(frozen=True)
class Step:
    """A step: a command, and what it needs.

    Attributes:
        command: arguments for Python; `{json}` is the file of its figures, `{jobs}` the processor
            cores for it.
        expected_s: its time on an H100, seconds.
        gpus: how many it uses at the same time.
        is_busy: it keeps the processor busy, so no times are measured beside it.
        is_partial: its results so far are worth having.
    """

    name: str
    command: str
    expected_s: float
    gpus: int = 1
    is_busy: bool = False
    is_partial: bool = False


def _notebook(op: str, expected_s: float) -> Step:
    return Step(f"notebook-{op}", f"scripts/ops.py run {op}", expected_s)


def _tests(file: str, expected_s: float, gpus: int = 1) -> Step:
    command = f"-m pytest -q -m gpu tests/gpu/{file}.py"
    return Step(file.replace("_", "-"), command, expected_s, gpus=gpus, is_busy=True)


_B = "tests/benchmarks"
_CORPUS = "tests/faults/corpus.py --gpu --brief --jobs {jobs} --json {json}"
STEPS = (
    Step("gpu-rates", f"{_B}/gpus.py --part rate --validations 24 --out {{json}}", 160, gpus=2),
    Step("gpu-times", f"{_B}/gpus.py --part times --repeats 2 --out {{json}}", 60, gpus=2),
    _tests("test_two_gpus", 60, gpus=2),
    Step("lanes", f"{_B}/gpus.py --lanes 1,2,4 --seconds 8 --out {{json}}", 80),
    Step("loop", f"{_B}/loop.py --json {{json}}", 50),
    Step("loop-cuda", f"{_B}/loop.py --type cuda --json {{json}}", 35),
    Step("validation", f"{_B}/validation.py --seconds --written --repeats 3 --json {{json}}", 45),
    *(
        _notebook(op, expected_s)
        for op, expected_s in {
            "attention": 180, "gqa": 180, "mha": 180, "fp8_matmul": 65, "rms_norm": 80, "layer_norm": 95,
            "cross_entropy": 120, "matmul": 150, "quantized_matmul": 55, "linear_cross_entropy": 120,
            "softmax": 120, "swiglu": 60, "rope": 60, "vector_add": 50, "vector_mul": 40, "relu": 40,
            "gelu": 40, "dropout": 50, "sum": 50, "mean": 50,
        }.items()
    ),
    *(
        Step(f"grid-{grid}", f"{_B}/record_grids.py --only {grid}", 45)
        for grid in ("softmax", "layer_norm", "cross_entropy", "matmul", "attention")
    ),
    Step("gradients", "scripts/ops.py gradients", 120),
    Step("models", "scripts/ops.py models", 150),
    Step("reading", "scripts/ops.py reading", 60),
    Step("clock", f"{_B}/clock_factors.py --json {{json}}", 60),
    _tests("test_gpu", 90),
    _tests("test_cuda_kernels", 280),
    _tests("test_gpu_judge", 90),
    _tests("test_gpu_sandbox", 90),
    _tests("test_product_kernels", 90),
    _tests("test_causes", 120),
    _tests("test_stated_limits_gpu", 120),
    Step(
        "false-refusals",
        "tests/benchmarks/false_refusals.py --minutes 4 --jobs {jobs} --json {json} --folder {json}.parts",
        330, is_busy=True, is_partial=True,
    ),
    Step("corpus", _CORPUS, 900, is_busy=True, is_partial=True),
    Step(
        "soak",
        "tests/faults/soak.py --jobs 1000 --labs 4 --device gpu --sandbox on --within 240 --into {json}",
        270, is_busy=True,
    ),
    Step("accuracy", "scripts/ops.py accuracy", 60, is_busy=True),
)  # fmt: skip


@dataclass
class Running:
    """A step that runs, on these GPUs.

    Attributes:
        cut: it was stopped at the limit.
    """

    step: Step
    gpus: tuple[int, ...]
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)
    cut: bool = False


def stop(runs: Sequence[Running]) -> None:
    """End steps and what they started; Python programs see a KeyboardInterrupt first."""
    for number in (signal.SIGINT, signal.SIGKILL):
        for run in runs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.process.pid, number)
        until_s = time.monotonic() + STOP_S
        for run in runs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.process.wait(max(until_s - time.monotonic(), 0.0))
            run.cut = True


class GpuSteps:
    """The steps of one call.

    Attributes:
        folder: of logs, figures and `steps.json`, which says how each step ended.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        gpus: int,
        limit_s: float,
        folder: Path,
        archive: Path | None,
    ) -> None:
        """Run nothing yet.

        Args:
            steps: in the order of their importance.
            gpus: of the machine.
            limit_s: seconds from now until the last process has ended.
            folder: see the class; it is made if it is missing.
            archive: a `.tar.gz` of the folder and of what the steps wrote, or None.
        """
        self._waiting = [step for step in steps if step.gpus <= gpus]
        self._gpus = gpus
        self._end = time.monotonic() + limit_s - END_S
        self._archive = archive
        self._started_at = time.time()
        self._running: list[Running] = []
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.ended: dict[str, dict[str, object]] = read_ended(folder)

    def run(self) -> None:
        """Run what fits; return when the last step has ended."""
        while self._start_those_that_fit():
            self._wait_for_one()
        for step in self._waiting:
            print(f"left out, {step.expected_s:.0f} s do not fit: {step.name}", flush=True)

    def _start_those_that_fit(self) -> bool:
        """Start every step that can start now; return True while one runs."""
        for step in [step for step in self._waiting if self._fits(step)]:
            if any(run.step.is_busy != step.is_busy for run in self._running):
                continue
            free = self._free_gpus()
            if len(free) < step.gpus:
                break  # nothing overtakes a step that waits for a GPU
            self._waiting.remove(step)
            self._start(step, free[: step.gpus])
        return bool(self._running)

    def _fits(self, step: Step) -> bool:
        share = MIN_SHARE if step.is_partial else 1.0
        return time.monotonic() + share * step.expected_s <= self._end

    def _free_gpus(self) -> tuple[int, ...]:
        used = {gpu for run in self._running for gpu in run.gpus}
        return tuple(gpu for gpu in range(self._gpus) if gpu not in used)

    def _start(self, step: Step, gpus: tuple[int, ...]) -> None:
        figures = self.folder / f"{step.name}.json"
        jobs = max(2, len(os.sched_getaffinity(0)) // self._gpus * len(gpus) - 2)
        words = [word.format(json=figures, jobs=jobs) for word in shlex.split(step.command)]
        with (self.folder / f"{step.name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)), "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
        print(f"started on GPU {' and '.join(map(str, gpus))}: {step.name}", flush=True)
        self._running.append(Running(step, gpus, process))

    def _wait_for_one(self) -> None:
        """Wait until a step ends or the limit is reached; write down how each ended."""
        while all(run.process.poll() is None for run in self._running):
            if time.monotonic() >= self._end:
                stop(self._running)
            time.sleep(0.1)
        for run in [run for run in self._running if run.process.poll() is not None]:
            self._running.remove(run)
            took_s = round(time.monotonic() - run.started, 1)
            how = "stopped at the limit" if run.cut else f"exit code {run.process.returncode}"
            print(f"ended after {took_s:.0f} s, {how}: {run.step.name}", flush=True)
            self.ended[run.step.name] = {"how": how, "seconds": took_s, "gpus": len(run.gpus)}
            (self.folder / "steps.json").write_text(json.dumps(self.ended, indent=1) + "\n")
            self._pack()

    def _pack(self) -> None:
        if self._archive is None:
            return
        part = self._archive.with_name(self._archive.name + ".part")
        with tarfile.open(part, "w:gz") as archive:
            for path in self._results():
                archive.add(
                    path,
                    str(path.relative_to(ROOT))
                    if path.is_relative_to(ROOT)
                    else f"gpu/{path.name}",
                )
        part.replace(self._archive)

    def _results(self) -> Iterator[Path]:
        yield from (path for path in sorted(self.folder.rglob("*")) if path.is_file())
        for folder in WRITTEN:
            for path in sorted((ROOT / folder).rglob("*")):
                if (
                    path.is_file()
                    and path.suffix != ".pyc"
                    and path.stat().st_mtime > self._started_at
                ):
                    yield path


def read_ended(folder: Path) -> dict[str, dict[str, object]]:
    """Return how earlier steps ended, by name."""
    path = folder / "steps.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def is_done(ended: dict[str, object] | None) -> bool:
    """Return True for a step that ended by itself without an error."""
    return ended is not None and ended["how"] == "exit code 0"


def chosen(patterns: Sequence[str], done: dict[str, dict[str, object]]) -> tuple[Step, ...]:
    """Return the steps of each pattern in turn; without patterns those that are not done.

    Raises:
        ValueError: a pattern matches no step.
    """
    for pattern in patterns:
        if not fnmatch.filter([step.name for step in STEPS], pattern):
            raise ValueError(f"no step is called {pattern!r}; --list shows all")
    if not patterns:
        return tuple(step for step in STEPS if not is_done(done.get(step.name)))
    matching = (s for p in patterns for s in STEPS if fnmatch.fnmatch(s.name, p))
    return tuple({s.name: s for s in matching}.values())


def main() -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "steps", nargs="*", metavar="STEP", help="names or patterns; all by default"
    )
    parser.add_argument("--limit", type=float, default=590.0, metavar="SECONDS")
    parser.add_argument("--archive", type=Path, metavar="FILE.tar.gz")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    done = read_ended(options.folder)
    if options.list:
        for step in STEPS:
            how = done.get(step.name, {}).get("how", "")
            print(f"{step.name:24} {step.expected_s:4.0f} s  {step.gpus} GPU  {how}")
        return 0
    try:
        steps = chosen(options.steps, done)
    except ValueError as error:
        parser.error(str(error))
    gpus = len(gpu_detection.gpus()) if gpu_detection.detect() == "gpu" else 0
    if not gpus:
        parser.error("there is no GPU here")
    GpuSteps(
        steps, gpus=gpus, limit_s=options.limit, folder=options.folder, archive=options.archive
    ).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
