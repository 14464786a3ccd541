"""Example values for the tests of the views and the logs: one softmax, made up and consistent."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

from triton_magics import stats
from triton_magics.model import (
    Benchmark,
    Best,
    Case,
    CaseResult,
    CaseStatus,
    Comparison,
    Compilation,
    Configuration,
    Diagnosis,
    Difference,
    Discard,
    EngineState,
    Environment,
    Export,
    Finding,
    KernelError,
    KernelResources,
    KernelSource,
    LabState,
    Mismatch,
    NotTimed,
    OpFacts,
    OpPage,
    OpResult,
    OpState,
    Plan,
    Plot,
    Reference,
    Report,
    RunResult,
    SelfCheck,
    SelfTest,
    Setback,
    Side,
    Status,
    Summary,
    Sweep,
    Technique,
    Template,
    TensorSummary,
    Timing,
    Tolerance,
    Validation,
    Validations,
    VersionState,
    Written,
    version_name,
)
from triton_magics.report.log import LogInput, VersionLog

SHAPES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
DTYPES = ("float32", "float16", "bfloat16")
TIMES_US = {
    "torch": (2.2, 6.1, 55.1),
    "v1_baseline": (1.9, 4.0, 47.0),
    "v2_tiling": (1.9, 3.9, 33.1),
    "v3_coalesced": (1.9, 3.9, 33.4),
    "v4_optimized": (1.85, 3.8, 32.9),
    "v5": (2.4, 7.3, 81.0),
    "v6_warp_specialised_persistent": (1.9, 3.7, 31.8),
}
SOURCE = """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float("inf"))
    top = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + cols, top / tl.sum(top, axis=0), mask=mask)


def triton_softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK_SIZE=block)
    return out
