"""Search of attention kernels on a Hopper GPU, beside torch's call and the notebook's last version.

Every candidate has a process of its own, since one that hangs loses its context; all compile at
once, then one at a time uses the GPU. Each output is compared with float64 on some rows, with
torch's flash attention on all, and with a second run. Times: medians by CUDA events, cold L2, the
host ahead of the GPU, so that no launch is in them.

    python tests/benchmarks/attention_search.py FOLDER [WORD]

runs the candidates whose name contains WORD (without it, all but those of `earlier`), prints a
table and writes FOLDER/attention.json.
"""

from __future__ import annotations

import fcntl
import functools
import importlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).parent
NOTEBOOK = HERE.parents[1] / "scripts" / "notebooks" / "attention.md"
LIMIT_S, HANG_S, PROCESSES = 58, 8, 20
LARGEST_ERROR = 0.01  # of a row, relative: a key too few in 8,000 is more, rounding 0.003
SLEEP_CYCLES = 500_000  # about 280 us, in which the host gets ahead
REPEATS = 11
ALL_HEADS = 1024  # at least; as a section: the longest tiles of all heads first
# batch, heads, heads of keys, sequence, causal, dtype; run at every head_dim of the candidate
CHECKS = {
    "2x3x1000": (2, 3, 3, 1000, False, "bfloat16"),
    "2x3x1000 causal": (2, 3, 3, 1000, True, "bfloat16"),
    "2x6/2x1000 causal": (2, 6, 2, 1000, True, "bfloat16"),
    "2x3x1024 spikes": (2, 3, 3, 1024, False, "bfloat16"),
    "2x3x1000 causal spikes": (2, 3, 3, 1000, True, "bfloat16"),
    "3x50x640": (3, 50, 50, 640, False, "bfloat16"),
}
TIMED = {
    64: {
        "16x16x512": (16, 16, 16, 512, False, "bfloat16"),
        "8x16x1024": (8, 16, 16, 1024, False, "bfloat16"),
        "8x16x1024 causal": (8, 16, 16, 1024, True, "bfloat16"),
        "1x16x4096": (1, 16, 16, 4096, False, "bfloat16"),
        "1x16x4096 causal": (1, 16, 16, 4096, True, "bfloat16"),
        "1x16x16384 causal": (1, 16, 16, 16384, True, "bfloat16"),
    },
    128: {
        "16x16x512": (16, 16, 16, 512, False, "bfloat16"),
        "16x16x512 causal": (16, 16, 16, 512, True, "bfloat16"),
        "1x32/8x2048 causal": (1, 32, 8, 2048, True, "bfloat16"),
        "4x16x4096": (4, 16, 16, 4096, False, "bfloat16"),
        "4x16x4096 causal": (4, 16, 16, 4096, True, "bfloat16"),
        "1x64x8192": (1, 64, 64, 8192, False, "bfloat16"),
        "1x64x8192 causal": (1, 64, 64, 8192, True, "bfloat16"),
        "1x16x16384": (1, 16, 16, 16384, False, "bfloat16"),
    },
}
HALF = {"8x16x1024 float16": (8, 16, 16, 1024, False, "float16")}


def variants() -> list[tuple[str, int, dict[str, Any]]]:
    """Return module, head_dim and options of each candidate, the earlier ones last."""
    fixed: dict[str, Any] = {"fixed": True, "pingpong": True}
    short: dict[str, Any] = {"block_n": 64, "stages": 4}
    wide: list[dict[str, Any]] = [
        {**fixed},
        {**fixed, "section": ALL_HEADS},
        {**fixed, **short},
        {"fixed": True, **short},
    ]
    narrow: list[dict[str, Any]] = [
        {**fixed, "stages": 3},
        {**fixed, "stages": 4},
        {**fixed, "groups": 3, "regs": 160, "stages": 3},
        {"fixed": True, "groups": 3, "regs": 160, "stages": 3},
    ]
    name = "attention_persistent"
    rivals = [(rival, dim, {}) for rival in ("torch", "notebook") for dim in (128, 64)]
    every = [*rivals, *((name, 128, o) for o in wide), *((name, 64, o) for o in narrow)]
    return [(module, dim, dict(options)) for module, dim, options in (*every, *earlier())]


