"""The least time that reading takes: kernels that do nothing else, timed as the ops are."""

from __future__ import annotations

import datetime
import json
import runpy
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from triton_magics.rendering.numbers import percent_text, rate_text, time_text

FILE = "ops_reading.json"
BYTES = (2**21, 2**22, 2**25, 2**26)  # the medium and large sizes of the reductions, in both dtypes
FORMS = ((1024, 4), (2048, 4), (2048, 8), (4096, 8), (4096, 16), (8192, 16))  # words a block, warps
ROUNDS = 60
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def read_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x, mask=x == 2143363541)  # never: but the compiler can't know it
"""


@dataclass(frozen=True)
class Reading:
    """The quickest form of a kernel that reads so many bytes: GPU time in microseconds, cold caches.

    `copy_pct`: its rate as a share of the copy bandwidth measured on the same card.
    """

    bytes: int
    us: float
    gbps: float
    copy_pct: float
    block_size: int
    num_warps: int


def write(best: Mapping[str, str], into: Path) -> None:
    """Measure on the GPU and write `ops_reading.json`.

    Args:
        best: not needed: it measures no op.
        into: the folder of the file.

    Raises:
        RuntimeError: torch finds no GPU, or its copy bandwidth could not be measured.
    """
    from triton_magics.harness.process.device import environment
    from triton_magics.harness.process.gpu_lock import gpu_lock
    from triton_magics.harness.process.reporter import Reporter
    from triton_magics.harness.timing.peak_rates import get_peak_rates  # torch: only here

    here = environment()
    peaks = get_peak_rates(here, Reporter(lambda progress: None, "reading"))
    if peaks is None:
        raise RuntimeError("the copy bandwidth of this GPU could not be measured")
    with gpu_lock(here.gpu_uuid, exclusive=True, purpose="reading", on_wait=print):
        readings = measure(peaks.cold, peaks.copy_gbps)
    data = {
        "command": "python scripts/ops.py reading",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "environment": here.line,
        "rows": [asdict(row) for row in readings],
    }
    (into / FILE).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def measure(tiny_kernel_us: Mapping[str, float], copy_gbps: float) -> list[Reading]:
    """Time one reading for each number of bytes.

    Args:
        tiny_kernel_us: the tiny kernels' own times, to calibrate the timer.
        copy_gbps: of the card.
    """
    import torch

    from triton_magics.harness.timers.gated_timer import GatedTimer, no_garbage_collection

    timer = GatedTimer(torch.cuda.get_device_properties(0).L2_cache_size, cold=True)
    added_us = timer.calibrate(tiny_kernel_us).added_us or 0.0
    with tempfile.TemporaryDirectory() as folder, no_garbage_collection():
        source = Path(folder) / "reading.py"  # Triton reads a kernel's source from its file
        source.write_text(KERNEL, encoding="utf-8")
        return [_fastest(timer, _calls(source, n), n, added_us, copy_gbps) for n in BYTES]


def _calls(source: Path, n_bytes: int) -> dict[tuple[int, int], Callable[[], None]]:
    """Return the call of each form."""
    import torch

    kernel = runpy.run_path(str(source))["read_kernel"]
    words = n_bytes // 4
    x, out = (torch.zeros(words, dtype=torch.int32, device="cuda") for _ in range(2))

    def call(block_size: int, num_warps: int) -> None:
        kernel[(words // block_size,)](x, out, BLOCK_SIZE=block_size, num_warps=num_warps)

    return {form: (lambda form=form: call(*form)) for form in FORMS}  # type: ignore[misc]


def _fastest(
    timer: Any,
    calls: Mapping[tuple[int, int], Callable[[], None]],
    n_bytes: int,
    added_us: float,
    copy_gbps: float,
) -> Reading:
    """Find the fastest form by the mean of the middle half of `ROUNDS` interleaved samples."""
    from triton_magics import stats

    for call in calls.values():
        call()
    timer.settle()
    samples = {form: [timer.sample(call).raw_us for _ in range(4)] for form, call in calls.items()}
    for _ in range(ROUNDS):
        for form, call in calls.items():
            samples[form].append(timer.sample(call).raw_us)
    means = {form: stats.middle_mean(raw[4:]) - added_us for form, raw in samples.items()}
    form = min(means, key=means.__getitem__)
    gbps = n_bytes / means[form] / 1e3
    return Reading(n_bytes, means[form], gbps, 100 * gbps / copy_gbps, *form)


# ------------------------------------------------------------------------------ in the table


def read(folder: Path) -> dict[str, Any] | None:
    """Return the newest measurement; None without one."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def section(data: Mapping[str, Any]) -> str:
    """Return Markdown: a heading, the machine, a line for each number of bytes."""
    rows = [Reading(**row) for row in data["rows"]]
    where = (
        f"{data['environment']}; {data['date']}; `{data['command']}`. A kernel that only reads, the quickest of "
        f"{len(FORMS)} forms, timed as the ops are. An op that reads as much can hardly be quicker: this share of a copy's "
        "rate is within reach of sum, mean and cross_entropy, which write next to nothing. With fewer bytes a "
        "kernel's start and end weigh more."
    )
    return "\n\n".join(["## What reading alone takes", where, _table(rows)])


def _table(rows: Sequence[Reading]) -> str:
    head = ["bytes", "time", "rate", "of a copy's rate", "form"]
    lines = [head, ["---"] * len(head)]
    for r in rows:
        form = f"blocks of {r.block_size} words, {r.num_warps} warps"
        size = f"{r.bytes / 1e6:.1f} MB"
        rate = [time_text(r.us), rate_text(r.gbps), percent_text(r.copy_pct), form]
        lines.append([size, *rate])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
