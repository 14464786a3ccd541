"""Run three notebooks on one GPU and one workspace; check for lost data and overlapping timings.

    python tests/faults/notebooks.py --seconds 120 --device gpu --into docs/measured/notebooks.json

Each is a real Jupyter kernel that keeps writing, validating and timing versions of the same op in
the same folder. Each version notes the times of its calls, which shows if one ran during the timing
of another notebook. Ends with 1 if something was wrong.
"""

from __future__ import annotations

import argparse
import bisect
import dataclasses
import itertools
import json
import os
import re
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.execution_kit import PROCESS_TAG, tagged_processes, wait_until
from tests.jupyter_kernel import Notebook
from triton_magics.lab import Lab

NOTEBOOKS = 3
LONG_S = 4.0
WAITING = re.compile(r"waiting (\d+) s")
ROOT = Path(__file__).parents[2]
# A version notes the times of its calls, but for those on tensors without memory: so a validation
# compiles before it requests the GPU.
SOURCE = """
import os
import time

import torch
import triton
import triton.language as tl

NOTES = os.open({notes!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@triton.jit
def kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=mask)


def triton_relu(x):  # round {number} of notebook {name}
    start_ns = time.monotonic_ns()
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK_SIZE=1024)
    if not x.is_meta:
        os.write(NOTES, b"{name} %d %d\\n" % (start_ns, time.monotonic_ns()))
    return out
"""
CELL = """
import json, sys, time
sys.path.insert(0, {root!r})
from triton_magics.config import Settings
from triton_magics.lab import Lab
from tests.faults.notebooks import SOURCE
name, notes, folder, begun_at = {name!r}, {notes!r}, {folder!r}, time.monotonic()
until = begun_at + {seconds}
# Its kernels note their calls in a file outside the workspace, which a sandbox refuses.
lab = Lab(folder, settings=Settings(device={device!r}, validate_budget_s=1.0, sandbox="off"))
stages, benches, attempts, wrong, number = [], [], [], [], 0
lab.on_progress = lambda step: stages.append([round(time.monotonic() - begun_at, 1), step.stage])
while time.monotonic() < until or number < 2:
    number += 1
    own = "v%d" % (int(name[1:]) + 1)
    for version in (own, "v4"):  # one of its own, and one that all three write
        source = SOURCE.format(name=name, number=number, notes=notes)
        written = lab.write("relu", version, source, compile=False).source
        attempts.append([written.version, written.attempt, written.sha256])
    validation = lab.validate("relu", own, plan="quick", dtypes=["float32"])
    if str(validation.status) != "passed":
        wrong.append(f"{{own}}: {{validation.status}} {{validation.error}}")
        continue
    start_ns = time.monotonic_ns()
    benchmark = lab.bench("relu", own, runs=3, sizes=["small"])
    timing = benchmark.timing(own, "small")
    times = [start_ns, time.monotonic_ns()]
    benches.append([*times, str(benchmark.status), timing and timing.median_us])
    if str(benchmark.status) != "passed":
        wrong.append(f"{{own}}: timing {{benchmark.status}} {{benchmark.message}}")
print("RESULT " + json.dumps(
    dict(name=name, rounds=number, attempts=attempts, benches=benches, stages=stages, wrong=wrong)))
"""


@dataclass(frozen=True)
class SharedRun:
    """The result of the run.

    Attributes:
        rounds: of writing, validating and timing, by notebook.
        benches: the number of benchmarks by notebook.
        timed_us: the times of the kernel in all benchmarks: lowest, median, highest.
        spread_percent: their standard deviation, of the mean.
        waits: the number of messages that name the holder of the GPU; `such_as`: one of them.
        longest_wait_s: the longest wait in a message.
        long_waits: the last message of each wait of at least LONG_S, longest first.
        overlaps: calls of one notebook's kernel during a timing of another's.
        wrong: the deviations, in words.
    """

    device: str
    seconds: float
    rounds: dict[str, int]
    benches: dict[str, int]
    timed_us: tuple[float, float, float]
    spread_percent: float
    attempts: int
    events: int
    waits: int
    such_as: str
    longest_wait_s: float
    long_waits: tuple[str, ...]
    overlaps: int
    wrong: tuple[str, ...]


def run_notebooks(
    seconds: float, device: str, folder: Path, process_tag: str, *, n_notebooks: int = NOTEBOOKS
) -> SharedRun:
    """Let the notebooks work for that long, and check the results."""
    notes = folder / "notes"
    workspace = folder / "workspace"
    workspace.mkdir()
    notebooks = {f"n{i}": Notebook() for i in range(n_notebooks)}
    for name, notebook in notebooks.items():
        notebook.start(
            CELL.format(
                root=str(ROOT), name=name, notes=str(notes), folder=str(workspace),
seconds=seconds, device=device,
            )
        )  # fmt: skip
    results = {
        name: wait_for_result(notebook, seconds + 240) for name, notebook in notebooks.items()
    }
    for notebook in notebooks.values():
        notebook.close()
    wait_until(lambda: set(tagged_processes(process_tag)) <= {os.getpid()})
    return judge(results, device, seconds, workspace, notes)


def wait_for_result(notebook: Notebook, within_s: float) -> dict:
    """Return the result of a notebook, once it is done."""
    text, deadline = "", time.monotonic() + within_s
    while "RESULT " not in text or not text.endswith("\n"):
        message = notebook.client.get_iopub_msg(timeout=deadline - time.monotonic())
        if message["msg_type"] == "error":
            raise RuntimeError("\n".join(message["content"]["traceback"]))
        if message["msg_type"] == "stream":
            text += message["content"]["text"]
    return json.loads(text.split("RESULT ", 1)[1])