def earlier() -> list[tuple[str, int, dict[str, Any]]]:
    """Return the candidates of earlier searches."""
    both: list[tuple[str, int, dict[str, Any]]] = []
    # A running maximum in persistent programs: an illegal access at the first causal case.
    both += [("attention_persistent", 128, {"hold": hold}) for hold in (0, 1, 2)]
    for overlap, pingpong in product((True, False), (False, True)):
        flags: dict[str, Any] = {"overlap": overlap, "pingpong": pingpong}
        both.append(("attention_gluon", 128, flags))
        both.append(("attention_gluon", 64, {**flags, "groups": 3, "regs": 160}))
        both.append(("attention_gluon", 64, {**flags, "groups": 2, "stages": 3}))
    orders: list[dict[str, Any]] = [
        {"section": 8, "pingpong": True},
        {"persistent": 132, "pingpong": True},
        {"block_n": 64, "stages": 4},
    ]
    both += [("attention_gluon", 128, options) for options in orders]
    for block_n, num_stages in ((128, 2), (64, 3)):
        tiles: dict[str, Any] = {"block_n": block_n, "num_stages": num_stages}
        both.append(("attention_triton", 128, tiles))
        both.append(("attention_triton", 64, {**tiles, "block_m": 64, "num_warps": 4}))
    return both


def label_of(module: str, options: dict[str, Any]) -> str:
    """Return a short name of a candidate."""
    words = [k if v is True else f"{k}{v}" for k, v in options.items() if v is not False]
    return " ".join([module.removeprefix("attention_"), *words])


def notebook_version() -> Any:
    """Return the wrapper of the notebook's last version, from a file that Triton can read."""
    blocks = re.findall(r"^```python v\d+\S* [^\n]*\n(.*?)^```", NOTEBOOK.read_text(), re.M | re.S)
    folder = Path(tempfile.mkdtemp())
    (folder / "notebook_attention.py").write_text(blocks[-1])
    sys.path.append(str(folder))
    return importlib.import_module("notebook_attention").triton_attention


def wrapper_of(module: str) -> Any:
    """Return f(q, k, v, causal, **options) of a module, of torch or of the notebook."""
    from torch.nn import functional

    if module == "torch":
        return lambda q, k, v, causal: functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
        )
    if module == "notebook":
        version = notebook_version()
        return lambda q, k, v, causal: version(q, k, v)
    sys.path.append(str(HERE / "kernels"))
    return importlib.import_module(module).attention


def has_half(module: str, options: dict[str, Any]) -> bool:
    """Return whether to run in float16 too: only a fixed reference depends on the type."""
    return module in ("torch", "notebook") or bool(options.get("fixed"))


def compile_all(module: str, call: Any, dim: int, options: dict[str, Any]) -> float:
    """Compile a candidate for every kind of case; return the seconds."""
    import torch

    started = time.time()
    if module == "torch":
        return 0.0
    if module == "notebook":
        compile_notebook(call, dim)
        return time.time() - started
    kinds = [("bfloat16", 256, False), ("bfloat16", 256, True)]
    kinds.append(("float16", 256, False) if has_half(module, options) else ("bfloat16", 250, False))
    for dtype, seq, causal in kinds:
        x = torch.empty(2, 2, seq, dim, dtype=getattr(torch, dtype), device="cuda")
        call(x, x, x, causal=causal, warmup=True, **options)
    return time.time() - started


def compile_notebook(call: Any, dim: int) -> None:
    """Compile what the notebook's version launches in any of its cases; nothing runs."""
    import torch
    from triton.runtime.jit import KernelInterface

    def only_compile(kernel: Any, grid: Any) -> Any:
        return functools.partial(kernel.warmup, grid=grid)

    with mock.patch.object(KernelInterface, "__getitem__", only_compile):
        for batch, heads, _, seq, _, dtype in cases_of("notebook", dim, {}).values():
            kind = getattr(torch, dtype)
            x = torch.empty(batch, heads, seq, dim, dtype=kind, device="cuda")
            call(x, x, x, causal=False)
    torch.cuda.empty_cache()