"""

GPU = Environment(
    device_kind="gpu",
    device="NVIDIA H200",
    capability="9.0",
    gpu_uuid="GPU-0000",
    driver="580.95",
    cuda="13.0",
    sm_count=132,
    python="3.11.7",
    torch="2.11.0",
    triton="3.6.0",
    numpy="2.2.0",
    flags=("tf32 off",),
)
CPU = Environment(
    device_kind="interpreter",
    device="CPU (interpreter)",
    python="3.11.7",
    torch="2.13.0",
    triton="3.7.1",
)
FACTS = OpFacts(
    name="softmax",
    torch_equivalent="torch.softmax(x, -1)",
    signature="triton_softmax(x)",
    formula="exp(x - max(x)) / sum(exp(x - max(x))), over the last dimension",
    description="Turns each row into shares that add up to 1.",
    input_shapes="x [n, m]",
    output_shape="[n, m]",
    complexity="about 5·n·m flops",
    memory_pattern="2·n·m·itemsize bytes",
    tips=("Subtract the row's maximum before `exp`.", "Mask with -inf, not 0."),
    techniques=("online_reduction", "tiling"),
    pattern="reduction",
    sizes=SHAPES,
    dtypes=DTYPES,
)
TECHNIQUES = (
    Technique(
        name="online_reduction",
        title="Online reduction",
        description="Keeps a running maximum and sum, one pass over the row.",
        helps_when="rows are longer than a block",
        ops=("softmax",),
    ),
    Technique(
        name="tiling",
        title="Tiling",
        description="Each program works on a tile that fits in registers.",
        helps_when="data is read more than once",
        ops=("softmax", "matmul"),
    ),
)
ENGINE = EngineState(device_kind="gpu", device="NVIDIA H200", standby_ready=True)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def source(version: str = "v1_baseline", attempt: int = 1, code: str = SOURCE) -> KernelSource:
    return KernelSource(
        op="softmax",
        version=version,
        attempt=attempt,
        source=code,
        sha256=sha256(code),
        entry="triton_softmax",
        signature="(x)",
        path=f"kernels/softmax/{version}.py",
        header_lines=12,
        cell_offset=1,
    )


def compilation(version: str = "v1_baseline", **changes: Any) -> Compilation:
    kernel = KernelResources(
        name="softmax_kernel",
        size="small",
        grid=(256,),
        num_warps=4,
        num_stages=3,
        registers=32,
        spill_bytes=0,
        shared_bytes=512,
        occupancy_pct=100.0,
    )
    values: dict[str, Any] = {
        "op": "softmax",
        "version": version,
        "attempt": 1,
        "sha256": sha256(SOURCE),
        "status": Status.PASSED,
        "target": "sm_90",
        "duration_s": 0.31,
        "kernels": (kernel,),
    }
    return Compilation(**values | changes)


def compile_error(**changes: Any) -> KernelError:
    values: dict[str, Any] = {
        "kind": "CompilationError",
        "message": "NameError: 'n_colz' is not defined",
        "line": 10,
        "column": 19,
        "cell_line": 11,
        "file": "kernels/softmax/v1_baseline.py",
        "file_line": 22,
        "code": "    mask = cols < n_colz",
        "hint": "did you mean 'n_cols'?",
        "traceback": 'Traceback (most recent call last):\n  File "/home/someone/x.py", line 1\n',
    }
    return KernelError(**values | changes)


def written(**changes: Any) -> Written:
    values: dict[str, Any] = {
        "source": source(),
        "compilation": compilation(),
        "next_version": "v2_tiling",
        "next_technique": "Tiling",
        "block_hint": "a power of two that covers the row",
    }
    return Written(**values | changes)


# ------------------------------------------------------------------------------- validation


def tolerance(**changes: Any) -> Tolerance:
    values = {"rtol": 1e-5, "atol": 2.1e-6, "origin": "the spec, scaled to each row"}
    return Tolerance(**values | changes)


def case(shape: tuple[int, ...] = (257, 1023), dtype: str = "float32", **changes: Any) -> Case:
    return Case(**{"shape": shape, "dtype": dtype, "seed": 7} | changes)


def passed_case(error_share: float = 0.4, **where: Any) -> CaseResult:
    return CaseResult(
        case=case(**where),
        status=CaseStatus.PASSED,
        error_share=error_share,
        max_abs_error=3e-7,
        tolerance=tolerance(),
        calibrated=True,
        seeds_rule=True,
        deterministic=True,
        duration_s=0.01,
    )


def passed_cases(dtypes: tuple[str, ...] = DTYPES) -> tuple[CaseResult, ...]:
    found = []
    for dtype in dtypes:
        found += [
            passed_case(0.1, shape=shape, dtype=dtype, size=size) for size, shape in SHAPES.items()
        ]
        found.append(passed_case(0.4, shape=(257, 1023), dtype=dtype))
    return tuple(found)


def mismatch(**changes: Any) -> Mismatch:
    last_column = tuple((0.0,) * 47 + (1.0,) for _ in range(16))
    values: dict[str, Any] = {
        "index": (0, 1022),
        "got": float("nan"),
        "expected": 0.000871,
        "allowed": 2.1e-6,
        "n_wrong": 257,
        "n_elements": 262911,
        "where": "all in the last column",
        "cause": "a load reads past the row: `other=` is missing on line 9",
        "advice": "x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float('inf'))",
        "picture": last_column,
    }
    return Mismatch(**values | changes)


def wrong_case(**changes: Any) -> CaseResult:
    values: dict[str, Any] = {
        "case": case(),
        "status": CaseStatus.WRONG_VALUES,
        "error_share": float("nan"),
        "max_abs_error": float("nan"),
        "tolerance": tolerance(),
        "calibrated": True,
        "seeds_rule": False,
        "deterministic": True,
        "mismatch": mismatch(),
        "error": KernelError(
            kind="UndefinedLanes",
            message="masked lanes of this load are undefined",
            line=11,
            column=9,
            cell_line=12,
            file="kernels/softmax/v1_baseline.py",
            file_line=23,
            code="    x = tl.load(x_ptr + row * stride + cols, mask=mask)",
        ),
    }
    return CaseResult(**values | changes)


def validation(version: str = "v2_tiling", **changes: Any) -> Validation:
    values: dict[str, Any] = {
        "op": "softmax",
        "version": version,
        "attempt": 1,
        "sha256": sha256(SOURCE),
        "status": Status.PASSED,
        "plan": "full",
        "seed": 83114,
        "dtypes": DTYPES,
        "cases": passed_cases(),
        "environment": GPU,
        "triton_kernels": ("softmax_kernel",),
        "triton_share": 1.0,
        "duration_s": 1.2,
    }
    return Validation(**values | changes)


def wrong_validation(**changes: Any) -> Validation:
    values: dict[str, Any] = {
        "version": "v1_baseline",
        "status": Status.FAILED,
        "cases": (*passed_cases(), wrong_case(), wrong_case(case=case((255, 31), "float16"))),
        "attempts_failed": 1,
        "duration_s": 0.4,
    }
    return validation(**values | changes)


def interpreter_validation(**changes: Any) -> Validation:
    missing = CaseResult(
        case=case(SHAPES["large"], size="large"),
        status=CaseStatus.NOT_RUN,
        reason="about 4 s a launch in the interpreter",
    )
    values: dict[str, Any] = {
        "cases": (*passed_cases(("float32", "float16")), missing),
        "dtypes": ("float32", "float16"),
        "environment": CPU,
        "triton_share": None,
        "compilation": compilation("v2_tiling"),
        "badges": ("interpreter",),
    }
    return validation(**values | changes)


def timeout_validation(**changes: Any) -> Validation:
    values: dict[str, Any] = {
        "version": "v3_coalesced",
        "status": Status.TIMEOUT,
        "cases": (),
        "message": "no answer in 20 s while validating 256x256 float32",
    }
    return validation(**values | changes)


# -------------------------------------------------------------------------------- benchmark


def timing(provider: str, size: str, mean_us: float, clock: Any = "gpu", runs: int = 10) -> Timing:
    wobble = [1 + 0.004 * ((i * 7) % 10 - 4.5) / 4.5 for i in range(runs)]
    rows, cols = SHAPES[size]
    return Timing(
        provider=provider,
        size=size,
        shape=SHAPES[size],
        clock=clock,
        samples_us=tuple(mean_us * w for w in wobble),
        raw_us=tuple(mean_us * w + 2.3 for w in wobble) if clock == "gpu" else (),
        bytes=2 * 4 * rows * cols,
        flops=5 * rows * cols,
    )


def with_own_shape(value: Benchmark, size: str = "8192x151936") -> Benchmark:
    """The same benchmark with a shape of the user's own beside its sizes; torch takes 1.8 ms."""
    shape = tuple(int(n) for n in size.split("x"))
    first = {p: timing(p, "large", 1800.0 / (i + 1)) for i, p in enumerate(value.providers)}
    own = {p: t.model_copy(update={"size": size, "shape": shape}) for p, t in first.items()}
    pairs = [comparison(own[v], own["torch"]) for v in value.versions]
    return value.model_copy(
        update={
            "sizes": (*value.sizes, size),
            "timings": (*value.timings, *own.values()),
            "comparisons": (*value.comparisons, *pairs),
        }
    )


