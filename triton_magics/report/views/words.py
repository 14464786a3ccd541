"""The words that several views share: verdicts, counts of cases, static figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triton_magics.model import (
    CaseStatus,
    Compilation,
    KernelResources,
    KernelSource,
    Status,
    short,
)
from triton_magics.report.blocks import Code, Details, Document, Line, LineStatus, Table, code
from triton_magics.report.numbers import MISSING, bytes_text, listed, percent_text

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
    Status.NO_TRITON: ("warn", "NO TRITON"),
    Status.GPU_LOST: ("warn", "GPU LOST"),
    Status.INTERRUPTED: ("warn", "INTERRUPTED"),
}

# What is said where a result has no message of its own.
EXPLANATIONS: dict[Status, str] = {
    Status.PASSED: "",
    Status.FAILED: "at least one case is wrong",
    Status.REJECTED: "it refuses every input that it was given",
    Status.COMPILE_ERROR: "the compiler refuses it",
    Status.RUNTIME_ERROR: "it raised an error",
    Status.TIMEOUT: "no answer before the deadline",
    Status.CRASHED: "its process died",
    Status.OUT_OF_MEMORY: "there was not enough memory",
    Status.NO_GPU: "there is no GPU here",
    Status.NO_TRITON: "triton can't be imported here",
    Status.GPU_LOST: "the GPU stopped answering",
    Status.INTERRUPTED: "interrupted; what was known by then is kept",
}

# What a person can do about a status that is not about the kernel's own code.
REMEDIES: dict[Status, str] = {
    Status.TIMEOUT: "look for a loop that can't end or a grid that is far too large, or give it "
    "longer with `--timeout`",
    Status.CRASHED: "look at its last lines of output, then mend the cell and run it again",
    Status.OUT_OF_MEMORY: "take a smaller size, or allocate less in the wrapper",
    Status.NO_GPU: "run it where there is a GPU; `%config TritonMagics.device = 'interpreter'` "
    "checks the numbers on the CPU",
    Status.NO_TRITON: "install `triton-magics[kernels]`",
    Status.GPU_LOST: "look at `nvidia-smi`, then run it again",
    Status.INTERRUPTED: "run it again",
}

CASE_WORDS: dict[CaseStatus, str] = {
    CaseStatus.PASSED: "right",
    CaseStatus.WRONG_VALUES: "wrong values",
    CaseStatus.WRONG_SHAPE: "wrong shape",
    CaseStatus.WRONG_DTYPE: "wrong dtype",
    CaseStatus.WRONG_TYPE: "not a tensor of the kind the reference gives",
    CaseStatus.WRONG_DEVICE: "output on the wrong device",
    CaseStatus.MUTATED_INPUT: "changed its input",
    CaseStatus.ALIASED: "output shares memory with an input",
    CaseStatus.OUT_OF_BOUNDS: "touched memory outside its tensors",
    CaseStatus.STALE: "gave an old answer for new contents",
    CaseStatus.NOT_TRITON: "its Triton kernels did not make the output",
    CaseStatus.UNFINISHED_WORK: "returned before its work was done",
    CaseStatus.REJECTED: "refused",
    CaseStatus.COMPILE_ERROR: "does not compile",
    CaseStatus.RUNTIME_ERROR: "raised an error",
    CaseStatus.TIMEOUT: "no answer before the deadline",
    CaseStatus.CRASHED: "its process died",
    CaseStatus.OUT_OF_MEMORY: "out of memory",
    CaseStatus.INTERRUPTED: "interrupted",
    CaseStatus.NOT_RUN: "not run",
}

INTERPRETER_LIMIT = (
    "checked by the interpreter on the CPU: a GPU may still show races, alignment and precision "
    "faults that an interpreter can't"
)


def subject(op: str, version: str) -> str:
    """`softmax v2`."""
    return f"{op} {short(version)}"


def following(text: str) -> Line:
    """What to do next: the last line of a view."""
    return Line(f"next: {text}")


def step_text(step: str) -> str:
    """A step to take, marked as code where it is one magic and nothing else."""
    return code(step) if step.startswith("%") and "`" not in step else step


def badge_lines(badges: Sequence[str]) -> Document:
    """One line with the reservations that a result carries, if it carries any."""
    return (Line("badges: " + " · ".join(badges), "warn"),) if badges else ()


def badge_text(badges: Sequence[str]) -> str:
    """The same for the end of a caption, which says `interpreter` by itself: ` [quick plan]`."""
    shown = [badge for badge in badges if badge != "interpreter"]
    return f" [{', '.join(shown)}]" if shown else ""


def printed(output: str) -> Document:
    """What the kernel's process printed, folded away."""
    return (Details("what it printed", (Code(output, "text"),)),) if output.strip() else ()


def joined(parts: Iterable[str | None]) -> str:
    """The parts that there are, with a dot between them."""
    return " · ".join(part for part in parts if part)


def resources_text(kernel: KernelResources) -> str:
    """`32 registers, no spills, 1.5 KiB shared, occupancy 100 %`."""
    spills = None if kernel.spill_bytes is None else _spills(kernel.spill_bytes)
    parts = (
        None if kernel.registers is None else f"{kernel.registers} registers",
        spills,
        f"{bytes_text(kernel.shared_bytes)} shared" if kernel.shared_bytes else None,
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
    """`sm_90: 32 registers, no spills`; of several kernels, the one with the most registers."""
    kernels = compilation.kernels
    if not kernels:
        return compilation.target
    heaviest = max(kernels, key=lambda k: (k.spill_bytes or 0, k.registers or 0))
    names = {k.name for k in kernels}
    which = f"{heaviest.name}, " if len(names) > 1 else ""
    return f"{compilation.target}: {which}{resources_text(heaviest)}".removesuffix(": ")


def resources_table(compilation: Compilation) -> Table:
    """Every kernel's static figures at every size that was compiled."""
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


def instructions_table(compilation: Compilation) -> Document:
    """How wide each kernel's accesses to global memory are, and its tensor-core instructions."""
    looked_at = [k for k in compilation.kernels if k.loads is not None]
    if not looked_at:
        return ()
    header = ("kernel", "size", "loads", "stores", "bulk copies", "tensor cores")
    rows = tuple(_instructions_row(k) for k in looked_at)
    caption = "accesses to global memory in the code, bits x count; tensor-core instructions"
    return (Table(caption, header, rows, "llllrl"),)


def _instructions_row(k: KernelResources) -> tuple[str, ...]:
    tensor = ", ".join(f"{name} x {n}" for name, n in (k.tensor_cores or {}).items())
    loads, stores = (_widths(each) for each in (k.loads, k.stores))
    return k.name, k.size or MISSING, loads, stores, str(k.bulk_copies or 0), tensor or "none"


def _widths(counts: dict[int, int] | None) -> str:
    """`128 x 4, 32 x 1`."""
    return ", ".join(f"{bits} x {n}" for bits, n in (counts or {}).items()) or "none"


def _memory(k: KernelResources) -> tuple[int | None, int | None]:
    return k.spill_bytes, k.shared_bytes


def _or_missing(value: int | None) -> str:
    return MISSING if value is None else str(value)


def entry_text(source: KernelSource) -> str:
    """`triton_softmax(x)`."""
    signature = source.signature
    return code(signature if signature.startswith(source.entry) else source.entry + signature)


def versions_text(versions: Sequence[str]) -> str:
    """`v1, v2, v3`."""
    return listed([short(v) for v in versions], most=12)
