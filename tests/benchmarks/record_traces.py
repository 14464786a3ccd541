"""Write traces of CUPTI's activity records, and what is known of the kernels in them.

`tests/harness/test_activity.py` reads them without a GPU. It takes 15 s on an H200.

    python tests/benchmarks/record_traces.py FOLDER
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from importlib import metadata, util
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from triton_magics.harness.profiling.activity import _trace
from triton_magics.harness.timers.gated_timer import make_l2_flush

SOFTMAX = Path(__file__).parents[1] / "faults" / "kernels" / "softmax_right.py"
SHAPE = (4096, 4096)
REPEATS = 5


def load(path: Path) -> ModuleType:
    """Import a file as a module."""
    spec = util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_calls(module: ModuleType) -> dict[str, Callable[[], object]]:
    """Return a call for each trace: one kernel, copies beside kernels, and no work at all."""
    x = torch.randn(SHAPE, device="cuda")
    w = torch.randn(SHAPE[1], 512, device="cuda", dtype=torch.bfloat16)
    host = torch.empty(SHAPE, pin_memory=True)

    def several() -> None:
        y = torch.zeros_like(x)
        y.copy_(x)
        (torch.softmax(y, dim=-1).bfloat16() @ w).sum()
        host.copy_(y)

    return {
        "softmax": lambda: module.triton_softmax(x),
        "several": several,
        "nothing": x.t,
    }


def compiled_facts(module: ModuleType) -> list[dict[str, Any]]:
    """Return what the driver says of each Triton kernel of a module."""
    facts = []
    for kernel in vars(module).values():
        for caches in getattr(kernel, "device_caches", {}).values():
            facts += [
                {"name": k.metadata.name, "registers": k.n_regs, "spills": k.n_spills,
                 "shared_bytes": k.metadata.shared, "num_warps": k.metadata.num_warps}
                for k in caches[0].values()
            ]  # fmt: skip
    return facts


def events_us(call: Callable[[], object], flush: Callable[[], None]) -> list[float]:
    """Return the times of a call by CUDA events, with cold caches; its launch counts, too."""
    times = []
    for _ in range(REPEATS):
        flush()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(1e3 * start.elapsed_time(end))
    return times


def main(folder: Path) -> None:
    """Write `NAME.json.gz` for each call, and `facts.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    device, module = torch.cuda.get_device_properties(0), load(SOFTMAX)
    flush = make_l2_flush(device.L2_cache_size)
    facts: dict[str, Any] = {
        "device": device.name, "capability": [device.major, device.minor],
        "sms": device.multi_processor_count,
        "versions": {name: metadata.version(name) for name in ("torch", "triton")},
    }  # fmt: skip
    for name, call in make_calls(module).items():
        for _ in range(3):  # compiles, and starts CUPTI
            text = _trace(call, flush)
        trace = json.loads(text) | {"traceName": f"{name}.json"}
        path = folder / f"{name}.json.gz"
        path.write_bytes(gzip.compress(json.dumps(trace).encode(), mtime=0))
        facts[name] = {"events_us": events_us(call, flush), "bytes": path.stat().st_size}
        print(name, facts[name], sorted({e.get("cat", "") for e in trace["traceEvents"]}))
    facts["kernels"] = compiled_facts(module)
    (folder / "facts.json").write_text(json.dumps(facts, indent=2) + "\n")
    print(facts["kernels"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
