"""Every verb: its arguments, and the one call of the Lab that they come to."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from triton_magics.errors import BadName, BadValue
from triton_magics.verbs.arguments import Argument, argument, knob, listed, shape

if TYPE_CHECKING:
    from triton_magics.lab import Lab
    from triton_magics.model import KernelSource, Reference, Setting, Value

Call = Callable[["Lab", Namespace], "Value"]


@dataclass(frozen=True)
class Verb:
    """What one can do with an op.

    Attributes:
        name: of the Lab's method, and of the command.
        magic: the magic's name, without its %.
        call: the Lab's method with these arguments; a verb that takes a cell finds it as `cell`.
        cell: whether it takes a cell (on the command line a file).
        judges: whether its value may be a failed verdict.
        help: what one gets.
        example: lines to type.
    """

    name: str
    magic: str
    arguments: tuple[Argument, ...]
    call: Call
    cell: bool
    judges: bool
    help: str
    example: str

    @property
    def word(self) -> str:
        """The magic's own word, which a command line takes too: `kernel` for `write`."""
        return self.magic.removeprefix("triton_")

    @property
    def sign(self) -> str:
        """How a line with it begins: `%triton_bench`, `%%triton_kernel`."""
        return f"{'%%' if self.cell else '%'}{self.magic}"

    @property
    def command(self) -> str:
        """The same at a command line: `triton-magics bench`, `triton-magics write`."""
        return f"triton-magics {self.name}"


VERBS: dict[str, Verb] = {}
"""Every verb by the name of its magic, in the order in which one uses them."""


def verb(
    *arguments: Argument,
    example: str,
    name: str = "",
    magic: str = "",
    cell: bool = False,
    judges: bool = False,
) -> Callable[[Call], Call]:
    """Enters a function into the table; its docstring is the verb's help."""

    def enter(call: Call) -> Call:
        word = call.__name__
        said = " ".join((call.__doc__ or "").split())
        new = Verb(
            name or word, f"triton_{magic or word}", arguments, call, cell, judges, said, example
        )
        VERBS[new.magic] = new
        return call

    return enter


OP = argument("op", names="op", help="its name or an alias: softmax, add")
VERSION = argument("version", names="version", help="v2, or a name of your own: v2_online")
NEW_VERSION = argument("version", names="version new", help=VERSION.options["help"])
SEED = argument("--seed", type=int, metavar="N", help="of the inputs; the result tells it")
TIMEOUT = argument(
    "--timeout", type=float, metavar="S", help="seconds that it may take; the settings by default"
)
DTYPE = argument(
    "--dtype", names="dtype", default="float32", metavar="DTYPE", help="of the inputs: float32"
)


@verb(
    OP,
    argument(
        "--shape", type=shape, action="append", default=[], metavar="NxM",
        help="keep a shape of your own, 8192x151936, for its plans and benchmarks; may be repeated",
    ),
    argument(
        "--no-shape", type=shape, action="append", default=[], metavar="NxM",
        help="keep this one no longer; may be repeated",
    ),
    example="%triton_op softmax --shape 8192x151936",
)  # fmt: skip
def op(lab: Lab, a: Namespace) -> Value:
    """What there is to know of an op before writing a kernel: facts, techniques, state, engine."""
    return lab.op(a.op, shapes=tuple(a.shape), no_shapes=tuple(a.no_shape))


@verb(
    OP,
    NEW_VERSION,
    argument("--entry", metavar="NAME", help="the wrapper's name; triton_OP by default"),
    argument("--technique", metavar="TEXT", help="what this version tries, for the log"),
    argument(
        "--no-compile", action="store_false", dest="compile", help="save it, compile it later"
    ),
    argument(
        "--replay",
        action="store_true",
        help="a log's cell: judged and timed further down, whatever the workflow's order",
    ),
    magic="kernel",
    cell=True,
    judges=True,
    example="""%%triton_kernel softmax v1 --technique "one row per program"
import torch
import triton
import triton.language as tl
...""",
)
def write(lab: Lab, a: Namespace) -> Value:
    """Saves the cell as a version of an op, a module in kernels/OP/, and compiles it."""
    return lab.write(
        a.op, a.version, a.cell, entry=a.entry, technique=a.technique,
        cell_offset=a.cell_offset, compile=a.compile, replay=a.replay,
    )  # fmt: skip


@verb(
    OP,
    VERSION,
    argument(
        "--size", names="size", default="small", metavar="SIZE", help="small, medium or large"
    ),
    argument("--shape", type=shape, metavar="NxM", help="in place of a size: 257x1023"),
    DTYPE,
    argument("--seed", type=int, default=0, metavar="N", help="of the inputs: 0"),
    argument(
        "--inputs", metavar="EXPR", help="in place of these: Python with torch and device in it"
    ),
    TIMEOUT,
    judges=True,
    example="%triton_run softmax v1 --inputs '(torch.eye(3, device=device),)'",
)
def run(lab: Lab, a: Namespace) -> Value:
    """Calls a version twice and shows what it gives, what it prints and how long one waits."""
    return lab.run(
        a.op, a.version, size=a.size, shape=a.shape, dtype=a.dtype, seed=a.seed,
        inputs=a.inputs, timeout=a.timeout,
    )  # fmt: skip


