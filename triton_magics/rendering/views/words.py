"""Texts that several views share: verdicts, next steps, static figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triton_magics.model import (
    CaseStatus,
    Compilation,
    KernelResources,
    KernelSource,
    Status,
    ValidationRequest,
    short,
)
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Code, Details, Document, Line, LineStatus, Table, code
from triton_magics.rendering.numbers import MISSING, bytes_text, list_text, percent_text

Verdict = tuple[LineStatus, str]

VERDICTS: dict[Status, Verdict] = {
    Status.PASSED: ("good", "RIGHT"),
    Status.FAILED: ("bad", "WRONG"),
    Status.REJECTED: ("bad", "REFUSED"),
    Status.COMPILE_ERROR: ("bad", "DOES NOT COMPILE"),
    Status.RUNTIME_ERROR: ("bad", "RUNTIME ERROR"),
    Status.TIMEOUT: ("bad", "TIMEOUT"),
    Status.CRASHED: ("bad", "CRASHED"),
    Status.OUT_OF_MEMORY: ("bad", "OUT OF MEMORY"),
    Status.NO_GPU: ("warn", "NO GPU"),
    Status.UNAVAILABLE: ("warn", "UNAVAILABLE"),
    Status.INTERRUPTED: ("warn", "INTERRUPTED"),
}

# The text of a result without a message.
EXPLANATIONS: dict[Status, str] = {
    Status.PASSED: "",
    Status.FAILED: "at least one case is wrong",
    Status.REJECTED: "it rejects every input",
    Status.COMPILE_ERROR: "it does not compile",
    Status.RUNTIME_ERROR: "it raised an error",
    Status.TIMEOUT: "it did not finish before the deadline",
    Status.CRASHED: "its process died",
    Status.OUT_OF_MEMORY: "not enough memory",
    Status.NO_GPU: "this machine has no GPU",
    Status.UNAVAILABLE: "a tool that it needs can't be used here",
    Status.INTERRUPTED: "interrupted; the results so far are saved",
}

# The next step for a status that is not a fault of the kernel's code.
REMEDIES: dict[Status, str] = {
    Status.TIMEOUT: "look for an endless loop or a grid that is far too large, or allow more time "
    "with `--timeout`",
    Status.CRASHED: "look for a call that ends the process or writes outside its memory, then "
    "write it again",
    Status.OUT_OF_MEMORY: "use a smaller size, or allocate less in the wrapper",
    Status.NO_GPU: "run it on a machine with a GPU; the setting `device = 'interpreter'` checks "
    "the numbers on the CPU",
    Status.UNAVAILABLE: "look for the tool in the doctor's report",
    Status.INTERRUPTED: "run it again",
}
FIRST_STEP = NextStep("op", {"op": "softmax"})
FIX = "fix the code and write it again"

CASE_WORDS: dict[CaseStatus, str] = {
    CaseStatus.PASSED: "right",
    CaseStatus.WRONG_VALUES: "wrong values",
    CaseStatus.WRONG_SHAPE: "wrong shape",
    CaseStatus.WRONG_DTYPE: "wrong dtype",
    CaseStatus.WRONG_TYPE: "not a tensor like that of the reference",
    CaseStatus.WRONG_DEVICE: "output on the wrong device",
    CaseStatus.MUTATED_INPUT: "changed its input",
    CaseStatus.ALIASED: "output shares memory",
    CaseStatus.OUT_OF_BOUNDS: "accessed memory outside its tensors",
    CaseStatus.RACE: "programs race for memory",
    CaseStatus.STALE: "returned an old result for new input",
    CaseStatus.NOT_TRITON: "its kernels did not write the output",
    CaseStatus.UNFINISHED_WORK: "returned before its work was done",
    CaseStatus.SIDE_EFFECT: "left a setting changed",
    CaseStatus.TAMPERED: "replaced functions of others",
    CaseStatus.REJECTED: "refused",
    CaseStatus.COMPILE_ERROR: "does not compile",
    CaseStatus.RUNTIME_ERROR: "raised an error",
    CaseStatus.TIMEOUT: "it did not finish before the deadline",
    CaseStatus.CRASHED: "its process died",
    CaseStatus.OUT_OF_MEMORY: "out of memory",
    CaseStatus.INTERRUPTED: "interrupted",
    CaseStatus.NOT_RUN: "not run",
}

INTERPRETER_LIMIT = (
    "the interpreter can't show faults of alignment or precision, or races within a program: a GPU "
    "does"
)


def subject(op: str, version: str) -> str:
    """Return `softmax v2`."""
    return f"{op} {short(version)}"


def unvalidated_text(compilation: Status | None) -> str:
    """Return `✗ does not compile` for a version that failed to compile, else `not validated`."""
    if compilation is not Status.COMPILE_ERROR:
        return "not validated"
    status, word = VERDICTS[compilation]
    return f"{Line('', status).sign} {word.lower()}"


def next_line(text: str) -> Line:
    """Return the last line of a view, with the next step."""
    return Line(f"next: {text}", is_next=True)


def request_arguments(request: ValidationRequest) -> dict[str, object]:
    """Return the requested arguments beside plan and seed."""
    tolerances = {"rtol": request.rtol, "atol": request.atol}
    return {
        **({"dtypes": request.dtypes} if request.dtypes else {}),
        **({"shapes": request.shapes} if request.shapes else {}),
        **({"only": request.only} if request.only else {}),
        **({"inputs": request.inputs} if request.inputs else {}),
        **{name: f"{value:g}" for name, value in tolerances.items() if value is not None},
    }


def on_version(verb: str, op: str, version: str, **more: object) -> NextStep:
    """Return the step for one version: `validate softmax v2`."""
    return NextStep(verb, {"op": op, "version": short(version), **more})


def output_details(output: str) -> Document:
    """Return the output of the kernel's process, folded."""
    return (Details("printed output", (Code(output, "text"),)),) if output.strip() else ()