def comparison(candidate: Timing, baseline: Timing, threshold: float = 0.01) -> Comparison:
    interval = stats.paired_speedup(candidate.samples_us, baseline.samples_us)
    low, high = interval.low * 0.97, interval.high * 1.03
    return Comparison(
        candidate=candidate.provider,
        baseline=baseline.provider,
        size=candidate.size,
        ratio=interval.middle,
        low=low,
        high=high,
        threshold=threshold,
        rounds=len(candidate.samples_us),
        verdict=stats.verdict(stats.Interval(interval.middle, low, high), 0.04),
    )


def _versions(n: int) -> tuple[str, ...]:
    return tuple(TIMES_US)[1 : n + 1]


def benchmark(n_versions: int = 2, **changes: Any) -> Benchmark:
    versions = _versions(n_versions)
    providers = ("torch", *versions)
    timings = {
        (p, size): timing(p, size, TIMES_US[p][i])
        for p in providers
        for i, size in enumerate(SHAPES)
    }
    pairs = [(v, "torch") for v in versions] + list(zip(versions[1:], versions, strict=False))
    compared = [comparison(timings[a, size], timings[b, size]) for size in SHAPES for a, b in pairs]
    values: dict[str, Any] = {
        "op": "softmax",
        "status": Status.PASSED,
        "versions": versions,
        "sha256s": (sha256(SOURCE),) * n_versions,
        "providers": providers,
        "sizes": tuple(SHAPES),
        "runs": 10,
        "dtype": "float32",
        "clock": "gpu",
        "timings": tuple(timings.values()),
        "comparisons": tuple(compared),
        "controls": tuple(control(size) for size in SHAPES),
        "floor_us": 2.8,
        "empty_kernel_us": 0.54,
        "copy_gbps": 4180.0,
        "environment": GPU,
        "seed": 5,
        "duration_s": 0.3,
    }
    return Benchmark(**values | changes)


