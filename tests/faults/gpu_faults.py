"""Break a GPU's context in every way that a kernel can, and show what a notebook would see.

    python tests/faults/gpu_faults.py --into docs/measured/h200/faults.md

Each fault is a version of relu, run by a real executor. Five checks follow each: the next job
works, no process is left, no descriptor, the GPU lock is free, the store is intact. Then it runs
again at once, without a wait. The report has the time of each next job. Then real Jupyter kernels
are killed, restarted and shut down during a job, to measure how soon the GPU's memory is free.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import random
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import pynvml

from tests.execution_kit import PROCESS_TAG, tagged_processes, wait_until
from tests.faults.engine.fault_lab import FaultLab, shown, verdict
from tests.faults.next_job import all_ready
from tests.faults.soak import Use
from tests.jupyter_kernel import Notebook
from triton_magics.config import LOCKS
from triton_magics.model import Value

JOBS = 200
HEAD = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
"""
CALL = """

def triton_relu(x):
    out = torch.empty_like(x)
    kernel[(64,)](x, out, x.numel(), BLOCK=64)
    return out
"""


@dataclass(frozen=True)
class GpuFault:
    """A fault, its expected verdict and a part of its message."""

    name: str
    status: str
    sees: str
    source: str
    timeout_s: float = 20.0
    again: bool = True
    by: str = "run"


def in_kernel(body: str, call: str = CALL) -> str:
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return HEAD + lines + call


