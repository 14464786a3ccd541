"""Search of attention kernels on a Hopper GPU, beside torch's cuDNN and flash attention.

Every variant has a process of its own, since one that hangs loses its context; all compile at once
(6 to 18 s each), then one at a time uses the GPU.

    python tests/benchmarks/attention_search.py FOLDER

About 50 s on an H200; it writes FOLDER/attention.json.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parent / "kernels"
LIMIT_S, HANG_S, PROCESSES = 50, 8, 16
LARGEST_ERROR = 0.03
# batch, heads, heads of keys, sequence, head_dim, causal
CASES = {
    "4x16x4096x128": (4, 16, 16, 4096, 128, False),
    "4x16x4096x128 causal": (4, 16, 16, 4096, 128, True),
    "1x64x8192x128": (1, 64, 64, 8192, 128, False),
    "1x64x8192x128 causal": (1, 64, 64, 8192, 128, True),
    "1x32/8x2048x128 causal": (1, 32, 8, 2048, 128, True),
    "16x16x512x128": (16, 16, 16, 512, 128, False),
    "8x16x1024x64": (8, 16, 16, 1024, 64, False),
    "8x16x1024x64 causal": (8, 16, 16, 1024, 64, True),
    "1x16x4096x64": (1, 16, 16, 4096, 64, False),
    "1x16x4096x64 causal": (1, 16, 16, 4096, 64, True),
    "2x3x1000x128 causal": (2, 3, 3, 1000, 128, True),
    "2x3x1000x64": (2, 3, 3, 1000, 64, False),
}


def variants() -> list[tuple[str, int, dict[str, Any]]]:
    """Return module, head_dim and options of each kernel; `torch` stands for torch alone."""
    both: list[tuple[str, int, dict[str, Any]]] = []
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
    return [("torch", 128, {}), ("torch", 64, {}), *both]


def compile_all(call: Any, dim: int, options: dict[str, Any]) -> float:
    """Compile a variant with and without the causal mask; return the seconds."""
    import torch

    started = time.time()
    heads = torch.empty(2, 2, 256, dim, dtype=torch.bfloat16, device="cuda")
    for causal in (False, True):
        call(heads, heads, heads, causal=causal, warmup=True, **options)
    return time.time() - started


def measure(module: str, dim: int, options: dict[str, Any]) -> dict[str, Any]:
    """Check and time one variant at every case of its head_dim, beside torch's call."""
    import torch
    import triton
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def us(act: Any) -> float:
        return 1e3 * float(triton.testing.do_bench(act, warmup=10, rep=30, return_mode="median"))

    row: dict[str, Any] = {"kernel": module, "dim": dim, **options, "cases": {}}
    sys.path.append(str(KERNELS))
    call = None if module == "torch" else importlib.import_module(module).attention
    row["compile s"] = compile_all(call, dim, options) if call else 0.0
    with (Path(tempfile.gettempdir()) / "attention_search.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        signal.alarm(HANG_S)
        for name, (batch, heads, key_heads, seq, head_dim, causal) in CASES.items():
            if head_dim != dim:
                continue
            torch.manual_seed(0)
            q, k, v = (
                torch.randn(batch, n, seq, dim, dtype=torch.bfloat16, device="cuda")
                for n in (heads, key_heads, key_heads)
            )
            gqa = heads != key_heads

            def torch_call(q=q, k=k, v=v, causal=causal, gqa=gqa) -> Any:  # type: ignore[no-untyped-def]
                return functional.scaled_dot_product_attention(
                    q, k, v, is_causal=causal, enable_gqa=gqa
                )

            case = row["cases"][name] = {"torch us": us(torch_call)}
            if call is None:
                for backend in ("CUDNN_ATTENTION", "FLASH_ATTENTION"):
                    with sdpa_kernel(getattr(SDPBackend, backend)):
                        case[f"{backend} us"] = us(torch_call)
                continue
            out = call(q, k, v, causal=causal, **options)
            error = float((out.float() - torch_call().float()).abs().max())
            case["error"] = error
            if error <= LARGEST_ERROR:  # not for NaN either
                case["us"] = us(lambda: call(q, k, v, causal=causal, out=out, **options))  # noqa: B023
                work = 4 * batch * heads * seq**2 * dim * (0.5 if causal else 1)
                case["TFLOP/s"] = work / case["us"] / 1e6
                case["over torch"] = case["torch us"] / case["us"]
        signal.alarm(0)
    return row


def main() -> None:
    """Run every variant and write the JSON; with a number, run that variant alone."""
    folder, every = Path(sys.argv[1]), variants()
    if len(sys.argv) == 3:
        print(json.dumps(measure(*every[int(sys.argv[2])])))
        return
    started, todo, live = time.time(), list(range(len(every))), {}
    rows: list[dict[str, Any]] = []
    while (todo or live) and time.time() - started < LIMIT_S:
        while todo and len(live) < PROCESSES:
            i = todo.pop(0)
            command = [sys.executable, __file__, str(folder), str(i)]
            live[i] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for i, process in list(live.items()):
            if process.poll() is not None:
                module, dim, options = every[i]
                text = process.communicate()[0]
                failed = {"kernel": module, "dim": dim, **options, "status": process.returncode}
                rows.append(json.loads(text) if process.returncode == 0 else failed)
                print(rows[-1], flush=True)
                del live[i]
        time.sleep(0.1)
    for process in live.values():
        process.kill()
    (folder / "attention.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
