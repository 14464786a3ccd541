"""The methods of the verbs. Written by scripts/reference.py; change the verb, not this file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, overload

from triton_magics.model import Batch, Benchmark, Best, Compilation, Correction, Diagnosis, Difference, Export, History, KernelSource, LabState, OpPage, OpState, Plan, Plot, Profile, Reference, RegressionCheck, Report, Retiming, RunResult, SelfTest, Summary, Sweep, Template, Validation, Validations, Written
from triton_magics.session import Session

class VerbMethods:
    session: Session

    def op(
        self,
        op: str,
        *,
        shapes: Sequence[tuple[int, ...]] = (),
        no_shapes: Sequence[tuple[int, ...]] = (),
        source: bool = False,
    ) -> OpPage:
        """Return an op's facts, techniques, state and engine; its references count as shown.

        Args:
            op: its name or an alias: softmax, add
            shapes: shapes of your own to keep for it: they join every plan and benchmark
            no_shapes: remove this shape of your own; may be repeated
            source: show how torch computes it in Python: its reference or decomposition

        Raises:
            UnknownOp: neither shipped nor defined here.
            UnknownName: a shape to remove is none of your own.
        """

    def kernel(
        self,
        op: str,
        version: str,
        source: str,
        *,
        type: str = 'triton',
        entry: str | None = None,
        technique: str | None = None,
        cell_offset: int = 0,
        compile: bool = True,
        replay: bool = False,
    ) -> Written:
        """Save a version's source as an attempt and compile it, GPU or not.

        Args:
            op: its name or an alias: softmax, add
            version: v2, or a name of your own: v2_online
            source: the whole source, byte for byte
            type: name of the kernel language; `triton_magics.languages.names()` lists them
            entry: the wrapper's name (default: triton_OP)
            technique: what this version tries, for the log
            cell_offset: lines of the cell before the source (1 for a magic's own line)
            compile: compile it right away
            replay: written by a log, which validates and times later; the workflow's order is not checked, and the event says so

        Raises:
            UnknownName: no such kernel language.
            BadKernelSource, AmbiguousEntry: no module with an entry point; nothing was saved.
            UserError: the number has another slug already.
        """

    def write(
        self,
        op: str,
        version: str,
        source: str,
        *,
        type: str = 'triton',
        entry: str | None = None,
        technique: str | None = None,
        cell_offset: int = 0,
        compile: bool = True,
        replay: bool = False,
    ) -> Written:
        """Save a version's source as an attempt and compile it, GPU or not.

        Args:
            op: its name or an alias: softmax, add
            version: v2, or a name of your own: v2_online
            source: the whole source, byte for byte
            type: name of the kernel language; `triton_magics.languages.names()` lists them
            entry: the wrapper's name (default: triton_OP)
            technique: what this version tries, for the log
            cell_offset: lines of the cell before the source (1 for a magic's own line)
            compile: compile it right away
            replay: written by a log, which validates and times later; the workflow's order is not checked, and the event says so

        Raises:
            UnknownName: no such kernel language.
            BadKernelSource, AmbiguousEntry: no module with an entry point; nothing was saved.
            UserError: the number has another slug already.
        """

    def run(
        self,
        op: str,
        version: str,
        *,
        size: str | None = None,
        shape: tuple[int, ...] | None = None,
        dtype: str | None = None,
        seed: int = 0,
        inputs: str | None = None,
        timeout: float | None = None,
    ) -> RunResult:
        """Call a version twice on one input: its output, its prints, and the host's wait.

        Args:
            op: its name or an alias: softmax, add
            version: v2, or a name of your own: v2_online
            size: of the op: small, medium or large (default: the first)
            shape: in place of a size: 257x1023
            dtype: of the inputs (default: float32, or the op's first)
            seed: of the inputs
            inputs: in place of these: a file of the workspace (x.safetensors, .npz, .npy, .pt), or Python with torch and device in it
            timeout: time limit in seconds (default: that of the settings)

        Raises:
            UnknownVersion: no such version.
        """

    @overload
    def validate(  # type: ignore[overload-overlap]
        self,
        op: str,
        version: Literal['all'],
        *,
        dtypes: Sequence[str] | None = None,
        plan: Literal['full', 'quick', 'thorough'] = 'full',
        shapes: Sequence[tuple[int, ...]] = (),
        only: str = '',
        inputs: str | None = None,
        seed: int | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        sanitize: bool = False,
        timeout: float | None = None,
    ) -> Validations:
        """Check a version against a float64 oracle, on hostile inputs.

        Args:
            op: its name or an alias: softmax, add
            version: `v2`, or `all`, which gives a `Validations`
            dtypes: only these: float32,float16 (default: all that the op declares)
            plan: full, or quick or thorough as those flags do
            shapes: only this one, to replay a case; may be repeated
            only: only cases whose label is, or has, these words
            inputs: a file of the workspace in place of the cases: x.safetensors, .npz, .npy or .pt
            seed: the seed of an earlier result, to replay its plan
            rtol: another relative tolerance; leaves a badge
            atol: another absolute tolerance; leaves a badge
            sanitize: a case under compute-sanitizer too: memcheck, racecheck, initcheck
            timeout: time limit in seconds (default: that of the settings)

        Raises:
            UnknownVersion: no such version.
            UnknownName: a dtype that the op does not declare.
        """

    @overload
    def validate(
        self,
        op: str,
        version: str,
        *,
        dtypes: Sequence[str] | None = None,
        plan: Literal['full', 'quick', 'thorough'] = 'full',
        shapes: Sequence[tuple[int, ...]] = (),
        only: str = '',
        inputs: str | None = None,
        seed: int | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        sanitize: bool = False,
        timeout: float | None = None,
    ) -> Validation:
        """Check a version against a float64 oracle, on hostile inputs.

        Args:
            op: its name or an alias: softmax, add
            version: `v2`, or `all`, which gives a `Validations`
            dtypes: only these: float32,float16 (default: all that the op declares)
            plan: full, or quick or thorough as those flags do
            shapes: only this one, to replay a case; may be repeated
            only: only cases whose label is, or has, these words
            inputs: a file of the workspace in place of the cases: x.safetensors, .npz, .npy or .pt
            seed: the seed of an earlier result, to replay its plan
            rtol: another relative tolerance; leaves a badge
            atol: another absolute tolerance; leaves a badge
            sanitize: a case under compute-sanitizer too: memcheck, racecheck, initcheck
            timeout: time limit in seconds (default: that of the settings)

        Raises:
            UnknownVersion: no such version.
            UnknownName: a dtype that the op does not declare.
        """

    def plan(
        self,
        op: str,
        *,
        dtypes: Sequence[str] | None = None,
        plan: Literal['full', 'quick', 'thorough'] = 'full',
        shapes: Sequence[tuple[int, ...]] = (),
        seed: int | None = None,
    ) -> Plan:
        """Return the cases that a validation would run, and those that this device leaves out.

        Args:
            op: its name or an alias: softmax, add
            dtypes: only these: float32,float16 (default: all that the op declares)
            plan: full, or quick or thorough as those flags do
            shapes: only this one, to replay a case; may be repeated
            seed: of the plan (default: a new one); a validation with this seed runs the same

        Raises:
            UnknownName: a dtype that the op does not declare.
        """

    def fix(
        self,
        op: str,
        version: str,
        *,
        write: bool = False,
    ) -> Correction:
        """Return the version's code with the line that its newest verdict corrects; `write` saves it.

        Args:
            op: its name or an alias: softmax, add
            version: v2, or a name of your own: v2_online
            write: save the corrected code as the version's next attempt and compile it

        Raises:
            BadValue: neither verdict nor error stands on this code, or none names a correction.
            UnknownVersion: no such version.
        """

    def bench(
        self,
        op: str,
        *versions: str,
        sizes: Sequence[str] | None = None,
        inputs: str | None = None,
        runs: int = 10,
        dtype: str | None = None,
        against: Sequence[str] = (),
        hot: bool = False,
        timer: Literal['gated', 'graph', 'launch'] = 'gated',
        census: bool = False,
        backward_only: bool = False,
        budget: float | None = None,
        seed: int | None = None,
        timeout: float | None = None,
        again: bool = False,
        env: str | None = None,
    ) -> Benchmark | Retiming:
        """Time versions beside torch, in random-order rounds within one session.

        Without a GPU every version runs once in the interpreter, which says nothing about a GPU.
        `again` and `env` need one, and return a `Retiming`: then and now, or here and there.

        Args:
            op: its name or an alias: softmax, add
            versions: which; none or `all`: every one that passed
            sizes: of the op's sizes (small,medium,large) and shapes such as 8192x151936 (default: all of them, and the shapes that you keep for the op)
            inputs: a file of the workspace in place of the sizes: x.safetensors, .npz, .npy or .pt
            runs: timed runs at each size
            dtype: of the inputs (default: float32, or the op's first)
            against: compare with torch.compile, a version or module:function too; may be repeated
            hot: leave the inputs in the L2 cache
            timer: gated: net GPU time behind a gate; graph: in a CUDA graph; launch: with Python and launch
            census: afterwards count kernels and streams, and Triton's share of them, by CUPTI
            backward_only: of softmax_backward: the backward pass, without the forward pass before it
            budget: seconds for rounds that settle a verdict; without a GPU, for all runs
            seed: of the inputs (default: a new one, which the result shows)
            timeout: time limit in seconds (default: that of the settings)
            again: time the recorded versions now; show then against now by the ratios to torch
            env: time here and by this interpreter, in turn: has its Triton slowed a version?

        Raises:
            IllegalStep: a version has not passed a validation of this very source.
            BadValue, UnknownName, UnknownVersion: a value out of range, or an unknown name.
        """

    def selftest(
        self,
        *,
        timeout: float | None = None,
    ) -> SelfTest:
        """Check that the timing tells right from wrong on this GPU.

        A kernel against itself must be the same, kernels 2 % and 100 % longer slower; a host that
        is late, and work on a stream of its own, must be left without a time.

        Args:
            timeout: time limit in seconds (default: that of the settings)
        """

    def sweep(
        self,
        op: str,
        version: str,
        knobs: Mapping[str, Sequence[bool | int | float | str]] = {},
        *,
        size: str | None = None,
        dtype: str | None = None,
        runs: int = 10,
        hot: bool = False,
        write: bool = False,
        seed: int | None = None,
        timeout: float | None = None,
        search: bool = False,
        budget: float = 120.0,
    ) -> Sweep:
        """Try a grid of settings of a version: which are right, and which is fastest.

        Each point of the grid is the version's source with these values in it. All are compiled in
        parallel and checked one by one, as in a quick validation. The right ones are timed together, in
        random-order rounds with torch. Several GPUs share the points; then the fastest of each, by the
        ratio to torch, are timed together on one. With `search` at most a quarter of the grid is tried,
        within `budget` seconds. The best has passed the full plan. Without a GPU: compiled only.

        Args:
            op: its name or an alias: softmax, add
            version: v2, or a name of your own: v2_online
            knobs: name -> values: constants at module level, literal arguments of a launch, `num_warps` and the like, constants of an `@triton.autotune` configuration
            size: a size of the op or a shape such as 8192x151936 (default: the op's largest)
            dtype: of the inputs (default: float32, or the op's first)
            runs: timed runs of each
            hot: leave the inputs in the L2 cache
            write: make the best one a new version
            seed: of the inputs (default: a new one, which the result shows)
            timeout: time limit in seconds (default: that of the settings)
            search: try a part of the grid, chosen by the times so far; for large grids
            budget: seconds of a search: 120

        Raises:
            UnknownName, BadValue: no such parameter, a value of another kind, too many configurations.
            IllegalStep: `write` or `search`, and nothing can be timed.
        """

    def best(
        self,
        op: str,
        version: str | None = None,
        *,
        now: bool = False,
        why: str = '',
        fastest: bool = False,
        install: bool = False,
    ) -> Best:
        """Return the version to ship, with its code: the smallest final within one benchmark.

        Args:
            op: its name or an alias: softmax, add
            version: your choice; it stays as long as the version is unchanged and correct
            now: before the end of the workflow, in strict mode too
            why: your reason, recorded in the log
            fastest: remove a choice by hand
            install: write installed/OP, a package for your project: fastest by size, else torch

        Raises:
            IllegalStep: the named version is not validated in full; or in strict mode, not at its end,
                and not `now`.
            UnknownVersion: no version is validated in full.
            BadValue: a reason without a version, both `fastest` and a version, or an op that can't be
                installed.
            WorkspaceError: kernels/OP/chosen.py is the user's own, or can't be written.
        """

    def status(
        self,
        op: str | None = None,
        *,
        force_write: str | None = None,
        reset: bool = False,
    ) -> OpState | LabState:
        """Return the state of an op; without one, of every op of the workspace.

        Args:
            op: which (default: every one of the workspace)
            force_write: a reason to go back to writing without a verdict
            reset: start over; the history stays

        Raises:
            BadValue: a change of state without an op.
            IllegalStep: the workflow does not allow it, and the session is strict.
        """

    def ref(
        self,
        *words: str,
    ) -> Reference:
        """Return a page of the knowledge base, or what a search finds; no words: the contents.

        Args:
            words: a topic, or words to find
        """

    def template(
        self,
        pattern: str,
        op: str,
        version: str,
        *,
        type: str = 'triton',
        to: str | Path | None = None,
    ) -> Template:
        """Return a starting point for a version, to be edited in a cell or a file.

        Args:
            pattern: elementwise, reduction, matmul, fused, or one of your own (knowledge/templates)
            op: its name or an alias: softmax, add
            version: v1, or a name of your own: v1_naive
            type: name of the kernel language; `triton_magics.languages.names()` lists them
            to: write it there too; nothing is overwritten

        Raises:
            UnknownName: no such pattern or kernel language, or the language has no templates.
            UnknownOp, BadName: no such op, no such name.
            BadValue: the file exists, or can't be written.
        """

    def inspect(
        self,
        op: str,
        version: str,
        *,
        target: str | None = None,
        ptx: bool = False,
        sass: bool = False,
        require: str | None = None,
    ) -> Compilation:
        """Return registers, spills, shared memory, occupancy, waves, widths of loads, tensor cores.

        On a GPU of the kernels as it runs them; for another `target`, or without a GPU, of what
        the compiler makes for that. With `require` it fails where a kernel does not meet the limits.

        Args:
            op: its name or an alias: softmax, add
            version: v2, or a name of your own: v2_online
            target: `sm_90`; by default the GPU that is here, else the one of the settings
            ptx: show the PTX
            sass: show the SASS, the machine's own code
            require: fail unless every kernel meets this: registers<=64,spills==0; also shared, occupancy, waves, warps, stages

        Raises:
            BadValue: a requirement on a figure that does not exist.
            UnknownVersion: it is not written yet.
        """

    def profile(
        self,
        op: str,
        version: str,
        *,
        size: str | None = None,
        dtype: str | None = None,
        against: str | None = None,
        sections: str = 'basic',
        how: Literal['auto', 'counters', 'activity', 'static'] = 'auto',
        seed: int | None = None,
        timeout: float | None = None,
    ) -> Profile:
        """Return what limits one call: its hardware counters under Nsight Compute, and its roofline.

        Counters need a GPU, Nsight Compute (`ncu`) and the permission to read them. Without one of
        them the result says what is missing, and has the figures that can be had: CUPTI's times on a
        GPU, else those of the compiled code. Its times are not those of a benchmark.

        Args:
            op: its name or an alias: softmax, add
            version: v2, or a name of your own: v2_online
            size: a size of the op or a shape such as 8192x151936 (default: the op's largest)
            dtype: of the inputs (default: the op's first)
            against: profile this version too, and compare
            sections: more for Nsight Compute's own window: detailed, full, or names of sections
            how: hardware counters, CUPTI's activity records, static figures, or auto: the first that can be had
            seed: of the inputs (default: a new one, which the result shows)
            timeout: time limit in seconds (default: that of the settings)

        Raises:
            UnknownVersion: no such version.
            UnknownName: a dtype that the op does not declare.
            BadValue: `sections` names none.
        """

    def diff(
        self,
        op: str,
        before: str,
        after: str,
    ) -> Difference:
        """Return the changes of the code from one version to another, with verdicts and times.

        Args:
            op: its name or an alias: softmax, add
            before: v1; or an attempt at it, the third: v1:3
            after: v2, or v2:1

        Raises:
            UnknownVersion: no such version or attempt.
            BadName: not of that form.
        """

    def restore(
        self,
        op: str,
        version: str,
        attempt: int | None = None,
    ) -> Written:
        """Make an earlier attempt at a version its newest again.

        Args:
            op: its name or an alias: softmax, add
            version: v2, or a name of your own: v2_online
            attempt: its number, from 1; without: the error lists them

        Raises:
            BadValue: no attempt is named; the message lists them.
            UnknownVersion: no such version or attempt; names those there are.
        """

    def reference(
        self,
        op: str,
        source: str,
    ) -> OpPage:
        """Define the user's own op from a source with `reference` and `make_inputs`.

        Args:
            op: a name of your own: my_op
            source: the whole source, byte for byte

        Raises:
            BadName, UserError: no valid name, the name of a shipped op, a reference that can't be used.
        """

    def io(
        self,
        op: str,
        source: str,
        *,
        reference: str | None = None,
    ) -> OpPage:
        """Define an op from an IO contract and its reference.

        The cell is the contract as JSON, or a module with `contract` and `reference`, which runs in a
        worker.

        Args:
            op: a name of your own: my_op
            source: the whole source, byte for byte
            reference: of a JSON contract: an expression of its arguments, 'torch.relu(x)'

        Raises:
            BadContract: names every fault of the contract.
            BadKernelSource, BadName, UserError: as for `reference`.
        """

    def import_(
        self,
        path: str,
        *,
        op: str | None = None,
        version: str | None = None,
        type: str = 'triton',
    ) -> OpPage | Written:
        """Define an op from a problem of another collection, or save a function as a version.

        The problem's text is read here, and runs in a worker only.

        Args:
            path: a problem (kernelbench: a module with Model, get_inputs and get_init_inputs; gpu_mode: a folder of GPU MODE with task.yml and reference.py; trace: a definition of FlashInfer Trace or SOL-ExecBench, definition.json), or path.py:function
            op: name of the op (default: that of the problem)
            version: of path.py:function: its name (default: the next one)
            type: of path.py:function: its kernel language

        Raises:
            BadValue: the path is no problem, or an option is missing or does not belong to it.
            BadKernelSource, UnknownOp: as for `kernel`.
            UserError: the problem can't be an op; the message says why.
        """

    def definition(
        self,
        op: str,
        *,
        folder: str | None = None,
    ) -> Reference:
        """Return an op of one's own as a definition; one that was imported comes back as it was.

        Args:
            op: its name or an alias: softmax, add
            folder: for definition.json and workload.jsonl (default: show the definition only)

        Raises:
            UnknownOp: no such op.
            UserError: a shipped op, or one that needs real data to have shapes.
            BadValue: the folder can't be written.
        """

    def plot(
        self,
        op: str,
        name: Literal['speedup', 'times', 'runs', 'sweep'] = 'speedup',
        *,
        to: str | Path | None = None,
    ) -> Plot:
        """Return a picture of the newest benchmark, or of the newest sweep.

        Args:
            op: its name or an alias: softmax, add
            name: speedup over torch; times against size; runs, each as a dot; or a sweep's heat map
            to: write it there, as PNG

        Raises:
            UnknownVersion: nothing was timed, or swept, yet.
            BadValue: there is nothing to see in it; the file can't be written.
        """

    def history(
        self,
        op: str,
        *,
        to: str | Path | None = None,
    ) -> History:
        """Return every recorded speedup over torch on a GPU, with GPU, driver, torch and Triton.

        Args:
            op: its name or an alias: softmax, add
            to: write the picture there, as PNG

        Raises:
            UnknownVersion: nothing was timed on a GPU yet.
            BadValue: the file can't be written.
        """

    def check_regressions(
        self,
        ops: Sequence[str] = (),
        *,
        dtype: str | None = None,
        threshold: float = 0.05,
        timeout: float | None = None,
    ) -> RegressionCheck:
        """Time the recorded versions of some ops again; fail where one is slower than its record.

        A version that looks slower is timed once more, and is slower only if it is so again.

        Args:
            ops: names or aliases, in order; by default every op of the workspace
            dtype: of the inputs (default: float32, or the op's first)
            threshold: share by which a version may be slower: 0.05
            timeout: time limit in seconds (default: that of the settings)

        Raises:
            IllegalStep: there is no GPU.
            UnknownOp: no such op.
        """

    def note(
        self,
        op: str,
        source: str,
        version: str | None = None,
    ) -> Reference:
        """Record a text in Markdown, which the op's log shows with its version or its analysis.

        Args:
            op: its name or an alias: softmax, add
            source: the text, in Markdown
            version: the version that it is about

        Raises:
            UnknownVersion: no such version.
            BadValue: an empty text, or one over 20,000 letters.
        """

    def metrics(
        self,
        ops: Sequence[str] = (),
        *,
        form: Literal['bencher', 'github', 'trace'] = 'bencher',
        to: str | Path | None = None,
    ) -> Reference:
        """Return the newest recorded times of each version on a GPU, as another tool reads them.

        Args:
            ops: names or aliases, in order; by default every op of the workspace
            form: bencher: Bencher's BMF; github: customSmallerIsBetter of github-action-benchmark; trace: lines of FlashInfer Trace
            to: write the file there, not on the screen

        Raises:
            UnknownOp: no such op.
            UnknownVersion: nothing was timed on a GPU yet.
            BadValue: the file can't be written.
        """

    def log(
        self,
        op: str,
        *,
        tests: bool = False,
    ) -> Export:
        """Write the op's log as a notebook, Markdown and HTML; return their paths.

        Args:
            op: its name or an alias: softmax, add
            tests: tests/test_OP.py too: each version that passed is validated in your own CI

        Raises:
            ExportError: a file could not be written, or is a person's own.
            UnknownVersion: tests of no version: none has passed.
        """

    def export(
        self,
        op: str,
        *,
        tests: bool = False,
    ) -> Export:
        """Write the op's log as a notebook, Markdown and HTML; return their paths.

        Args:
            op: its name or an alias: softmax, add
            tests: tests/test_OP.py too: each version that passed is validated in your own CI

        Raises:
            ExportError: a file could not be written, or is a person's own.
            UnknownVersion: tests of no version: none has passed.
        """

    def doctor(
        self,
        *,
        repair: bool = False,
    ) -> Diagnosis:
        """Check the machine and the workspace, and name a remedy for each fault.

        Args:
            repair: repair the workspace without loss: an edit of a file becomes an attempt, a lost file is put back, a damaged store is rebuilt

        Raises:
            WorkspaceError: a repair of a workspace that can't be written.
        """

    def ops(
        self,
        ops: Sequence[str] = (),
    ) -> Report:
        """Take each op through its phases with the versions that are there.

        Versions without a verdict are validated, those that passed are timed, the fastest is chosen
        and the log is written. It stops at a version that has to be written or repaired (after three
        attempts the op continues without it). A further call resumes there.

        Args:
            ops: names or aliases, in order; by default every op of the workspace

        Raises:
            UnknownOp: no such op; nothing was done.
            ExportError: a log could not be written.
        """

    def take(
        self,
        ops: Sequence[str] = (),
    ) -> Report:
        """Take each op through its phases with the versions that are there.

        Versions without a verdict are validated, those that passed are timed, the fastest is chosen
        and the log is written. It stops at a version that has to be written or repaired (after three
        attempts the op continues without it). A further call resumes there.

        Args:
            ops: names or aliases, in order; by default every op of the workspace

        Raises:
            UnknownOp: no such op; nothing was done.
            ExportError: a log could not be written.
        """

    def batch(
        self,
        file: str,
        *,
        results: str | None = None,
        at_once: int | None = None,
    ) -> Batch:
        """Run every line of a file, several at the same time.

        Each result is written as soon as there is one. A further call, also after a kill, runs the
        lines that have none. A line that fails hurts no other. After five lines in a row that could not
        run, through no fault of their own, it stops.

        Args:
            file: JSON lines; each a step, {"verb": "validate", "arguments": {"op": "softmax", "version": "v3"}}, or a list of steps that run in order
            results: where the results go, a line each; lines that it has already are not run again (default: FILE with .results before its suffix)
            at_once: lines at the same time (default: two more than there are lanes)

        Raises:
            BadValue: the file can't be read, or some of its lines are refused; nothing has run.
            Interrupted: interrupted; the results so far are in their file.
        """

    def report(
        self,
        ops: Sequence[str] = (),
    ) -> Report:
        """Return each op's progress, best version, failed versions and reasons; run nothing.

        Args:
            ops: names or aliases, in order; by default every op of the workspace

        Raises:
            UnknownOp: no such op.
        """

    def summary(
        self,
        *,
        max_chars: int = 6000,
    ) -> Summary:
        """Write docs/summarization.md, from which a newcomer or a program can go on.

        State, next steps, versions, failed attempts; what does not fit is cut from the end, and named.

        Args:
            max_chars: maximum length in characters

        Raises:
            ExportError: it could not be written, or is a person's own.
        """

    def versions(
        self,
        op: str,
    ) -> tuple[str, ...]:
        """Return the whole names of the versions of an op that are written.

        Args:
            op: its name or an alias: softmax, add

        Raises:
            UnknownOp: no such op.
        """

    def attempts(
        self,
        op: str,
        version: str,
    ) -> tuple[KernelSource, ...]:
        """Return every attempt at a version, oldest first.

        Args:
            op: its name or an alias: softmax, add
            version: v2, or a name of your own: v2_online

        Raises:
            UnknownVersion: it is not written yet.
        """

    def source(
        self,
        op: str,
        version: str,
        attempt: int | None = None,
    ) -> KernelSource:
        """Return the source of a version, of its newest attempt by default.

        Args:
            op: its name or an alias: softmax, add
            version: v2, or a name of your own: v2_online
            attempt: its number, from 1 (default: the newest)

        Raises:
            UnknownVersion: no such version or attempt.
        """
