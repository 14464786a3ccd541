"""Breaks a GPU's context in every way that a kernel can, and shows what a notebook would see.

    python tests/faults/gpu_faults.py --into docs/measured/faults.md

Each fault is a version of relu, run by a real engine; after each the five checks: the next job
works, no process is left, no descriptor, the GPU's lock is free, the store is intact. How long the
next job took to answer, and the GPU's free memory before and after, are in the report.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.engine_harness import MARK, wait_until
from tests.faults.engine.fault_lab import FaultLab, shown, verdict
from triton_magics.config import LOCKS

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
    """A fault, what its verdict must be and what its message must say."""

    name: str
    status: str
    sees: str
    source: str
    timeout_s: float = 20.0
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
    GpuFault("endless kernel", "timeout", "not done in 5 s", in_kernel(
        "v = tl.load(x_ptr)\nwhile v == v:\n    v = tl.load(x_ptr, volatile=True)\n"
        "tl.store(out_ptr, v)"), timeout_s=5),
    GpuFault("endless kernel, not waited for", "timeout", "not done in 5 s", in_kernel(
        "v = tl.load(x_ptr)\nwhile v == v:\n    v = tl.load(x_ptr, volatile=True)\n"
        "tl.store(out_ptr, v)  # this one is in a validation"), timeout_s=5, by="validate"),
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


def used_mib() -> int:
    said = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(said.stdout.split()[0])


def suffer(faults: FaultLab, fault: GpuFault) -> dict[str, str]:
    """One fault, and the checks after it."""
    lab, events = faults.lab, faults.n_events()
    lab.write("relu", "v2", fault.source, compile=False)
    wait_until(faults.ready, within_s=60)
    begun = time.monotonic()
    if fault.by == "run":
        value = lab.run("relu", "v2", timeout=fault.timeout_s)
    else:
        value = lab.validate(
            "relu", "v2", shapes=[(64, 64)], dtypes=["float32"], timeout=fault.timeout_s
        )
    seconds = time.monotonic() - begun
    said = shown(value)
    asked = time.monotonic()
    works = lab.run("relu", "v1").status == "passed"
    next_s = time.monotonic() - asked
    wait_until(lambda: not faults.strangers(), within_s=5)
    checks = {
        "verdict": verdict(value) == fault.status and fault.sees in said,
        "next job": works,
        "no process": not faults.strangers(),
        "descriptors": faults.open_descriptors() == faults.descriptors,
        "lock": faults.locks_are_free(LOCKS),
        "store": faults.store_is_intact(events + 2),
    }
    failed = [name for name, held in checks.items() if not held]
    if failed:
        print(fault.name, "FAILED", failed, said[:1500], sep="\n", flush=True)
    return {
        "fault": fault.name,
        "verdict": verdict(value),
        "the user sees": said.splitlines()[0].replace("|", "\\|")[:150],
        "seconds": f"{seconds:.2f}",
        "next job, s": f"{next_s:.2f}",
        "GPU memory in use after, MiB": str(used_mib()),
        "checks": "all hold" if not failed else "FAILED: " + ", ".join(failed),
    }


def report(rows: list[dict[str, str]], before_mib: int, device: str) -> str:
    head = "| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0])
    body = "\n".join("| " + " | ".join(row.values()) + " |" for row in rows)
    return f"""# Faults on a GPU

{device}, Python {platform.python_version()}, {datetime.date.today().isoformat()}.
`python tests/faults/gpu_faults.py --into docs/measured/faults.md`

Each is a version of relu, given to a real engine. `seconds`: from the call to its verdict.
`next job`: from that verdict to the answer of a job with other code, which needs a standby that was
still warming up where the fault came at once. Before the first fault {before_mib} MiB of the GPU
were in use, by a worker and a standby. Checks: the verdict and its words, the next job, no process
left, no descriptor left, the GPU's lock free, the store intact.

{head}
{body}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--into", type=Path, required=True)
    into = parser.parse_args().into.absolute()
    mark = uuid.uuid4().hex
    os.environ[MARK] = mark
    folder = Path(tempfile.mkdtemp())
    os.environ["TRITON_MAGICS_CACHE"] = str(folder / "cache")
    (folder / "workspace").mkdir()
    faults = FaultLab(folder / "workspace", mark, device="gpu")
    wait_until(faults.ready, within_s=60)
    before = used_mib()
    rows = []
    for fault in FAULTS:
        rows.append(suffer(faults, fault))
        print(rows[-1], flush=True)
    e = faults.lab.run("relu", "v1").environment
    assert e is not None
    device = f"{e.device}, driver {e.driver}, torch {e.torch}, triton {e.triton}"
    into.write_text(report(rows, before, device))
    faults.lab.close()
    return int(any(row["checks"] != "all hold" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