FAULTS = (
    GpuFault("load from an illegal address", "runtime_error", "illegal memory access", in_kernel(
        "o = tl.arange(0, BLOCK)\n"
        "tl.store(out_ptr + o, tl.load(x_ptr + o.to(tl.int64) + (1 << 38)))")),
    GpuFault("store to an illegal address", "runtime_error", "illegal memory access", in_kernel(
        "o = tl.arange(0, BLOCK)\n"
        "tl.store(out_ptr + o.to(tl.int64) + (1 << 38), tl.load(x_ptr + o))")),
    GpuFault("misaligned address", "runtime_error", "misaligned address", in_kernel(
        "p = (x_ptr.to(tl.int64) + 1).to(tl.pointer_type(tl.float32))\n"
        "tl.store(out_ptr, tl.load(p))")),
    GpuFault("device assert", "runtime_error", "device-side assert", in_kernel(
        'o = tl.arange(0, BLOCK)\ntl.device_assert(o < 0, "never")\ntl.store(out_ptr + o, 0.0)',
        CALL.replace("BLOCK=64)", "BLOCK=64, debug=True)"))),
    GpuFault("torch's own device assert", "runtime_error", "device-side assert",
        "import torch\n\n\ndef triton_relu(x):\n"
        "    return x.flatten()[torch.tensor([10**9], device=x.device)]\n"),
    GpuFault("endless kernel", "timeout", "a kernel on the GPU did not end", in_kernel(
        "v = tl.load(x_ptr)\nwhile v == v:\n    v = tl.load(x_ptr, volatile=True)\n"
        "tl.store(out_ptr, v)"), timeout_s=3),
    GpuFault("endless kernel, validated", "timeout", "a kernel on the GPU did not end", in_kernel(
        "v = tl.load(x_ptr)\nwhile v == v:\n    v = tl.load(x_ptr, volatile=True)\n"
        "tl.store(out_ptr, v)  # this one is in a validation"), timeout_s=3,
        again=False, by="validate"),
    GpuFault("out of memory", "out_of_memory", "out of memory",
        "import torch\n\n\ndef triton_relu(x):\n"
        "    kept = [torch.empty(2**34, dtype=torch.uint8, device=x.device) for _ in range(64)]\n"
        "    return x + len(kept)\n"),
    GpuFault("work on a side stream after the return", "failed", "", in_kernel(
        "o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "x = tl.load(x_ptr + o, mask=o < n)\n"
        "tl.store(out_ptr + o, tl.maximum(x, 0.0), mask=o < n)", """

def triton_relu(x):
    out = torch.empty_like(x)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""), by="validate"),
    GpuFault("crash beside a running kernel", "crashed", "SIGSEGV", in_kernel(
        "v = tl.load(x_ptr)\nwhile v == v:\n    v = tl.load(x_ptr, volatile=True)\n"
        "tl.store(out_ptr, v)", """

def triton_relu(x):
    import os, signal
    kernel[(64,)](x, torch.empty_like(x), x.numel(), BLOCK=64)
    os.kill(os.getpid(), signal.SIGSEGV)
""")),
)  # fmt: skip


def used_mib() -> float:
    """Return the GPU memory of all processes."""
    return pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used / 2**20


def run_fault(faults: FaultLab, fault: GpuFault) -> dict[str, str]:
    """Run a fault and the checks after it."""
    lab, events = faults.lab, faults.n_events()
    lab.write("relu", "v2", fault.source, compile=False)
    value, seconds = request_verdict(faults, fault)
    next_passed, next_s = next_job(faults)
    again = "-"
    if fault.again:
        request_verdict(faults, fault)
        again_passed, again_s = next_job(faults)
        next_passed, again = next_passed and again_passed, f"{again_s:.2f}"
    message = shown(value)
    wait_until(lambda: not faults.strangers() and all_ready(faults), within_s=20)
    checks = {
        "verdict": verdict(value) == fault.status and fault.sees in message,
        "next job": next_passed,
        "no process": not faults.strangers(),
        "descriptors": faults.open_descriptors() == faults.descriptors,
        "lock": faults.locks_are_free(LOCKS),
        "store": faults.store_is_intact(events + 2),
    }
    failed = [name for name, passed in checks.items() if not passed]
    if failed:
        print(fault.name, "FAILED", failed, message[:1500], sep="\n", flush=True)
    return {
        "fault": fault.name,
        "verdict": verdict(value),
        "the user sees": message.splitlines()[0].replace("|", "\\|")[:150],
        "seconds": f"{seconds:.2f}",
        "next job, s": f"{next_s:.2f}",
        "again, s": again,
        "GPU memory in use after, MiB": f"{used_mib():.0f}",
        "checks": "all hold" if not failed else "FAILED: " + ", ".join(failed),
    }


def request_verdict(faults: FaultLab, fault: GpuFault) -> tuple[Value, float]:
    """Return the verdict on the fault, and the seconds until it."""
    start_s = time.monotonic()
    if fault.by == "run":
        value: Value = faults.lab.run("relu", "v2", timeout=fault.timeout_s)
    else:
        value = faults.lab.validate(
            "relu", "v2", shapes=[(64, 64)], dtypes=["float32"], timeout=fault.timeout_s
        )
    return value, time.monotonic() - start_s


def next_job(faults: FaultLab) -> tuple[bool, float]:
    """Return whether a job with other code passes, and the seconds until its result."""
    start_s = time.monotonic()
    return faults.lab.run("relu", "v1").status == "passed", time.monotonic() - start_s


# ------------------------------------------------------------------ a notebook that ends


CELL = """
import sys
sys.path.insert(0, {root!r})
from triton_magics.lab import Lab
from tests.faults.engine.fault_lab import RIGHT
from tests.faults.gpu_faults import ENDLESS
lab = Lab({folder!r})
lab.on_progress = lambda step: print("at", step.stage, flush=True)
lab.write("relu", "v1", RIGHT, compile=False)
lab.write("relu", "v2", ENDLESS, compile=False)
"""
ENDLESS = next(f for f in FAULTS if f.name == "endless kernel").source
# The notebook's activity, the cell that causes it, the stage to wait for, and how the kernel ends.
ENDINGS = (
    ("a worker is warming up", 'lab.run("relu", "v1")', "starting a worker", "kill -9"),
    ("an endless kernel runs", 'lab.run("relu", "v2")', "calling", "kill -9"),
    ("an endless kernel runs", 'lab.run("relu", "v2")', "calling", "restart"),
    ("a validation runs", 'lab.validate("relu", "v1")', "validating", "shutdown"),
    ("the GPU is measured", 'lab.validate("relu", "v1", plan="quick")\nlab.bench("relu", "v1")',
     "measuring", "kill -9"),
)  # fmt: skip


def end_notebook(stage: str, cell: str, says: str, how: str, process_tag: str) -> dict[str, str]:
    """End a notebook; measure when its GPU memory is free and its processes have ended."""
    before = used_mib()
    with tempfile.TemporaryDirectory() as folder:
        notebook = Notebook()
        notebook.start(CELL.format(root=str(Path(__file__).parents[2]), folder=folder))
        notebook.start(cell)
        notebook.wait_for(f"at {says}")
        time.sleep(0.3)  # until the kernel runs on the GPU
        workers, in_use = set(tagged_processes(process_tag)) - {os.getpid()}, used_mib()
        start_s = time.monotonic()
        if how == "kill -9":
            notebook.kill()
        elif how == "restart":
            notebook.manager.restart_kernel(now=True)
        else:
            notebook.manager.shutdown_kernel(now=True)
        wait_until(lambda: used_mib() <= before + 16, within_s=20)
        free_s = time.monotonic() - start_s
        wait_until(lambda: not workers & set(tagged_processes(process_tag)), within_s=20)
        gone_s = time.monotonic() - start_s
        notebook.close()
    return {
        "while": stage, "the kernel gets": how, "in use then, MiB": f"{in_use - before:.0f}",
        "memory free after, s": f"{free_s:.2f}", "processes gone after, s": f"{gone_s:.2f}",
    }  # fmt: skip


def soak(faults: FaultLab, jobs: int) -> str:
    """Run many jobs, a tenth of them faulty (seeded); return the resources before and after."""
    dice, wrong, faulty, slowest = random.Random(1), [], 0, 0.0
    quick = [fault for fault in FAULTS if fault.timeout_s > 3]
    wait_until(lambda: all_ready(faults), within_s=60)
    before, start_s = Use.now(faults, is_alone=True), time.monotonic()
    while jobs > 0:
        jobs -= 1
        if dice.random() < 0.1:
            faulty += 1
            fault = dice.choice(quick)
            faults.lab.write("relu", "v2", fault.source, compile=False)
            if verdict(request_verdict(faults, fault)[0]) != fault.status:
                wrong.append(fault.name)
        passed, seconds = next_job(faults)
        wrong += [] if passed else ["a right kernel"]
        slowest = max(slowest, seconds)
    after = Use.now(faults, is_alone=True)
    return (
        f"In {time.monotonic() - start_s:.0f} s, {faulty} of them faulty, judged wrongly: "
        f"{', '.join(wrong) or 'none'}. The slowest right job answered in {slowest:.2f} s. In use "
        f"before and after: GPU {before.gpu_mib} and {after.gpu_mib} MiB, this process "
        f"{before.notebook_mib:.0f} and {after.notebook_mib:.0f} MiB, the executor's "
        f"{before.engine_mib:.0f} and {after.engine_mib:.0f} MiB, descriptors "
        f"{before.descriptors} and {after.descriptors}, processes {before.processes} and "
        f"{after.processes}."
    )


def table(rows: list[dict[str, str]]) -> str:
    head = "| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0])
    return "\n".join([head, *("| " + " | ".join(row.values()) + " |" for row in rows)])


def report(
    rows: list[dict[str, str]],
    ends: list[dict[str, str]],
    soaked: str,
    before_mib: float,
    device: str,
) -> str:
    ended = (
        f"""
## A notebook that ends

A real Jupyter kernel ends during a job: the seconds until its GPU memory is free and no process is
left.

{table(ends)}
"""
        if ends
        else ""
    )
    return f"""# Faults on a GPU

{device}, Python {platform.python_version()}, {datetime.date.today().isoformat()}.
`python tests/faults/gpu_faults.py --into docs/measured/h200/faults.md`

Each is a version of relu on a real executor. `seconds`: from the call to its verdict.
`next job`: from that verdict to the result of a job with other code. `again`: the same once more,
with fault and job right after the first. Before the first fault {before_mib:.0f} MiB of the GPU
were in use, by a worker and two standbys. Memory is measured after each fault, when two standbys
are ready again. Checks: the verdict and its message, the next job, no process left, no descriptor
left, the GPU lock free, the store intact.

{table(rows)}

## {JOBS} jobs in a row

A tenth of them faulty, at random, seeded. {soaked}
{ended}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--into", type=Path, default=Path(os.devnull))
    parser.add_argument("--only", default="", help="only faults with this in their name")
    parser.add_argument("--endings", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    into = options.into.absolute()
    pynvml.nvmlInit()
    process_tag = uuid.uuid4().hex
    os.environ[PROCESS_TAG] = process_tag
    folder = Path(tempfile.mkdtemp())
    os.environ["TRITON_MAGICS_CACHE"] = str(folder / "cache")
    (folder / "workspace").mkdir()
    used_mib()  # NVML opens descriptors that stay open
    faults = FaultLab(folder / "workspace", process_tag, device="gpu")
    wait_until(lambda: all_ready(faults), within_s=60)
    before = used_mib()
    rows = []
    for fault in FAULTS:
        if options.only in fault.name:
            rows.append(run_fault(faults, fault))
            print(rows[-1], flush=True)
    if options.only:
        faults.lab.close()
        return int(any(row["checks"] != "all hold" for row in rows))
    e = faults.lab.run("relu", "v1").environment
    assert e is not None
    device = f"{e.device}, driver {e.driver}, torch {e.torch}, triton {e.triton}"
    soak_text = soak(faults, JOBS)
    print(soak_text, flush=True)
    faults.lab.close()
    wait_until(lambda: used_mib() < before / 4)
    ends = []
    for ending in ENDINGS if options.endings else ():
        ends.append(end_notebook(*ending, process_tag))
        print(ends[-1], flush=True)
    into.write_text(report(rows, ends, soak_text, before, device))
    return int(any(row["checks"] != "all hold" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