def judge(results: dict, device: str, seconds: float, workspace: Path, notes: Path) -> SharedRun:
    """Check the results of the notebooks and the workspace."""
    wrong = [f"{name}: {text}" for name, notebook in results.items() for text in notebook["wrong"]]
    with Lab(workspace, settings=None) as lab:
        events = lab.status("relu").n_events
        written = [tuple(a) for notebook in results.values() for a in notebook["attempts"]]
        wrong += find_lost_attempts(lab, written)
    with sqlite3.connect(workspace / ".triton_magics" / "lab.db") as store:
        (verdict,) = store.execute("PRAGMA integrity_check").fetchone()
    wrong += [] if verdict == "ok" else [f"the store: {verdict}"]
    overlaps = count_overlaps(results, notes) if device == "gpu" else 0
    wrong += [f"{overlaps} calls while another was timed"] if overlaps else []
    benches = {name: len(notebook["benches"]) for name, notebook in results.items()}
    if device == "gpu" and min(benches.values()) * 2 < max(benches.values()):
        wrong.append(f"unequal shares of the GPU: {benches}")
    waits = [wait for notebook in results.values() for wait in waits_of(notebook["stages"])]
    messages = [text for wait in waits for _, text in wait]
    holder = re.compile(r"held by process \d+, \w+ relu.*for \d+ s")
    named = [text for text in messages if holder.search(text)]
    if device == "gpu" and not named:
        wrong.append(f"no message names the holder of the GPU: {messages[:3]}")
    rounds = {name: notebook["rounds"] for name, notebook in results.items()}
    longest_s = max(map(seconds_of, long_waits(results, at_least_s=0.0)), default=0.0)
    return SharedRun(
        device, seconds, rounds, benches, *spread(results), len(written), events, len(messages),
        named[0] if named else "", longest_s, long_waits(results, LONG_S), overlaps, tuple(wrong),
    )  # fmt: skip


def spread(results: dict) -> tuple[tuple[float, float, float], float]:
    """Return lowest, median and highest of all times, us, and their standard deviation, percent."""
    times = [us for notebook in results.values() for *_, us in notebook["benches"] if us]
    middle, deviation = statistics.median(times), statistics.stdev(times)
    return (min(times), middle, max(times)), 100 * deviation / statistics.mean(times)


def waits_of(stages: list[list]) -> list[list[list]]:
    """Return the messages of each wait: those in a row like `waiting 1 s ...`."""
    waiting = itertools.groupby(stages, key=lambda stage: bool(WAITING.match(stage[1])))
    return [[*messages] for is_wait, messages in waiting if is_wait]


def long_waits(results: dict, at_least_s: float) -> tuple[str, ...]:
    """Return the last message of each wait that was so long, the longest first."""
    last = [
        f"{name} at {wait[-1][0]} s: {wait[-1][1]}"
        for name, notebook in results.items()
        for wait in waits_of(notebook["stages"])
    ]
    long = [text for text in last if seconds_of(text) >= at_least_s]
    return tuple(sorted(long, key=seconds_of, reverse=True))


def seconds_of(message: str) -> float:
    """Return the seconds in a message of a wait."""
    return float(WAITING.search(message)[1])


def find_lost_attempts(lab: Lab, attempts: list[tuple[str, int, str]]) -> list[str]:
    """Describe the attempts that are missing or differ from what was written."""
    wrong = []
    if len({(version, attempt) for version, attempt, _ in attempts}) < len(attempts):
        wrong.append("an attempt was given to two notebooks")
    for version, attempt, sha256 in attempts:
        stored = lab.source("relu", version, attempt)
        if stored.sha256 != sha256:
            wrong.append(f"{version}:{attempt} is not what was written")
    return wrong


def count_overlaps(results: dict, notes: Path) -> int:
    """Count the calls of others between the first and the last call of a benchmark."""
    calls: dict[str, list[tuple[int, int]]] = {name: [] for name in results}
    for line in notes.read_text().splitlines():
        name, start, ended = line.split()
        calls[name].append((int(start), int(ended)))
    return sum(
        between(calls[other], *span)
        for name, notebook in results.items()
        for span in spans(calls[name], notebook["benches"])
        for other in results
        if other != name
    )


def spans(calls: list[tuple[int, int]], benches: list) -> list[tuple[int, int]]:
    """Return the time from the first call to the last within each benchmark of a notebook."""
    inside = [[c for c in calls if start <= c[0] <= end] for start, end, *_ in benches]
    return [(group[0][0], group[-1][1]) for group in inside if group]


def between(calls: list[tuple[int, int]], start: int, end: int) -> int:
    """Count the calls that start or end within a span of time."""
    moments = sorted(moment for moment, _ in calls)
    return bisect.bisect_right(moments, end) - bisect.bisect_left(moments, start)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--device", default="interpreter", choices=("interpreter", "gpu"))
    parser.add_argument("--into", type=Path, help="a JSON file of the result")
    options = parser.parse_args()
    os.environ[PROCESS_TAG] = process_tag = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_MAGICS_CACHE"] = f"{folder}/cache"
        result = run_notebooks(options.seconds, options.device, Path(folder), process_tag)
    text = json.dumps(dataclasses.asdict(result), indent=1) + "\n"
    print(text)
    if options.into:
        options.into.write_text(text)
    return int(bool(result.wrong))


if __name__ == "__main__":
    sys.exit(main())