def join_parts(parts: Iterable[str | None]) -> str:
    """Join the parts that are not empty with dots."""
    return " · ".join(part for part in parts if part)


def resources_text(kernel: KernelResources) -> str:
    """Return `32 registers, no spills, occupancy 100 %`; shared memory where it is the limit."""
    spills = None if kernel.spill_bytes is None else _spills(kernel.spill_bytes)
    is_limit = "shared" in (kernel.limiter or "")
    parts = (
        None if kernel.registers is None else f"{kernel.registers} registers",
        spills,
        f"{bytes_text(kernel.shared_bytes or 0)} shared" if is_limit else None,
        _occupancy(kernel),
    )
    return ", ".join(part for part in parts if part)


def _spills(n_bytes: int) -> str:
    return f"{n_bytes} bytes spilled" if n_bytes else "no spills"


def _occupancy(kernel: KernelResources) -> str | None:
    if kernel.occupancy_pct is None:
        return None
    limited = f" (limit: {kernel.limiter})" if kernel.limiter and kernel.occupancy_pct < 100 else ""
    return f"occupancy {percent_text(kernel.occupancy_pct)}{limited}"


def compiled_text(compilation: Compilation) -> str:
    """Return `sm_90: 32 registers, no spills`, of the kernel with the most registers."""
    kernels = compilation.kernels
    if not kernels:
        return compilation.target
    heaviest = max(kernels, key=lambda k: (k.spill_bytes or 0, k.registers or 0))
    names = {k.name for k in kernels}
    which = f"{heaviest.name}, " if len(names) > 1 else ""
    return f"{compilation.target}: {which}{resources_text(heaviest)}".removesuffix(": ")


def resources_table(compilation: Compilation) -> Table:
    """Return every kernel's static figures at every compiled size."""
    rows = tuple(_resources_row(k) for k in compilation.kernels)
    header = (
        "kernel", "size", "grid", "warps", "stages", "registers", "spilled", "shared", "occupancy",
        "limit", "waves",
    )  # fmt: skip
    sms = next((k.sms for k in compilation.kernels if k.sms), None)
    how = f", waves on {sms} SMs" if sms else ""
    return Table(f"compiled for {compilation.target}{how}", header, rows)


def _resources_row(k: KernelResources) -> tuple[str, ...]:
    grid = "x".join(str(n) for n in k.grid) if k.grid else MISSING
    occupancy = MISSING if k.occupancy_pct is None else percent_text(k.occupancy_pct)
    spilled, shared = (MISSING if n is None else bytes_text(n) for n in _memory(k))
    return (
        k.name, k.size or MISSING, grid, str(k.num_warps), _or_missing(k.num_stages),
        _or_missing(k.registers), spilled, shared, occupancy, k.limiter or MISSING,
        MISSING if k.waves is None else f"{k.waves:.2f}",
    )  # fmt: skip


def static_table(compilations: Sequence[Compilation]) -> Document:
    """Return a row for each version's kernels at the largest size that was compiled."""
    pairs = [(each, k) for each in compilations for k in each.kernels]
    rows = tuple(_static_row(c, k) for c, k in pairs if k.size == c.kernels[-1].size)
    if not rows:
        return ()
    size = compilations[0].kernels[-1].size if compilations[0].kernels else None
    at = f"{size}, " if size else ""
    caption = f"{at}{resources_table(compilations[0]).caption}"
    header = ("version", "registers", "spilled", "shared", "occupancy", "limit", "waves")
    return (Table(caption, header, rows),)


def _static_row(compilation: Compilation, kernel: KernelResources) -> tuple[str, ...]:
    names = {k.name for k in compilation.kernels}
    label = short(compilation.version) + (f" {kernel.name}" if len(names) > 1 else "")
    return (label, *_resources_row(kernel)[5:])


def instructions_table(compilation: Compilation) -> Document:
    """Return the widths of each kernel's memory accesses, and its tensor-core instructions."""
    disassembled = [k for k in compilation.kernels if k.loads is not None]
    if not disassembled:
        return ()
    header = ("kernel", "size", "loads", "stores", "bulk copies", "tensor cores")
    rows = tuple(_instructions_row(k) for k in disassembled)
    caption = "accesses to global memory in the code, bits x count; tensor-core instructions"
    return (Table(caption, header, rows, "llllrl"),)


def _instructions_row(k: KernelResources) -> tuple[str, ...]:
    tensor = ", ".join(f"{name} x {n}" for name, n in (k.tensor_cores or {}).items())
    loads, stores = (_widths(each) for each in (k.loads, k.stores))
    return k.name, k.size or MISSING, loads, stores, str(k.bulk_copies or 0), tensor or "none"


def _widths(counts: dict[int, int] | None) -> str:
    """Return `128 x 4, 32 x 1`."""
    return ", ".join(f"{bits} x {n}" for bits, n in (counts or {}).items()) or "none"


def _memory(k: KernelResources) -> tuple[int | None, int | None]:
    return k.spill_bytes, k.shared_bytes


def _or_missing(value: int | None) -> str:
    return MISSING if value is None else str(value)


def entry_text(source: KernelSource) -> str:
    """Return `triton_softmax(x)`."""
    signature = source.signature
    return code(signature if signature.startswith(source.entry) else source.entry + signature)


def versions_text(versions: Sequence[str]) -> str:
    """Return `v1, v2, v3`."""
    return list_text([short(v) for v in versions], most=12)
