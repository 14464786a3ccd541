"""The seconds of a profile under Nsight Compute, step by step, and profiles of eight kernels.

It needs a GPU whose counters can be read. A row is printed as soon as it is measured.

    python tests/benchmarks/profile_time.py [--json PATH]
    python tests/benchmarks/profile_time.py --profiles-only     without the steps: about 100 s
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from common import report

from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.nsight import find_ncu
from triton_magics.execution.protocol import Progress
from triton_magics.harness.profiling.ncu_job import raw_names
from triton_magics.harness.profiling.ncu_report_file import read_report
from triton_magics.harness.profiling.replayed_call import ReplayRequest
from triton_magics.lab import Lab
from triton_magics.model import Case, Profile

HERE = Path(__file__).parent
SOFTMAX = HERE.parent / "faults" / "kernels" / "softmax_right.py"
MATMUL = HERE.parent / "faults" / "kernels" / "matmul_right.py"
RELU = (HERE / "kernels" / "profiled_relu.py").read_text()
CONFLICTS = (HERE / "kernels" / "profiled_conflicts.cu").read_text()
SECTIONS = {
    "none": ["--set=none"],
    "source": ["--set=none", "--section=SourceCounters", "--import-source=yes"],
    "basic": ["--set=basic"],
    "basic, source": ["--set=basic", "--section=SourceCounters", "--import-source=yes"],
    "detailed": ["--set=detailed", "--import-source=yes"],
    "full": ["--set=full", "--import-source=yes"],
}
COMMON = (
    "--profile-from-start=off", "--target-processes=application-only", "--replay-mode=kernel",
    "--cache-control=all", "--clock-control=none",
)  # fmt: skip
LONG = ("profile_json", "first_stages_s", "second_stages_s")  # of a row, printed apart
# The steps of triton_magics.harness.one_call, each with the time at its end. A spare process has
# done those up to `preload` before its request comes.
CHILD = """
import time; marks = [("python", time.time())]
def mark(name): marks.append((name, time.time()))
import json, sys
from pathlib import Path
import torch; mark("import torch")
import triton; mark("import triton")
import triton_magics.harness.one_call
from triton_magics import languages
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.load import compile_cache, load_op, load_version
from triton_magics.harness.process.device import GPU
from triton_magics.harness.profiling import activity
from triton_magics.harness.profiling.replayed_call import ReplayRequest
mark("import triton_magics")
languages.runtime().preload(); mark("preload")
torch.cuda.init(); torch.empty(1, device="cuda"); torch.cuda.synchronize(); mark("context")
request = ReplayRequest.model_validate_json(Path(sys.argv[1]).read_bytes())
arguments = make_pristine(load_op(request.op), request.case, GPU)
torch.cuda.synchronize(); mark("inputs")
version = load_version(request.version); mark("load")
with torch.no_grad():
    with compile_cache((), language=request.version.language):
        mark("seed cache")
        version.call(*arguments); torch.cuda.synchronize(); mark("first call")
    if request.then == "record":
        flush = activity.make_l2_flush(torch.cuda.get_device_properties(0).L2_cache_size)
        mark("L2 flush")
        for i in range(activity.CALLS + 1):
            trace = activity._trace(lambda: version.call(*arguments), flush); mark(f"trace {i}")
        activity.read_trace(trace, 90, 132); mark("read trace")
    else:
        torch.cuda.profiler.start()
        version.call(*arguments); torch.cuda.synchronize(); mark("profiled call")
        torch.cuda.profiler.stop(); mark("stop")