def sweep(**changes: Any) -> Sweep:
    """Blocks by warps: a valley, one wrong, two that do not compile, one point not told apart."""
    knobs = {"BLOCK_SIZE": (256, 500, 1024, 2048), "num_warps": (2, 4, 8)}
    made = []
    for block, warps in itertools.product(*knobs.values()):
        given: dict[str, Any] = {"settings": {"BLOCK_SIZE": block, "num_warps": warps}}
        if block == 500:
            error = compile_error(message="arange's range must be a power of 2")
            why = "CompilationError: arange's range must be a power of 2"
            given |= {"status": CaseStatus.COMPILE_ERROR, "reason": why, "error": error}
        elif (block, warps) == (2048, 2):
            why = "257x1023 float32: 257 of 262,911 elements wrong"
            given |= {"status": CaseStatus.WRONG_VALUES, "reason": why}
        else:
            us = 30.0 * (1 + abs(block - 1024) / 3000) * (1 + abs(warps - 4) / 10)
            kernel = compilation().kernels[0]
            given |= {
                "status": CaseStatus.PASSED, "timing": timing("it", "large", us), "kernel": kernel
            }  # fmt: skip
        made.append(Configuration(**given))
    timed = [c for c in made if c.timing]
    best = min(timed, key=lambda c: c.timing.mean_us if c.timing else 0)
    made = [
        c.model_copy(update={"comparison": comparison(c.timing, best.timing)})
        if c.timing and best.timing and c is not best
        else c
        for c in made
    ]
    values: dict[str, Any] = {
        "op": "softmax", "version": "v2_tiling", "attempt": 1, "sha256": sha256(SOURCE),
        "status": Status.PASSED, "knobs": knobs, "standing": {"BLOCK_SIZE": 256, "num_warps": 8},
        "size": "large", "shape": SHAPES["large"], "dtype": "float32", "clock": "gpu",
        "configurations": tuple(made), "torch": timing("torch", "large", 55.1), "floor_us": 2.8,
        "seed": 7, "environment": GPU, "steps_s": {"compile": 1.2, "check": 0.8, "time": 0.9},
        "duration_s": 2.9,
    }  # fmt: skip
    return Sweep(**values | changes)


def compiled_sweep() -> Sweep:
    """The same where there is no GPU."""
    whole = sweep()
    made = tuple(
        c if c.error else Configuration(
            settings=c.settings, status=CaseStatus.NOT_RUN, kernel=compilation().kernels[0]
        )
        for c in whole.configurations
    )  # fmt: skip
    return whole.model_copy(
        update={
            "configurations": made, "clock": None, "target": "sm_90", "torch": None,
            "environment": CPU, "steps_s": {"compile": 2.0}, "duration_s": 2.0,
        }
    )  # fmt: skip


def control(size: str, ratio: float = 1.0, verdict: Any = "same") -> Comparison:
    return Comparison(
        candidate="torch",
        baseline="torch",
        size=size,
        ratio=ratio,
        low=ratio - 0.006,
        high=ratio + 0.007,
        threshold=0.01,
        rounds=10,
        verdict=verdict,
    )


