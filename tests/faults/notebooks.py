"""Three notebooks at once, on one GPU and one workspace: nothing is lost, no two are timed at once.

    python tests/faults/notebooks.py --seconds 120 --device gpu --into docs/measured/notebooks.json

Each is a real Jupyter kernel that goes on writing, validating and timing versions of the same op in
the same folder. Each version notes when it is called, so that it can be seen afterwards whether
anybody's kernel ran while another's was being timed. Ends with 1 where something was not right.
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

from tests.engine_harness import MARK, marked, wait_until
from tests.jupyter_kernel import Notebook
from triton_magics.lab import Lab

NOTEBOOKS = 3
LONG_S = 4.0
WAITING = re.compile(r"waiting (\d+) s")
ROOT = Path(__file__).parents[2]
# What a version does beside its work: it notes when it is called. A call on tensors without memory
# is none: that is how a validation compiles before it asks for the GPU.
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
    begun = time.monotonic_ns()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK_SIZE=1024)
    if not x.is_meta:
        os.write(NOTES, b"{name} %d %d\\n" % (begun, time.monotonic_ns()))
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
lab = Lab(folder, settings=Settings(device={device!r}, validate_budget_s=1.0))
said, benches, attempts, wrong, number = [], [], [], [], 0
lab.on_progress = lambda step: said.append([round(time.monotonic() - begun_at, 1), step.stage])
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
    begun = time.monotonic_ns()
    made = lab.bench("relu", own, runs=3, sizes=["small"])
    timing = made.timing(own, "small")
    benches.append([begun, time.monotonic_ns(), str(made.status), timing and timing.median_us])
    if str(made.status) != "passed":
        wrong.append(f"{{own}}: timing {{made.status}} {{made.message}}")
print("FOUND " + json.dumps(
    dict(name=name, rounds=number, attempts=attempts, benches=benches, stages=said, wrong=wrong)))
"""