Path(sys.argv[1] + ".marks").write_text(json.dumps(marks))
"""


def replay_request(then: Literal["profile", "record"]) -> ReplayRequest:
    """Return a request for one call of a softmax of 4096 x 4096."""
    source = SOFTMAX.read_text()
    version = VersionRef(
        version="v1_timed", attempt=1, source=source, entry="triton_softmax", sha256=hashlib.sha256(source.encode()).hexdigest(),
        header_lines=0, cell_offset=0, shown_path="v1.py",
    )  # fmt: skip
    case = Case(shape=(4096, 4096), dtype="float32", size="large", seed=1)
    return ReplayRequest(op=OpRef(name="softmax"), version=version, case=case, then=then)


def seconds_of(command: list[str], folder: Path) -> tuple[float, str]:
    """Run a command; return its seconds and its output."""
    start = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join((str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")))},
    )  # fmt: skip
    return time.perf_counter() - start, done.stdout + done.stderr


def child_row(
    name: str, tool: list[str], folder: Path, then: Literal["profile", "record"] = "profile"
) -> dict[str, Any]:
    """Run the child under a tool; return the seconds of each of its steps."""
    script, request = folder / "child.py", folder / "request.json"
    script.write_text(CHILD)
    request.write_text(replay_request(then).model_dump_json())
    marks_file = Path(f"{request}.marks")
    marks_file.unlink(missing_ok=True)
    start = time.time()
    whole, output = seconds_of([*tool, sys.executable, str(script), str(request)], folder)
    if not marks_file.is_file():
        return {"run": name, "whole_s": whole, "steps": {}, "output": output[-600:]}
    marks = json.loads(marks_file.read_text())
    ends = [start, *(at for _, at in marks), start + whole]
    names = [*(step for step, _ in marks), "exit"]
    steps = {n: round(b - a, 3) for n, a, b in zip(names, ends, ends[1:], strict=False)}
    passes = [line for line in output.splitlines() if "passes" in line]
    return {"run": name, "whole_s": whole, "steps": steps, "output": " ".join(passes)[-200:]}


def breakdown(program: str) -> list[dict[str, Any]]:
    """Return the seconds of the steps, with and without ncu, for several sets of sections."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows += [child_row(label, [], folder) for label in ("no ncu, first", "no ncu")]
        rows.append(child_row("CUPTI", [], folder, "record"))
        metrics = f"--metrics={','.join(raw_names())}"
        for label, sections in SECTIONS.items():
            path = folder / f"{label.replace(', ', '_')}.ncu-rep"
            tool = [program, *COMMON, *sections, metrics, f"--export={path}"]
            rows.append(child_row(f"ncu {label}", tool, folder))
            if path.is_file():
                rows[-1]["report_kb"] = path.stat().st_size / 1e3
        path = folder / "detailed.ncu-rep"
        read = [program, f"--import={path}", "--csv", "--page=raw", "--print-units=base"]
        for label, command in (
            ("read as CSV", read),
            ("ncu --version", [program, "--version"]),
            ("python -c pass", [sys.executable, "-c", "pass"]),
            ("import torch", [sys.executable, "-c", "import torch"]),
            ("import one_call", [sys.executable, "-c", "import triton_magics.harness.one_call"]),
        ):
            seconds_of(command, folder)
            whole, output = seconds_of(command, folder)
            rows.append({"run": label, "whole_s": whole, "steps": {}, "output": output[:100]})
        rows += [reading_row(label, path, program) for label in ("read, first", "read, second")]
    return rows


def reading_row(name: str, path: Path, program: str) -> dict[str, Any]:
    """Read a report by NVIDIA's module; the first time imports it."""
    start = time.perf_counter()
    kernels = read_report(path, program, replay_request("profile").version)
    whole = time.perf_counter() - start
    return {"run": name, "whole_s": whole, "steps": {}, "output": f"{len(kernels)} kernels"}


def gpu_processes(lab: Lab) -> dict[str, Any]:
    """Return the memory that the process of the next profile holds on the GPU, once it waits."""
    time.sleep(8)
    command = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    waiting = [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"harness.one_call" in path.read_bytes() and b"--export" not in path.read_bytes()
    ]
    workers = [f"{worker.mode} {worker.role} {worker.pid}" for worker in lab.engine_state().workers]
    return {"waiting": waiting, "workers": workers, "on the GPU": listed.splitlines()}