@verb(
    OP,
    argument(
        "version", names="version all", nargs="?",
        help="v2; or all: one after the other; not needed with --plan",
    ),
    argument(
        "--dtype", names="dtype", type=listed, action="extend", metavar="DTYPES",
        help="only these: float32,float16; by default all that the op declares",
    ),
    argument(
        "--quick", action="store_const", const="quick", default="full", dest="plan",
        help="fewer cases: enough for a benchmark, not for the end",
    ),
    argument(
        "--cases", choices=("full", "quick"), default="full", dest="plan", metavar="PLAN",
        help="full, or quick as --quick does",
    ),
    argument(
        "--plan", action="store_true", dest="only_plan",
        help="show the cases, and what this device leaves out, and run none",
    ),
    argument(
        "--shape", type=shape, action="append", default=[], metavar="NxM",
        help="only this one, to replay a case; may be repeated",
    ),
    argument("--seed", type=int, metavar="N", help="replay a plan: the seed that a result told"),
    argument("--rtol", type=float, metavar="X", help="another relative tolerance; leaves a badge"),
    argument("--atol", type=float, metavar="X", help="another absolute tolerance; leaves a badge"),
    argument(
        "--sanitize", action="store_true",
        help="a case under compute-sanitizer too: memcheck, racecheck, initcheck",
    ),
    TIMEOUT,
    judges=True,
    example="%triton_validate softmax v2 --seed 83114 --shape 257x1023",
)  # fmt: skip
def validate(lab: Lab, a: Namespace) -> Value:
    """Is it right? Against the reference in float64, on awkward shapes and hostile values."""
    dtypes = tuple(a.dtype or ()) or None
    if a.only_plan:
        return lab.plan(a.op, dtypes=dtypes, plan=a.plan, seed=a.seed, shapes=tuple(a.shape))
    if a.version is None:
        raise BadName(f"name a version: %triton_validate {a.op} v1; or add --plan for the cases")
    return lab.validate(
        a.op, a.version, dtypes=dtypes, plan=a.plan, seed=a.seed,
        rtol=a.rtol, atol=a.atol, shapes=tuple(a.shape), sanitize=a.sanitize,
        timeout=a.timeout,
    )  # fmt: skip


@verb(
    argument("op", names="op", nargs="?", help=OP.options["help"]),
    argument(
        "versions", names="version all", nargs="*", metavar="VERSION",
        help="which; by default every one that passed",
    ),
    argument(
        "--sizes", names="size", type=listed, metavar="SIZES",
        help="of small,medium,large and shapes such as 8192x151936; by default the three and the "
        "shapes that you keep for the op",
    ),
    argument(
        "--shape", type=shape, action="append", default=[], metavar="NxM",
        help="only this one, in place of the sizes: 8192x151936; may be repeated",
    ),
    argument("--runs", type=int, default=10, metavar="N", help="timed runs at each size: 10"),
    DTYPE,
    argument(
        "--against", names="against version", action="append", default=[], metavar="WHOM",
        help="compare with torch.compile, a version or module:function too; may be repeated",
    ),
    argument("--hot", action="store_true", help="leave the inputs in the L2 cache"),
    argument(
        "--timer", choices=("gated", "graph", "launch"), default="gated", metavar="CLOCK",
        help="gated: net GPU time behind a gate; graph: in a CUDA graph; launch: with Python and "
        "launch",
    ),
    argument(
        "--census", action="store_true",
        help="afterwards count kernels and streams, and Triton's share of them, by CUPTI",
    ),
    argument(
        "--selftest", action="store_true",
        help="no op: times kernels of known length and cheats, and says whether it tells them",
    ),
    argument(
        "--budget", type=float, metavar="S",
        help="seconds for rounds that settle a verdict; without a GPU, for all runs",
    ),
    SEED,
    TIMEOUT,
    judges=True,
    example="%triton_bench softmax v1 v2 --sizes medium,large --against torch.compile",
)  # fmt: skip
def bench(lab: Lab, a: Namespace) -> Value:
    """How fast? Every version and torch, in random order: means, final, speedup, verdicts."""
    from triton_magics.model import shape_text

    if a.selftest:
        if a.op is not None:
            said = f"--selftest times kernels of its own, not {a.op}: %triton_bench --selftest"
            raise BadValue(said)
        return lab.selftest(timeout=a.timeout)
    if a.op is None:
        raise BadName("name an op: %triton_bench softmax; or add --selftest")
    return lab.bench(
        a.op, *a.versions, sizes=(*(a.sizes or ()), *map(shape_text, a.shape)) or a.sizes,
        runs=a.runs, dtype=a.dtype, against=tuple(a.against), hot=a.hot, timer=a.timer,
        census=a.census, budget=a.budget, seed=a.seed, timeout=a.timeout,
    )  # fmt: skip