def many_versions(n: int, **changes: Any) -> Benchmark:
    """Versions whose times at every size are torch's over 0.98, 1.02, 0.96, 1.04, ... in order."""
    versions = tuple(f"v{i}_tried" for i in range(1, n + 1))
    factors = {f"v{i}_tried": 1 - 0.01 * (2 * (i % 2) - 1) * (i + 1) for i in range(1, n + 1)}
    torch = {
        size: timing("torch", size, us) for size, us in zip(SHAPES, TIMES_US["torch"], strict=True)
    }
    own = {
        (v, size): timing(v, size, torch[size].mean_us / factors[v])
        for v in versions
        for size in SHAPES
    }
    values = {
        "versions": versions,
        "sha256s": tuple(sha256(v) for v in versions),
        "providers": ("torch", *versions),
        "timings": (*torch.values(), *own.values()),
        "comparisons": tuple(comparison(own[v, s], torch[s]) for v, s in own),
    }
    return benchmark(1, **values | changes)


def interpreter_benchmark(n_versions: int = 2, **changes: Any) -> Benchmark:
    versions = _versions(n_versions)
    sizes = {"small": 2.1e5, "medium": 9.3e5}
    values: dict[str, Any] = {
        "clock": "interpreter",
        "runs": 3,
        "providers": ("torch", *versions),
        "timings": tuple(
            timing(p, size, us * (1 - 0.05 * i), "interpreter", 3)
            for i, p in enumerate(("torch", *versions))
            for size, us in sizes.items()
        ),
        "comparisons": (),
        "controls": (),
        "not_timed": (
            NotTimed(size="large", reason="over the budget of the interpreter", estimate_s=41.0),
        ),
        "floor_us": None,
        "empty_kernel_us": None,
        "copy_gbps": None,
        "environment": CPU,
        "badges": ("interpreter",),
    }
    return benchmark(n_versions, **values | changes)


def discarded(value: Benchmark) -> Benchmark:
    first = value.timings[0].model_copy(
        update={"discards": (Discard(reason="the gate opened early", count=3),)}
    )
    return value.model_copy(update={"timings": (first, *value.timings[1:])})


# ------------------------------------------------------------------------------- everything


def run_result(**changes: Any) -> RunResult:
    output = TensorSummary(
        shape=(256, 256),
        dtype="float32",
        device="cuda:0",
        min=1.2e-5,
        max=0.0871,
        mean=1 / 256,
    )
    values: dict[str, Any] = {
        "op": "softmax",
        "version": "v2_tiling",
        "attempt": 1,
        "sha256": sha256(SOURCE),
        "status": Status.PASSED,
        "inputs": "small 256x256 float32",
        "outputs": (output,),
        "first_call_ms": 312.4,
        "second_call_ms": 0.041,
        "environment": GPU,
    }
    return RunResult(**values | changes)


def version_state(n: int, **changes: Any) -> VersionState:
    version = version_name(n)
    means = dict(zip(SHAPES, TIMES_US.get(version, TIMES_US["v5"]), strict=True))
    final = sum(means.values()) / 3
    values: dict[str, Any] = {
        "version": version,
        "attempt": 1,
        "entry": "triton_softmax",
        "path": f"kernels/softmax/{version}.py",
        "sha256": sha256(SOURCE),
        "validation": Status.PASSED,
        "validation_device": "gpu",
        "validation_plan": "full",
        "cases": "12 of 12",
        "final_us": final,
        "means_us": means,
        "clock": "gpu",
        "speedup": sum(TIMES_US["torch"]) / 3 / final,
    }
    return VersionState(**values | changes)