@dataclass(frozen=True)
class Shared:
    """What came of it.

    Attributes:
        rounds: of writing, validating and timing, by notebook.
        benches: how many timings each got.
        timed_us: the times of that kernel by all of these benchmarks: lowest, median, highest.
        spread_percent: their standard deviation, of the mean.
        waits: how often somebody was told for whom it waited; `such_as`: one of them.
        longest_wait_s: that anybody was told of.
        long_waits: those of at least LONG_S, longest first: who, when it was told last, and what.
        overlaps: calls of one notebook's kernel while another's was being timed.
        wrong: what was not as it should be, in words.
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


def share(seconds: float, device: str, folder: Path, mark: str) -> Shared:
    """Lets them work for that long, and looks at what they have made of it."""
    notes = folder / "notes"
    workspace = folder / "workspace"
    workspace.mkdir()
    notebooks = {f"n{i}": Notebook() for i in range(NOTEBOOKS)}
    for name, notebook in notebooks.items():
        notebook.start(
            CELL.format(
                root=str(ROOT), name=name, notes=str(notes), folder=str(workspace),
seconds=seconds, device=device,
            )
        )  # fmt: skip
    found = {name: answer(notebook, seconds + 240) for name, notebook in notebooks.items()}
    for notebook in notebooks.values():
        notebook.close()
    wait_until(lambda: set(marked(mark)) <= {os.getpid()})
    return judged(found, device, seconds, workspace, notes)


def answer(notebook: Notebook, within_s: float) -> dict:
    """What a notebook has found, once it is done."""
    text, deadline = "", time.monotonic() + within_s
    while "FOUND " not in text or not text.endswith("\n"):
        message = notebook.client.get_iopub_msg(timeout=deadline - time.monotonic())
        if message["msg_type"] == "error":
            raise RuntimeError("\n".join(message["content"]["traceback"]))
        if message["msg_type"] == "stream":
            text += message["content"]["text"]
    return json.loads(text.split("FOUND ", 1)[1])


def judged(found: dict, device: str, seconds: float, workspace: Path, notes: Path) -> Shared:
    wrong = [f"{name}: {said}" for name, notebook in found.items() for said in notebook["wrong"]]
    with Lab(workspace, settings=None) as lab:
        events = lab.status("relu").n_events
        given = [tuple(a) for notebook in found.values() for a in notebook["attempts"]]
        wrong += lost(lab, given)
    with sqlite3.connect(workspace / ".triton_magics" / "lab.db") as store:
        (verdict,) = store.execute("PRAGMA integrity_check").fetchone()
    wrong += [] if verdict == "ok" else [f"the store: {verdict}"]
    overlaps = overlapping(found, notes) if device == "gpu" else 0
    wrong += [f"{overlaps} calls while another was timed"] if overlaps else []
    benches = {name: len(notebook["benches"]) for name, notebook in found.items()}
    if device == "gpu" and min(benches.values()) * 2 < max(benches.values()):
        wrong.append(f"not fair: {benches}")
    told = [wait for notebook in found.values() for wait in waits_of(notebook["stages"])]
    waits = [said for wait in told for _, said in wait]
    named = [said for said in waits if re.search(r"held by process \d+, \w+ relu.*for \d+ s", said)]
    if device == "gpu" and not named:
        wrong.append(f"nobody was told for whom it waited: {waits[:3]}")
    rounds = {name: notebook["rounds"] for name, notebook in found.items()}
    longest_s = max(map(seconds_of, long_waits(found, at_least_s=0.0)), default=0.0)
    return Shared(
        device, seconds, rounds, benches, *spread(found), len(given), events, len(waits),
        named[0] if named else "", longest_s, long_waits(found, LONG_S), overlaps, tuple(wrong),
    )  # fmt: skip


def spread(found: dict) -> tuple[tuple[float, float, float], float]:
    """Lowest, median and highest of all times, us, and their standard deviation, percent."""
    times = [us for notebook in found.values() for *_, us in notebook["benches"] if us]
    middle, deviation = statistics.median(times), statistics.stdev(times)
    return (min(times), middle, max(times)), 100 * deviation / statistics.mean(times)


def waits_of(stages: list[list]) -> list[list[list]]:
    """What a notebook was told, wait by wait: each is what stands together of `waiting 1 s ...`."""
    waiting = itertools.groupby(stages, key=lambda stage: bool(WAITING.match(stage[1])))
    return [[*told] for is_wait, told in waiting if is_wait]


def long_waits(found: dict, at_least_s: float) -> tuple[str, ...]:
    """The last words of each wait that was so long, the longest first."""
    last = [
        f"{name} at {wait[-1][0]} s: {wait[-1][1]}"
        for name, notebook in found.items()
        for wait in waits_of(notebook["stages"])
    ]
    long = [said for said in last if seconds_of(said) >= at_least_s]
    return tuple(sorted(long, key=seconds_of, reverse=True))


def seconds_of(said: str) -> float:
    """How long somebody had waited by its own words."""
    return float(WAITING.search(said)[1])


def lost(lab: Lab, given: list[tuple[str, int, str]]) -> list[str]:
    """Attempts that are not there, or are not what was written."""
    wrong = []
    if len({(version, attempt) for version, attempt, _ in given}) < len(given):
        wrong.append("an attempt was given to two notebooks")
    for version, attempt, sha256 in given:
        kept = lab.source("relu", version, attempt)
        if kept.sha256 != sha256:
            wrong.append(f"{version}:{attempt} is not what was written")
    return wrong


def overlapping(found: dict, notes: Path) -> int:
    """How many calls of others lie between the first and the last call of a benchmark."""
    calls: dict[str, list[tuple[int, int]]] = {name: [] for name in found}
    for line in notes.read_text().splitlines():
        name, begun, ended = line.split()
        calls[name].append((int(begun), int(ended)))
    return sum(
        between(calls[other], *span)
        for name, notebook in found.items()
        for span in spans(calls[name], notebook["benches"])
        for other in found
        if other != name
    )


def spans(calls: list[tuple[int, int]], benches: list) -> list[tuple[int, int]]:
    """From the first call to the last within each benchmark of a notebook."""
    inside = [[c for c in calls if begun <= c[0] <= ended] for begun, ended, *_ in benches]
    return [(some[0][0], some[-1][1]) for some in inside if some]


def between(calls: list[tuple[int, int]], begun: int, ended: int) -> int:
    """How many of the calls lie within that time."""
    moments = sorted(moment for moment, _ in calls)
    return bisect.bisect_right(moments, ended) - bisect.bisect_left(moments, begun)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--device", default="interpreter", choices=("interpreter", "gpu"))
    parser.add_argument("--into", type=Path, help="a JSON file of what was found")
    given = parser.parse_args()
    os.environ[MARK] = mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_MAGICS_CACHE"] = f"{folder}/cache"
        found = share(given.seconds, given.device, Path(folder), mark)
    text = json.dumps(dataclasses.asdict(found), indent=1) + "\n"
    print(text)
    if given.into:
        given.into.write_text(text)
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