@verb(
    OP,
    VERSION,
    argument(
        "knobs", names="knob", type=knob, nargs="*", metavar="NAME=VALUES",
        help="what to try: BLOCK_SIZE=256,512,1024 num_warps=4,8; every combination is",
    ),
    argument(
        "--size", names="size", default="large", metavar="SIZE",
        help="at which they are timed: small, medium, large or a shape such as 8192x151936; large",
    ),
    DTYPE,
    argument("--runs", type=int, default=10, metavar="N", help="timed runs of each: 10"),
    argument("--hot", action="store_true", help="leave the inputs in the L2 cache"),
    argument("--write", action="store_true", help="make the best one a new version"),
    SEED,
    TIMEOUT,
    judges=True,
    example="%triton_sweep softmax v2 BLOCK_SIZE=256,512,1024 num_warps=4,8 --write",
)  # fmt: skip
def sweep(lab: Lab, a: Namespace) -> Value:
    """Which settings? A version at every point of a grid: compiled, checked and timed."""
    return lab.sweep(
        a.op, a.version, _grid(a.knobs), size=a.size, dtype=a.dtype, runs=a.runs, hot=a.hot,
        write=a.write, seed=a.seed, timeout=a.timeout,
    )  # fmt: skip


@verb(
    OP,
    argument(
        "version", names="version", nargs="?",
        help="the one that you choose, whatever the benchmark says",
    ),
    argument("--now", action="store_true", help="before the end, with what is known"),
    argument("--why", default="", metavar="TEXT", help="why you chose it; it is kept in the log"),
    argument("--fastest", action="store_true", help="give up a choice made by hand"),
    example="%triton_best softmax",
)  # fmt: skip
def best(lab: Lab, a: Namespace) -> Value:
    """The version to ship, with its code and the reason."""
    return lab.best(a.op, a.version, now=a.now, why=a.why, fastest=a.fastest)


@verb(
    argument("op", names="op", nargs="?", help="which; by default every one of the workspace"),
    argument(
        "--force-write", nargs="+", metavar="REASON", help="go back to writing without a verdict"
    ),
    argument("--reset", action="store_true", help="start over; the history stays"),
    example="%triton_status softmax --force-write too many registers",
)
def status(lab: Lab, a: Namespace) -> Value:
    """Where an op stands: its state, what is allowed now, its versions and what to do next."""
    reason = " ".join(a.force_write) if a.force_write else None
    return lab.status(a.op, force_write=reason, reset=a.reset)


@verb(
    argument("words", names="topic", nargs="*", metavar="WORD", help="a topic, or words to find"),
    example="%triton_ref online reduction",
)
def ref(lab: Lab, a: Namespace) -> Value:
    """A page of the guides, an op's facts, a technique; or what a search finds in them."""
    return lab.ref(*a.words)


@verb(
    argument("pattern", names="pattern", help="elementwise, reduction, matmul or fused"),
    OP,
    argument("version", names="new", help="v1, or a name of your own: v1_naive"),
    argument("--to", metavar="FILE", help="write it there too; nothing is overwritten"),
    example="%triton_template reduction softmax v1",
)
def template(lab: Lab, a: Namespace) -> Value:
    """A starting point for a version, to be edited; a notebook has it in its next cell."""
    return lab.template(a.pattern, a.op, a.version, to=a.to)


@verb(
    OP,
    VERSION,
    argument(
        "--target", names="target", metavar="GPU",
        help="compile for this one, which need not be here: sm_90",
    ),
    argument("--ptx", action="store_true", help="show the PTX"),
    argument("--sass", action="store_true", help="show the SASS, the machine's own code"),
    judges=True,
    example="%triton_inspect softmax v2 --target sm_80",
)  # fmt: skip
def inspect(lab: Lab, a: Namespace) -> Value:
    """Registers, spills, shared memory, occupancy, waves, loads, tensor cores; GPU or not."""
    return lab.inspect(a.op, a.version, target=a.target, ptx=a.ptx, sass=a.sass)


@verb(
    OP,
    argument("before", names="version", help="v1; or an attempt at it, the third: v1:3"),
    argument("after", names="version", help="v2, or v2:1"),
    example="%triton_diff softmax v1 v2",
)
def diff(lab: Lab, a: Namespace) -> Value:
    """What changed from one version, or one attempt, to another: code, verdicts and times."""
    return lab.diff(a.op, a.before, a.after)


