"""Try every part of an installed triton_magics that its environment has the packages for.

python scripts/smoke.py            in an empty folder, with the Python to try; ends with 1 on a fault

It reads nothing of the repository, so that what is missing in a wheel is missed here too.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

SOURCE = """import torch
import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    cols = tl.arange(0, BLOCK_SIZE)
    offsets = tl.program_id(0) * n_cols + cols
    x = tl.load(x_ptr + offsets, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    exps = tl.exp(x - tl.max(x))
    tl.store(out_ptr + offsets, exps / tl.sum(exps), mask=cols < n_cols)

def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    grid = (x.numel() // n_cols,)
    softmax_kernel[grid](x, out, n_cols, BLOCK_SIZE=triton.next_power_of_2(n_cols))
    return out
"""
IN_IPYTHON = """from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for line in ("load_ext triton_magics", "triton_op softmax", "triton_ref masks", "triton_status"):
    name, _, rest = line.partition(" ")
    shell.run_line_magic(name, rest)
"""


def main() -> int:
    """Run every step in a new folder; return 1 if one failed."""
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "v1.py").write_text(SOURCE)
        for name, step in _steps():
            try:
                step(Path(folder))
                verdict = "ok"
            except (AssertionError, ValueError, subprocess.CalledProcessError) as fault:
                faults += 1
                output = getattr(fault, "stderr", "") or getattr(fault, "stdout", "") or ""
                verdict = f"FAULT: {fault}\n{output.strip()[-300:]}"
            print(f"{name:<12} {verdict}", flush=True)
    return int(faults > 0)


def _steps() -> Iterator[tuple[str, Callable[[Path], None]]]:
    yield "version", lambda folder: _run(folder, "-m", "triton_magics", "--version")
    for words in (
        "ops --help",
        "op softmax",
        "ref masks",
        "template fused softmax v2",
        "ref tiling",
    ):
        yield words.partition(" --")[0], lambda folder, w=words: _cli(folder, *w.split())
    yield "kernel", lambda folder: _cli(folder, "kernel", "softmax", "v1", "v1.py", *_no_compile())
    yield "doctor", _doctor
    if _has("torch") and _has("triton"):
        yield "validate", _validate
        yield "bench", _bench
        yield "inspect", lambda folder: _cli(folder, "inspect", "softmax", "v1")
    yield "log", _log
    yield "summary", lambda folder: _cli(folder, "summary")
    yield "quickstart", _quickstart
    yield "ipython", lambda folder: _run(folder, "-c", IN_IPYTHON)


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _no_compile() -> tuple[str, ...]:
    return () if _has("triton") else ("--no-compile",)


def _run(folder: Path, *words: str, codes: tuple[int, ...] = (0,)) -> str:
    command = [sys.executable, "-P", *words]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode not in codes:
        raise subprocess.CalledProcessError(ran.returncode, command, ran.stdout, ran.stderr)
    return ran.stdout


def _cli(folder: Path, *words: str, codes: tuple[int, ...] = (0,)) -> str:
    return _run(folder, "-m", "triton_magics", *words, codes=codes)


def _doctor(folder: Path) -> None:
    """Ask for the machine's state; without torch it is not usable, and says so by its exit code."""
    value = json.loads(_cli(folder, "doctor", "--json", codes=(0, 1)))
    assert value["schema_version"] == 1, value
    assert value["derived"]["passed"] is True or not _has("torch"), value


def _validate(folder: Path) -> None:
    value = json.loads(_cli(folder, "validate", "softmax", "v1", "--quick", "--json"))
    assert value["derived"]["passed"] is True, value["status"]


def _bench(folder: Path) -> None:
    value = json.loads(_cli(folder, "bench", "softmax", "--json"))
    sizes = value["derived"]["providers"]["v1_baseline"]["sizes"]
    assert all(size["mean_us"] > 0 for size in sizes.values()), sizes


def _log(folder: Path) -> None:
    _cli(folder, "log", "softmax")
    for suffix in ("md", "ipynb", "html", "jsonl"):
        assert (folder / "logs" / f"softmax_log.{suffix}").stat().st_size > 200, suffix


def _quickstart(folder: Path) -> None:
    _cli(folder, "quickstart", "copies")
    assert (folder / "copies" / "quickstart.ipynb").is_file()


if __name__ == "__main__":
    sys.exit(main())
