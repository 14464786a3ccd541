"""Search of softmax, rms_norm, layer_norm, cross_entropy and rope, with gradients, on one GPU.

    python tests/benchmarks/norm_search.py FOLDER [PART_OF_A_NAME ...]

Beside torch, torch.compile, the notebooks' versions of today and, if it can be imported,
liger-kernel. Every case compiles in a process of its own, all at once; then one at a time checks
its candidates against float64 on fresh inputs, and times them and the rivals in a random order
with a cold L2 cache. Times are by CUDA events, behind a gate that hides the host, less what two
events without work between them show. A call of `liger` for cross_entropy waits for the GPU
itself, so its time has some of the host's in it.

About 75 s on an H200. It prints a table for each case and writes FOLDER/norms.json.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # the cases are the parallel part

import torch
from norm_candidates import Candidate, Case, candidates, exact, liger, make_gradient, make_inputs
from norm_candidates import reference as torch_function

LIMIT_S, COMPILE_S, HANG_S = 150, 60, 12
GATE_CYCLES = 1_000_000  # about 0.5 ms: longer than the host takes to queue any call
FLUSH_BYTES = 256 * 2**20
FIRST_ROUNDS, ROUNDS, FINALISTS = 4, 25, 6
NOTEBOOKS = Path(__file__).parents[2] / "scripts" / "notebooks"
TODAY = {"softmax": "v6", "rms_norm": "v6", "layer_norm": "v8", "cross_entropy": "v8", "rope": "v4"}
CASES = [
    Case("rms_norm", (65536, 1024)),
    Case("rms_norm", (65536, 1024), gradients=True),
    Case("layer_norm", (4096, 14336), gradients=True),
    Case("layer_norm", (4096, 14336)),
    Case("layer_norm", (65536, 1024), gradients=True),
    Case("softmax", (65536, 1024)),
    Case("softmax", (65536, 1024), gradients=True),
    Case("cross_entropy", (2048, 151936), gradients=True),
    Case("rms_norm", (4096, 14336), gradients=True),
    Case("rms_norm", (4096, 14336)),
    Case("rms_norm", (8192, 8192)),
    Case("layer_norm", (8192, 4096), gradients=True),
    Case("cross_entropy", (4096, 32000), gradients=True),
    Case("softmax", (2048, 151936), gradients=True),
    Case("softmax", (4096, 32000), gradients=True),
    Case("cross_entropy", (65536, 1024), gradients=True),
    Case("rms_norm", (8192, 4096), gradients=True),
    Case("softmax", (4096, 32000)),
    Case("softmax", (2048, 151936)),
    Case("rms_norm", (4096, 4096), dtype="float32"),
    Case("layer_norm", (8192, 8192)),
    Case("layer_norm", (65536, 1024)),
    Case("rms_norm", (8192, 4096)),
    Case("softmax", (2048, 1024)),
    Case("rope", (1, 4, 256, 32)),
    Case("rope", (2, 32, 4096, 64)),
]

Row = dict[str, Any]


class Clock:
    """Time calls with a cold L2 cache, behind a gate.

    Attributes:
        floor_us: what two events without work between them show, microseconds.
        late: the calls that the host had not queued when the gate opened.
    """

    def __init__(self) -> None:
        self._other = torch.ones(FLUSH_BYTES // 4, device="cuda")
        self._sum = torch.empty((), device="cuda")
        self.late: set[str] = set()
        self.floor_us = 0.0
        self.floor_us = statistics.median(self.time_once(lambda: None) for _ in range(20))

    def time_once(self, act: Callable[[], Any], name: str = "") -> float:
        """Return microseconds of one call; the L2 cache holds clean lines of another tensor."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        opened = torch.cuda.Event()
        torch.cuda._sleep(GATE_CYCLES)
        opened.record()
        torch.sum(self._other, dim=0, out=self._sum)
        start.record()
        act()
        end.record()
        if opened.query():
            self.late.add(name)
        torch.cuda.synchronize()
        return 1e3 * float(start.elapsed_time(end)) - self.floor_us

    def medians(self, acts: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
        """Return the median microseconds of each; the order of each round is random."""
        times: dict[str, list[float]] = {name: [] for name in acts}
        order = list(acts)
        for _ in range(rounds):
            random.shuffle(order)
            for name in order:
                times[name].append(self.time_once(acts[name], name))
        return {name: statistics.median(t) for name, t in times.items()}


# ---------------------------------------------------------------------------------- the rivals


def todays_version(op: str, *, gradients: bool = False) -> Callable[..., Any]:
    """Return the function of the version that the op's notebook chose, or its newest gradients."""
    text = (NOTEBOOKS / f"{op}.md").read_text(encoding="utf-8")
    version = f"{op}_backward v\\d+" if gradients else TODAY[op]
    blocks = list(re.finditer(rf"```python {version}\w* [^\n]*\n(.*?)```", text, re.DOTALL))
    assert blocks, op
    block = blocks[-1]
    path = Path(tempfile.mkdtemp()) / f"today_{op}.py"
    path.write_text(block[1], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    if gradients:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, torch.autograd.Function):
                apply: Callable[..., Any] = value.apply  # type: ignore[attr-defined]
                return apply
        return cast(Callable[..., Any], getattr(module, f"triton_{op}_backward"))
    return cast(Callable[..., Any], getattr(module, f"triton_{op}"))


def rivals(case: Case, inputs: tuple[torch.Tensor, ...], grad: torch.Tensor) -> dict[str, Any]:
    """Return name -> call, or the error that it raised; each has run once.

    Of gradients there are two calls: the backward pass alone, and with the forward pass.
    """
    makers: dict[str, Callable[[], Callable[..., torch.Tensor]]] = {
        "torch": lambda: torch_function(case.op),
        "torch.compile": lambda: torch.compile(torch_function(case.op), dynamic=False),
        "liger": lambda: liger(case.op),
    }
    makers["today"] = lambda: todays_version(case.op, gradients=case.gradients)
    calls: dict[str, Any] = {}
    for name, make in makers.items():
        try:
            for kind, call in _passes(case, make(), inputs, grad, name).items():
                call()
                torch.cuda.synchronize()
                calls[f"{name}{kind}"] = call
        except Exception as error:  # noqa: BLE001 (a rival that is missing or fails is a row)
            calls[name] = f"{type(error).__name__}: {error}"[:300]
    return calls


def _passes(
    case: Case, function: Callable[..., torch.Tensor], inputs: tuple[torch.Tensor, ...],
    grad: torch.Tensor, name: str,
) -> dict[str, Callable[[], Any]]:  # fmt: skip
    """Return the calls of a function: one, or those of its gradients."""
    if not case.gradients:
        return {"": torch.no_grad()(lambda: function(*inputs))}
    if name == "today" and case.op.endswith("norm"):  # it computes what it needs from the inputs
        return {" backward": lambda: function(grad, *inputs)}
    if name == "liger" and case.op == "cross_entropy":  # it writes over both
        inputs, grad = (inputs[0].clone(), inputs[1]), torch.ones_like(grad)
    arguments = [t.detach().requires_grad_() if t.is_floating_point() else t for t in inputs]
    leaves = [t for t in arguments if t.requires_grad]

    def both() -> Any:
        return torch.autograd.grad(function(*arguments), leaves, grad)

    both()
    value = function(*arguments)

    def backward() -> Any:
        return torch.autograd.grad(value, leaves, grad, retain_graph=True)

    return {" both": both, " backward": backward}


# ------------------------------------------------------------------------------ one case


def search(case: Case, pipe: Connection) -> None:
    """Compile a case's candidates; when told to, check and time them, and send the rows."""
    import torch._functorch.config

    torch._functorch.config.donated_buffer = False  # a backward pass is timed again and again
    torch.manual_seed(time.time_ns() % 2**31)
    started, rows = time.time(), []
    inputs = make_inputs(case, "cuda")
    grad = make_gradient(case, inputs[0])
    ready = []
    for candidate in candidates(case, inputs, grad):
        try:
            candidate.compile()
            ready.append(candidate)
        except Exception as error:  # noqa: BLE001 (one that fails to compile is a row)
            rows.append({"candidate": candidate.label, "error": str(error)[-300:]})
    others = rivals(case, inputs, grad)
    torch.cuda.empty_cache()
    pipe.send(round(time.time() - started, 1))
    pipe.recv()
    signal.alarm(HANG_S)
    try:
        rows += measure(case, inputs, grad, ready, others)
    except Exception:  # noqa: BLE001 (a fault of the GPU ends the case, not the search)
        rows.append({"candidate": "the case", "error": traceback.format_exc()[-600:]})
    signal.alarm(0)
    pipe.send(rows)


def measure(
    case: Case, inputs: tuple[torch.Tensor, ...], grad: torch.Tensor,
    ready: Sequence[Candidate], others: dict[str, Any],
) -> list[Row]:  # fmt: skip
    """Return a row of each candidate and rival; the fastest candidates and all rivals twice."""
    clock = Clock()
    rows, right = check(exact(case, inputs, grad), ready)
    torch.cuda.empty_cache()
    first = clock.medians({c.label: c.run for c in right}, FIRST_ROUNDS)
    final = _finalists(right, first)
    acts: dict[str, Callable[[], Any]] = {c.label: c.run for c in right if c.label in final}
    acts |= {name: call for name, call in others.items() if callable(call)}
    clock.late.clear()
    last = clock.medians(acts, ROUNDS)
    for row in (row for row in rows if "error" not in row):
        row["us"] = last.get(row["candidate"], first.get(row["candidate"]))
        row["final"] = row["candidate"] in final
    for name, call in others.items():
        rows.append({"rival": name, **({"us": last[name]} if callable(call) else {"error": call})})
    for row in rows:
        row["host_late"] = row.get("rival", row.get("candidate")) in clock.late
    return rows


def _finalists(right: Sequence[Candidate], us: dict[str, float]) -> set[str]:
    """Return the labels of the fastest of each kind: whole, and a backward pass alone."""
    labels: set[str] = set()
    for kind in (False, True):
        of_kind = [c.label for c in right if c.from_forward is kind]
        labels |= set(sorted(of_kind, key=lambda label: us[label])[:FINALISTS])
    return labels


def check(
    expected: Sequence[torch.Tensor], ready: Sequence[Candidate]
) -> tuple[list[Row], list[Candidate]]:
    """Run each candidate once; return the rows, and the candidates that are right."""
    rows: list[Row] = []
    right = []
    for candidate in ready:
        for out in candidate.outputs:
            out.fill_(float("nan"))
        try:
            candidate.run()
        except Exception as error:  # noqa: BLE001 (one that needs too much of the GPU is a row)
            rows.append({"candidate": candidate.label, "error": str(error)[-300:]})
            continue
        pairs = zip(candidate.outputs, expected, strict=True)
        worst = max(share_of_allowed(out, want) for out, want in pairs)
        rows.append(
            {
                "candidate": candidate.label, "from_forward": candidate.from_forward,
                "error_of_allowed": worst,
            }
        )  # fmt: skip
        if worst <= 1:  # not for NaN either
            right.append(candidate)
    return rows, right


def share_of_allowed(out: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest error over what is allowed: some roundings, and a share of the largest value.

    A backward pass from a rounded output has several; the op's own validation is stricter.
    """
    worst = [0.0]
    step, share = (2.0**-6, 1e-3) if out.element_size() == 2 else (2.0**-18, 1e-5)
    floor = share * float(expected.abs().max())
    for part, want in zip(out.flatten().split(2**26), expected.flatten().split(2**26), strict=True):
        error = (part.double() - want).abs() / (want.abs() * step + floor)
        worst.append(float(error.max()) if not bool(error.isnan().any()) else float("nan"))
    return float("nan") if any(w != w for w in worst) else max(worst)


# ------------------------------------------------------------------------------ all cases


def main() -> None:
    """Compile all cases at once, measure one at a time, print the tables and write the JSON."""
    folder, parts = Path(sys.argv[1]), sys.argv[2:]
    cases = [c for c in CASES if not parts or any(part in c.name for part in parts)]
    started, context = time.time(), multiprocessing.get_context("fork")
    live: list[tuple[Case, Any, Connection]] = []
    for case in cases:
        here, there = context.Pipe()
        process = context.Process(target=search, args=(case, there))
        process.start()
        there.close()
        live.append((case, process, here))
    results: dict[str, Any] = {}
    ready = wait_for_all(live, COMPILE_S, results)
    print(
        f"{len(ready)} of {len(live)} cases compiled in {time.time() - started:.0f} s", flush=True
    )
    for case, _, pipe in ready:
        if time.time() - started < LIMIT_S:
            results[case.name] = answer(pipe, HANG_S + 3)
            print(table(case.name, results[case.name]), flush=True)
            (folder / "norms.json").write_text(json.dumps(results, indent=1) + "\n")
    for _, process, _ in live:
        process.kill()
    gpu = f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}"
    results["environment"] = f"{gpu}, {time.strftime('%Y-%m-%d')}, {time.time() - started:.0f} s"
    (folder / "norms.json").write_text(json.dumps(results, indent=1) + "\n")
    print(results["environment"])


def wait_for_all(
    live: Sequence[tuple[Case, Any, Connection]], limit_s: float, results: dict[str, Any]
) -> list[tuple[Case, Any, Connection]]:
    """Return the cases that have compiled; the others have an entry in the results.

    None may run before all have compiled: a compiler on all cores, or torch.compile's own trial
    runs, would disturb what is timed.
    """
    deadline = time.time() + limit_s
    waiting = {pipe: (case, process) for case, process, pipe in live}
    ready = set()
    while waiting and time.time() < deadline:
        for pipe in wait(list(waiting), timeout=1):
            assert isinstance(pipe, Connection)
            case, _ = waiting.pop(pipe)
            try:
                print(f"{case.name}: compiled in {pipe.recv()} s", flush=True)
                ready.add(case)
            except EOFError:
                results[case.name] = [{"candidate": "the case", "error": "its process ended"}]
                print(f"{case.name}: its process ended", flush=True)
    for case, process in waiting.values():
        process.kill()
        results[case.name] = [{"candidate": "the case", "error": f"not ready in {limit_s} s"}]
        print(f"{case.name}: not ready in {limit_s} s", flush=True)
    return [one for one in live if one[0] in ready]


def answer(pipe: Connection, limit_s: float) -> list[Row]:
    """Tell a case to measure; return its rows."""
    try:
        pipe.send("go")
        if pipe.poll(limit_s):
            rows: list[Row] = pipe.recv()
            return rows
        return [{"candidate": "the case", "error": f"no answer in {limit_s} s"}]
    except (EOFError, OSError):
        return [{"candidate": "the case", "error": "its process ended"}]


def table(name: str, rows: Sequence[Row]) -> str:
    """Return lines: the finalists and rivals of a case, fastest first, and what failed."""
    timed = sorted((r for r in rows if r.get("us") and r.get("final", True)), key=lambda r: r["us"])
    lines = [f"\n{name}"]
    for row in timed:
        label = f"* {row['rival']}" if "rival" in row else row["candidate"]
        notes = " (backward pass alone)" if row.get("from_forward") else ""
        notes += " (with time of the host)" if row.get("host_late") else ""
        lines.append(f"{row['us']:9.1f} us  {label}{notes}")
    wrong = [r for r in rows if not r.get("error_of_allowed", 0) <= 1]
    lines += [f"    WRONG {r['candidate']}: {r['error_of_allowed']:.3g}" for r in wrong[:4]]
    failed = [r for r in rows if "error" in r]
    texts = [f"{r.get('rival', r.get('candidate'))}: {r['error'][-160:]!r}" for r in failed[:5]]
    return "\n".join(lines + [f"    FAILED {text}" for text in texts])


if __name__ == "__main__":
    main()