def cases_of(module: str, dim: int, options: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the cases to run by name; one that compile_all leaves out would need a compilation."""
    half = HALF if has_half(module, options) else {}
    if module == "torch":
        return {**TIMED[dim], **half}
    if module == "notebook":
        every = {**CHECKS, **TIMED[dim], **half}
        return {n: c for n, c in every.items() if not c[4] and c[1] == c[2]}
    checks = {n: c for n, c in CHECKS.items() if not half or c[4] or c[3] % 128 == 0}
    return {**checks, **TIMED[dim], **half}


def inputs_of(case: tuple[Any, ...], dim: int, spikes: bool) -> tuple[Any, Any, Any]:
    """Return normal q, k and v; with spikes, keys after the first tile are far larger."""
    import torch

    batch, heads, key_heads, seq, _, dtype = case
    kind = getattr(torch, dtype)
    q, k, v = (
        torch.randn(batch, n, seq, dim, dtype=kind, device="cuda")
        for n in (heads, key_heads, key_heads)
    )
    if spikes:
        k[:, :, 128:] *= 60
    return q, k, v


def largest_error(out: Any, q: Any, k: Any, v: Any, causal: bool) -> float:
    """Return the largest relative error of 256 rows of two heads against float64, NaN for NaN."""
    import torch

    batch, heads, seq, dim = q.shape
    group = heads // k.shape[1]
    rows = torch.randperm(seq, device=q.device)[:256]
    rows[0], rows[-1] = 0, seq - 1
    errors = []
    for b, h in ((0, 0), (batch - 1, heads - 1)):
        s = q[b, h, rows].double() @ k[b, h // group].double().T * dim**-0.5
        if causal:
            s.masked_fill_(torch.arange(seq, device=q.device)[None] > rows[:, None], -torch.inf)
        right = torch.softmax(s, dim=-1) @ v[b, h // group].double()
        errors.append((out[b, h, rows].double() - right).norm(dim=1) / right.norm(dim=1))
    return float(torch.cat(errors).max())


def flash_difference(out: Any, q: Any, k: Any, v: Any, causal: bool) -> float:
    """Return the largest difference from torch's flash attention, of all elements."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        other = wrapper_of("torch")(q, k, v, causal)
    return float((out.float() - other.float()).abs().max())


def time_us(act: Any, flush: Any) -> tuple[float, float]:
    """Return medians in microseconds of the GPU's time and of the host's for one call."""
    import torch

    pairs, host = [], []
    for _ in range(REPEATS):
        torch.cuda._sleep(SLEEP_CYCLES)
        flush.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        began = time.perf_counter()
        act()
        host.append(1e6 * (time.perf_counter() - began))
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return statistics.median(1e3 * a.elapsed_time(b) for a, b in pairs[2:]), statistics.median(host)


def measure_case(
    call: Any, name: str, case: tuple[Any, ...], dim: int, flush: Any
) -> dict[str, Any]:
    """Check one case, and time it where it is one of the timed."""
    import torch

    batch, heads, _, seq, causal, _ = case
    torch.manual_seed(len(name))
    q, k, v = inputs_of(case, dim, "spikes" in name)
    out = call(q, k, v, causal)
    results: dict[str, Any] = {
        "error": largest_error(out, q, k, v, causal),
        "from flash": flash_difference(out, q, k, v, causal),
        "repeats": all(torch.equal(out, call(q, k, v, causal)) for _ in range(2)),
    }
    results["right"] = results["error"] <= LARGEST_ERROR and results["repeats"]
    if name not in CHECKS and results["right"]:
        results["us"], results["host us"] = time_us(lambda: call(q, k, v, causal), flush)
        work = 4 * batch * heads * seq**2 * dim * (0.5 if causal else 1)
        results["TFLOP/s"] = work / results["us"] / 1e6
    return results


def measure(module: str, dim: int, options: dict[str, Any]) -> None:
    """Check and time one candidate; print its row as JSON after every case."""
    import torch

    act = wrapper_of(module)
    row: dict[str, Any] = {"kernel": module, "dim": dim, **options, "cases": {}}
    row["label"] = label_of(module, options)
    row["compile s"] = compile_all(module, act, dim, options)

    def call(q: Any, k: Any, v: Any, causal: bool) -> Any:
        return act(q, k, v, causal=causal, **options)

    with (Path(tempfile.gettempdir()) / f"attention_search.{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        signal.alarm(HANG_S)
        row["gpu"] = torch.cuda.get_device_name()
        flush = torch.empty(2**28, dtype=torch.uint8, device="cuda")
        for name, case in cases_of(module, dim, options).items():
            row["cases"][name] = measure_case(call, name, case, dim, flush)
            print(json.dumps(row), flush=True)
        signal.alarm(0)


def run_all(chosen: list[int], folder: Path) -> list[dict[str, Any]]:
    """Run the candidates, each in a process; return a row for each, with its exit status."""
    every, started = variants(), time.time()
    todo, live, rows = list(chosen), {}, []
    while (todo or live) and time.time() - started < LIMIT_S:
        while todo and len(live) < PROCESSES:
            i = todo.pop(0)
            log = (folder / f"candidate{i}.txt").open("w")
            command = [sys.executable, __file__, str(folder), "--one", str(i)]
            live[i] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        for i, process in list(live.items()):
            if process.poll() is not None:
                rows.append(read_row(folder / f"candidate{i}.txt", every[i], process.returncode))
                del live[i]
        time.sleep(0.1)
    for i, process in live.items():
        process.kill()
        rows.append(read_row(folder / f"candidate{i}.txt", every[i], "out of time"))
    return rows


def read_row(log: Path, variant: tuple[str, int, dict[str, Any]], status: Any) -> dict[str, Any]:
    """Return the last row in a candidate's output; without one, the end of its output."""
    module, dim, options = variant
    text = log.read_text()
    rows = [line for line in text.splitlines() if line.startswith('{"kernel"')]
    row: dict[str, Any] = {"kernel": module, "dim": dim, "label": label_of(module, options)}
    row = {**row, **options, "cases": {}, **(json.loads(rows[-1]) if rows else {})}
    row["status"] = status
    if status != 0:
        lines = [line for line in text.splitlines() if not line.startswith('{"kernel"')]
        row["output"] = " ".join(lines)[-300:]
    return row


def show(rows: list[dict[str, Any]], dim: int) -> None:
    """Print a table of one head_dim, best candidate first: microseconds, then torch's over it."""
    rows = [row for row in rows if row["dim"] == dim]
    names = [*TIMED[dim], *HALF]
    torch_us = {
        name: case["us"]
        for row in rows
        if row["kernel"] == "torch"
        for name, case in row["cases"].items()
        if "us" in case
    }

    def over_torch(row: dict[str, Any]) -> float:
        both = [n for n in names if "us" in row["cases"].get(n, {}) and n in torch_us]
        logs = [torch_us[n] / row["cases"][n]["us"] for n in both]
        return statistics.geometric_mean(logs) if logs else 0.0

    print(f"\nhead_dim {dim}: us (torch / it); columns: {', '.join(names)}")
    for row in sorted(rows, key=over_torch, reverse=True):
        cells = []
        for name in names:
            case = row["cases"].get(name, {})
            ratio = f" ({torch_us[name] / case['us']:.2f})" if "us" in case and torch_us else ""
            wrong = "wrong" if case.get("right") is False else "-"
            cells.append(f"{case['us']:.1f}{ratio}" if "us" in case else wrong)
        bad = [n for n, c in row["cases"].items() if not c["right"]]
        host = statistics.median([c["host us"] for c in row["cases"].values() if "us" in c] or [0])
        print(
            f"{over_torch(row):.3f} {row['label']}: {' | '.join(cells)}; host {host:.0f} us", end=""
        )
        print(f"; wrong: {bad}" if bad else "", end="")
        print("" if row["status"] == 0 else f"; status {row['status']} {row['output']!r}")


def main() -> None:
    """Run every candidate and write the JSON; with --one and a number, that one alone."""
    folder = Path(sys.argv[1])
    if sys.argv[2:3] == ["--one"]:
        measure(*variants()[int(sys.argv[3])])
        return
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    named = [i for i, v in enumerate(variants()) if word in label_of(v[0], v[2])]
    chosen = named if word else named[: -len(earlier())]
    started = time.time()
    rows = run_all(chosen, folder)
    for dim in (128, 64):
        show(rows, dim)
    print(f"{time.time() - started:.0f} s, {[r.get('gpu') for r in rows][:1]}")
    (folder / "attention.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