def op_state(n_versions: int = 3, **changes: Any) -> OpState:
    versions = tuple(
        version_state(n, best=n == 2, attempt=2 if n == 1 else 1, attempts_failed=int(n == 1))
        for n in range(1, n_versions + 1)
    )
    values: dict[str, Any] = {
        "op": "softmax",
        "state": "end" if n_versions >= 3 else "write",
        "allowed": ("write", "best", "log"),
        "next_step": "%triton_best softmax",
        "min_writes": 3,
        "versions": versions,
        "n_events": 12,
    }
    return OpState(**values | changes)


def lab_state(**changes: Any) -> LabState:
    values: dict[str, Any] = {
        "workspace": "work",
        "ops": (op_state(), op_state(1)),
        "engine": ENGINE,
    }
    return LabState(**values | changes)


def op_page(**changes: Any) -> OpPage:
    values: dict[str, Any] = {
        "facts": FACTS,
        "techniques": TECHNIQUES,
        "state": op_state(0, next_step="%%triton_kernel softmax v1"),
        "engine": ENGINE,
    }
    return OpPage(**values | changes)


REFERENCE = Reference(
    query="softmax mask",
    title="Masks",
    markdown=(
        "## Masks\n\nA *mask* guards a load. See [the docs](https://triton-lang.org).\n\n"
        "- `other=` is what masked lanes read\n- **never** leave it out before a max\n\n"
        "| op | other |\n| --- | ---: |\n| max | `-inf` |\n| sum | 0 |\n\n"
        "```python\nx = tl.load(p, mask=m, other=0.0)\n```\n"
    ),
    more=("atomics", "autotune"),
)
TEMPLATE = Template(pattern="reduction", op="softmax", version="v1", source=SOURCE)
EXPORT = Export(
    op="softmax",
    workspace="work",
    markdown="logs/softmax_log.md",
    notebook="logs/softmax_log.ipynb",
    html="logs/softmax_log.html",
    jsonl="logs/softmax_log.jsonl",
)


PLAN = Plan(
    op="softmax",
    plan="quick",
    seed=83114,
    dtypes=("float32",),
    cases=(
        Case(shape=(256, 256), dtype="float32", size="small", seed=1),
        Case(shape=(4096, 4096), dtype="float32", size="large", seed=1),
    ),
    not_run=(
        CaseResult(
            case=Case(shape=(4096, 4096), dtype="float32", size="large", seed=1),
            status=CaseStatus.NOT_RUN,
            reason="takes about 4 s a launch here",
        ),
    ),
    device="CPU (interpreter)",
)
SUMMARY = Summary(path="docs/summarization.md", markdown="# Where this work stands", max_chars=600)


def best(**changes: Any) -> Best:
    values: dict[str, Any] = {
        "source": source("v2_tiling"),
        "final_us": 12.97,
        "speedup": 1.63,
        "geomean_speedup": 1.44,
        "reason": "smallest final of 2 versions in one benchmark; faster than v1 at large",
    }
    return Best(**values | changes)


def report(**changes: Any) -> Report:
    """softmax is through, gelu waits for its second version, whose first failed."""
    setback = Setback(
        op="gelu", version="v1_baseline", status=Status.FAILED, attempts_failed=3, exhausted=True,
        why="7 of 43 cases",
    )  # fmt: skip
    done = OpResult(
        state=op_state(), done=True, best="v2_tiling", final_us=12.97, torch_us=21.1, speedup=1.63
    )
    waiting = OpResult(
        state=op_state(1, op="gelu"), paused="v2: not written yet", setbacks=(setback,)
    )
    return Report(**{"ops": (done, waiting), "paused_at": "gelu v2"} | changes)


def difference(**changes: Any) -> Difference:
    """v1 as it was mended, and v2, both right, timed together."""
    sides = {
        name: Side(source=source(name, code=code), validation=validation(name, sha256=sha256(code)))
        for name, code in list(SOURCES.items())[:2]
    }
    values = {"op": "softmax", "before": sides["v1_baseline"], "after": sides["v2_tiling"]}
    return Difference(**values | {"benchmark": _measured(2)} | changes)