class StageClock:
    """Times the stages of one verb, from the progress that it reports."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._marks: list[tuple[str, float]] = []

    def __enter__(self) -> StageClock:
        self._marks = [("begin", time.perf_counter())]
        self._lab.on_progress = self._note
        return self

    def _note(self, progress: Progress) -> None:
        if progress.stage and progress.stage != self._marks[-1][0]:
            self._marks.append((progress.stage, time.perf_counter()))

    def __exit__(self, *_: object) -> None:
        self._marks.append(("end", time.perf_counter()))
        self._lab.on_progress = None

    @property
    def whole_s(self) -> float:
        """The seconds of the block."""
        return self._marks[-1][1] - self._marks[0][1]

    @property
    def stages_s(self) -> dict[str, float]:
        """The seconds of each stage; `begin` is the time before the first."""
        seconds: dict[str, float] = {}
        for (name, start), (_, end) in pairwise(self._marks):
            seconds[name] = round(seconds.get(name, 0.0) + end - start, 3)
        return seconds


def profile_row(lab: Lab, name: str, op: str, version: str, **options: Any) -> dict[str, Any]:
    """Profile a version by its verb, twice; return the seconds and what the profile says."""
    seconds, stages = [], []
    for _ in range(2):
        with StageClock(lab) as clock:
            profile = lab.profile(op, version, **options)
        seconds.append(clock.whole_s)
        stages.append(clock.stages_s)
    assert isinstance(profile, Profile)
    kernel, limit = profile.main_kernel, profile.limit
    line = kernel.lines[0] if kernel and kernel.lines else None
    moved = (kernel.dram_read_bytes or 0) + (kernel.dram_write_bytes or 0) if kernel else 0
    return {
        "profile": name,
        "first_s": seconds[0],
        "second_s": seconds[1],
        "first_stages_s": stages[0],
        "second_stages_s": stages[1],
        "status": profile.status.value,
        "message": profile.message,
        "limit": f"{limit.kind}: {limit.field} {limit.value:.4g}" if limit else None,
        "rung": profile.rung,
        "roofline_pct": profile.roofline.share_pct if profile.roofline else None,
        "us": profile.duration_us,
        "dram_gbps": moved / profile.duration_us / 1e3 if profile.duration_us else None,
        "tensor_pct": kernel.tensor_pct if kernel else None,
        "line": line.code.strip() if line else kernel.lines_missing if kernel else None,
        "profile_json": profile.evolve(against=None).model_dump(mode="json"),
    }


def profiles() -> list[dict[str, Any]]:
    """Return a row for each of eight kernels."""
    versions = {
        "softmax": ("softmax", "v1", SOFTMAX.read_text(), {"size": "large"}),
        "copy": ("relu", "v1", f"{RELU}\nSTRIDE = 1\n", {"size": "8192x8192"}),
        "strided": ("relu", "v2", f"{RELU}\nSTRIDE = 32\n", {"size": "8192x8192"}),
        "spills": ("relu", "v3", f"{RELU}\nSPILLS = True\n", {"size": "4096x4096"}),
        "few warps": ("relu", "v4", f"{RELU}\nFEW = True\n", {"size": "4096x4096"}),
        "conflicts": ("relu", "v5", CONFLICTS, {"size": "4096x4096"}),
        "bf16": ("matmul", "v1", MATMUL.read_text(), {"size": "medium", "dtype": "bfloat16"}),
        "fp32 ieee": ("matmul", "v1", MATMUL.read_text(), {"size": "medium", "dtype": "float32"}),
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder, Lab(Path(folder)) as lab:
        for name, (op, version, source, options) in versions.items():
            kind = {"type": "cuda"} if name == "conflicts" else {}
            try:
                lab.write(op, version, source, compile=False, **kind)
                rows.append(show(profile_row(lab, name, op, version, **options)))
                if name in ("softmax", "bf16"):
                    label = f"{name}, CUPTI"
                    row = profile_row(lab, label, op, version, how="activity", **options)
                    rows.append(show(row))
            except Exception as error:  # noqa: BLE001 (the other kernels are profiled all the same)
                status = f"{type(error).__name__}: {error}"[:500]
                rows.append(show({"profile": name, "status": status}))
        rows.append(show({"profile": "processes afterwards", **gpu_processes(lab)}))
    return rows


def show(row: dict[str, Any]) -> dict[str, Any]:
    """Print a row of `profiles`, and return it."""
    print({key: value for key, value in row.items() if key not in LONG}, flush=True)
    for label in ("first_stages_s", "second_stages_s"):
        print(
            f"    {label[:-9]:7}", *(f"{k}: {v:.2f} s |" for k, v in row.get(label, {}).items()),
            flush=True,
        )  # fmt: skip
    return row


def main() -> None:
    """Measure, and print a table."""
    program = find_ncu("", os.environ.get("PATH"))
    if program is None:
        sys.exit("Nsight Compute (`ncu`) is not installed here")
    steps = [] if "--profiles-only" in sys.argv else breakdown(program)
    for row in steps:
        print(
            f"{row['run']:16} {row['whole_s']:6.2f} s  {row['steps']} {row['output']}", flush=True
        )
    rows = profiles()
    shown = [{"run": row["run"], "whole_s": row["whole_s"]} for row in steps] or [
        {"run": row["profile"], "whole_s": row["second_s"]} for row in rows if "second_s" in row
    ]
    report("seconds of a profile", shown, breakdown=steps, profiles=rows)


if __name__ == "__main__":
    main()