@verb(
    OP,
    VERSION,
    argument("--attempt", type=int, metavar="N", help="its number, from 1; without: what there is"),
    example="%triton_restore softmax v2 --attempt 1",
)
def restore(lab: Lab, a: Namespace) -> Value:
    """Makes an earlier attempt at a version its newest again."""
    if a.attempt is None:
        numbers = ", ".join(str(source.attempt) for source in lab.attempts(a.op, a.version))
        raise BadValue(f"which attempt? {a.op} {a.version} has {numbers}: add --attempt N")
    return lab.restore(a.op, a.version, a.attempt)


@verb(
    argument("op", help="a name of your own: my_op"),
    cell=True,
    example="""%%triton_reference double
import torch

SIZES = {"small": (256,), "medium": (4096,), "large": (1048576,)}

def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)

def reference(x):
    return 2 * x""",
)
def reference(lab: Lab, a: Namespace) -> Value:
    """Makes the cell, with `reference` and `make_inputs`, an op of your own."""
    return lab.reference(a.op, a.cell)


@verb(
    OP,
    argument(
        "name", names="plot", nargs="?", default="speedup", metavar="PICTURE",
        help="speedup over torch; times against size; runs, each as a dot; or a sweep's heat map",
    ),
    argument("--to", metavar="FILE", help="write it there, as PNG"),
    example="%triton_plot softmax times",
)  # fmt: skip
def plot(lab: Lab, a: Namespace) -> Value:
    """Draws the newest benchmark of an op, or its newest sweep."""
    return lab.plot(a.op, a.name, to=a.to)


@verb(
    OP,
    argument(
        "--tests", action="store_true",
        help="tests/test_OP.py too: each version that passed is validated in your own CI",
    ),
    name="export",
    magic="log",
    example="%triton_log softmax --tests",
)  # fmt: skip
def export(lab: Lab, a: Namespace) -> Value:
    """Writes the op's log for review: a notebook, Markdown and HTML in logs/."""
    return lab.export(a.op, tests=a.tests)


@verb(
    argument(
        "--repair", action="store_true",
        help="mend what can be mended in the workspace; nothing is lost",
    ),
    example="%triton_doctor --repair",
)  # fmt: skip
def doctor(lab: Lab, a: Namespace) -> Value:
    """What kernels need of this machine and this folder: what is wrong, and how to mend it."""
    return lab.doctor(repair=a.repair)


@verb(
    argument("ops", names="op", nargs="*", metavar="OP", help="which; by default all begun here"),
    name="take",
    magic="ops",
    example="%triton_ops softmax, layer_norm, gelu",
)
def take(lab: Lab, a: Namespace) -> Value:
    """Validates and times the versions of several ops, until one is missing; goes on there."""
    return lab.take(_names(a.ops))


@verb(
    argument("ops", names="op", nargs="*", metavar="OP", help="which; by default all begun here"),
    example="%triton_report",
)
def report(lab: Lab, a: Namespace) -> Value:
    """How far each op came, its best version beside torch, what failed and why."""
    return lab.report(_names(a.ops))


@verb(
    argument(
        "--max-chars", type=int, default=6000, metavar="N", help="the longest it may be: 6000"
    ),
    example="%triton_summary --max-chars 3000",
)
def summary(lab: Lab, a: Namespace) -> Value:
    """Writes docs/summarization.md: what a newcomer, or a program, needs to go on from here."""
    return lab.summary(max_chars=a.max_chars)


def _grid(knobs: list[tuple[str, tuple[Setting, ...]]]) -> dict[str, tuple[Setting, ...]]:
    """The values of each name.

    Raises:
        BadValue: a name stands there twice.
    """
    grid: dict[str, tuple[Setting, ...]] = {}
    for name, values in knobs:
        if name in grid:
            both = ",".join(map(str, (*grid[name], *values)))
            raise BadValue(f"{name} is named twice: write {name}={both}")
        grid[name] = values
    return grid


def _names(words: list[str]) -> tuple[str, ...]:
    """The ops of `softmax, layer_norm,gelu`."""
    return tuple(name for word in words for name in word.split(",") if name)


def source_page(source: KernelSource) -> Reference:
    """A page with a version's code, and where it is."""
    from triton_magics.model import Reference

    title = f"{source.op} {source.version}, attempt {source.attempt}"
    body = f"`{source.path}`\n\n````python\n{source.source.rstrip()}\n````\n"
    return Reference(query=title, title=title, markdown=body)


def failed(value: Value) -> bool:
    """Whether a value is a verdict that is not `passed`.

    A version that was saved fails only where the compiler refused it.
    """
    from triton_magics.model import Status, Written

    verdict = getattr(value, "status", Status.PASSED)
    return verdict.failed if isinstance(value, Written) else verdict is not Status.PASSED