def every_value() -> dict[str, Any]:
    """One of each value that has a view, and the ones that ended badly, by a name for the test."""
    return {
        "written": written(),
        "written_refused": written(
            compilation=compilation(status=Status.COMPILE_ERROR, error=compile_error(), kernels=())
        ),
        "compilation": compilation(),
        "compilation_refused": compilation(
            status=Status.COMPILE_ERROR, error=compile_error(), kernels=()
        ),
        "validation": validation(),
        "validation_wrong": wrong_validation(),
        "validation_interpreter": interpreter_validation(),
        "validation_timeout": timeout_validation(),
        "validation_compile_error": validation(
            status=Status.COMPILE_ERROR, cases=(), error=compile_error(), environment=None
        ),
        "validations": Validations(validations=(wrong_validation(), validation())),
        "benchmark": benchmark(2),
        "benchmark_four": benchmark(4),
        "benchmark_interpreter": interpreter_benchmark(),
        "sweep": sweep(),
        "sweep_compiled": compiled_sweep(),
        "plot": Plot(op="softmax", name="times", benchmark=benchmark(2), path="softmax.png"),
        "run": run_result(),
        "op_state": op_state(),
        "plan": PLAN,
        "report": report(),
        "summary": SUMMARY,
        "difference": difference(),
        "selftest": SelfTest(
            status=Status.FAILED,
            checks=(
                SelfCheck(
                    what="a kernel against itself is the same",
                    passed=True,
                    said="same: 1.000 (0.997 to 1.003), 10 rounds",
                ),
                SelfCheck(
                    what="a host that is late is not in a time",
                    passed=False,
                    said="it was timed like any other",
                ),
            ),
            environment=GPU,
            duration_s=2.1,
        ),
        "selftest_no_gpu": SelfTest(
            status=Status.NO_GPU,
            message="the self-test times kernels of known length on a GPU",
        ),
        "diagnosis": Diagnosis(
            findings=(
                Finding(what="GPU", state="good", says="NVIDIA H200"),
                Finding(what="driver", state="bad", says="too old", mend="install a newer one"),
            )
        ),
        "lab_state": lab_state(),
        "op_page": op_page(),
        "reference": REFERENCE,
        "template": TEMPLATE,
        "best": best(),
        "export": EXPORT,
    }


# ------------------------------------------------------------------------------------- logs

BROKEN = SOURCE.replace(', other=-float("inf")', "")
SOURCES = {
    "v1_baseline": SOURCE,
    "v2_tiling": SOURCE.replace("triton.next_power_of_2(x.shape[1])", "1024").replace(
        "BLOCK_SIZE=block", "BLOCK_SIZE=1024"
    ),
    "v3_coalesced": SOURCE.replace("row = tl", "row = 0 + tl"),
}


def log_input(n_versions: int = 2, **changes: Any) -> LogInput:
    """A log: v1 needed two attempts, all versions are right, v2 is the one to ship."""
    names = list(SOURCES)[:n_versions]
    measured = _measured(n_versions)
    versions = tuple(_version_log(name, measured) for name in names)
    values: dict[str, Any] = {
        "facts": FACTS,
        "techniques": TECHNIQUES,
        "state": op_state(n_versions),
        "versions": versions,
        "best": best(source=source("v2_tiling", code=SOURCES["v2_tiling"])),
        "environment": GPU,
        "export_command": "%triton_log softmax",
    }
    return LogInput(**values | changes)


def _measured(n_versions: int) -> Benchmark:
    shas = tuple(sha256(code) for code in list(SOURCES.values())[:n_versions])
    return benchmark(n_versions, sha256s=shas)


def _version_log(name: str, measured: Benchmark) -> VersionLog:
    code = SOURCES[name]
    right = validation(name, sha256=sha256(code), compilation=compilation(name))
    if name != "v1_baseline":
        return VersionLog(name, (source(name, code=code),), (right,), (), measured, "Tiling")
    wrong = wrong_validation(sha256=sha256(BROKEN))
    attempts = (source(name, 1, BROKEN), source(name, 2, code))
    return VersionLog(name, attempts, (wrong, right), (), measured, "no optimisation")
