"""Compile a version's kernels for many shapes in parallel, before they are launched.

The wrapper runs on meta tensors and each launch only compiles: compilers specialize on dtypes,
divisibility and constants, all of which meta tensors have. It is a prefetch: other kernels are
compiled when they are launched.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from triton_magics import operators
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.harness import job_sources, layouts
from triton_magics.harness.load import LoadedVersion, load_op, load_version
from triton_magics.harness.process import compile_processes
from triton_magics.harness.process.device import META, environment, kernel_runtime
from triton_magics.harness.process.fake_gpu import FakeCuda, fake_gpu
from triton_magics.languages.kernel_compiler import CompilesLong, Target
from triton_magics.model import Case, Scalar

MAX_THREADS = 12  # twelve specialisations of a softmax: 0.28 s on 16 cores, with 8 threads 0.31 s
LONG_COLUMNS = 4096
WIDE_COLUMNS = 65_536  # of a wider row in one block, ptxas compiles for up to minutes
# shape, dtype, layouts of inputs, values of parameters: a kernel may be compiled for each value
Form = tuple[tuple[int, ...], str, tuple[tuple[str, str], ...], tuple[tuple[str, Scalar], ...]]


def local_target() -> Target:
    """Return the GPU of this process as a target."""
    here = environment()
    capability = int((here.capability or "sm_90").removeprefix("sm_"))
    return Target(capability, here.sm_count)


def input_forms(cases: Iterable[Case]) -> list[Form]:
    """Return the distinct forms of these cases, in their order."""
    return list(dict.fromkeys((c.shape, c.dtype, c.layouts, c.scalars) for c in cases))


def begin_long_ones_early(forms: Sequence[Form], brief: Collection[Form] = ()) -> list[Form]:
    """Return the forms in their order, but every second one has a long row while there are such.

    A row kernel of a long block compiles for longest, up to ten times as long as others: begun at
    last, it is waited for.
    """
    long = [f for f in forms if f not in brief and math.prod(f[0][-1:]) > LONG_COLUMNS]
    long.sort(key=lambda form: -form[0][-1])
    chosen = {*long}
    others = [form for form in forms if form not in chosen]
    pairs = itertools.zip_longest(others, long)
    return [form for pair in pairs for form in pair if form is not None]


class AheadCompilation:
    """Input forms of a version, compiled ahead by the compile processes, else by threads.

    A finished form is marked in this process's compile cache. A later worker gets the mark with the
    compiled kernels (`compile_cache`), and skips the form.
    """

    def __init__(
        self,
        op: OpRef,
        version: VersionRef,
        forms: Sequence[Form],
        target: Target,
        *,
        later: Sequence[Form] = (),
        brief: Collection[Form] = (),
        first: Mapping[str, Any] | None = None,
    ) -> None:
        """Submit the forms to the compile processes, if there are any, in order.

        Args:
            op, version, forms, target: the forms to compile, and the GPU to compile for.
            later: more forms, after them.
            brief: of all these, those that are refused if compilers work on them for long.
            first: an order of another kind, before them. Then forms can be added once.
        """
        self._op, self._version, self._target = op, version, target
        self._runtime = kernel_runtime(version.language)
        self._marks: dict[Form, str] = {}
        orders = self._orders(begin_long_ones_early(forms, brief), brief=brief)
        orders |= self._orders([f for f in later if f not in orders], brief=brief)
        self._has_first = first is not None
        work = [*([dict(first)] if first else ()), *orders.values()]
        self._work = compile_processes.submit(work, is_open=self._has_first)
        self._numbers = {form: i for i, form in enumerate(orders, start=int(self._has_first))}

    def add(self, forms: Sequence[Form], *, brief: Collection[Form] = ()) -> None:
        """Submit further forms, as at the start; those that were submitted before are left out."""
        orders = self._orders([f for f in forms if f not in self._numbers], brief=brief)
        numbers: Iterable[int] = range(len(self._numbers), len(self._numbers) + len(orders))
        if self._work:
            numbers = self._work.add([*orders.values()])
            self._work.close()
        self._numbers |= zip(orders, numbers, strict=True)

    @property
    def has_processes(self) -> bool:
        """Return whether compile processes took the forms."""
        return self._work is not None

    def advance(self) -> None:
        """Give the compile processes that have become free their next forms, without waiting."""
        if self._work:
            self._work.advance()

    def has_done_first(self, *, within_s: float) -> bool | None:
        """Return whether the order of another kind is done by then; None if it never will be."""
        if not self._work or not self._has_first:
            return None
        is_over = self._work.wait({0}, within_s=within_s)
        return None if 0 in self._work.failed else is_over

    def _orders(
        self, forms: Iterable[Form], *, brief: Collection[Form] = ()
    ) -> dict[Form, dict[str, Any]]:
        """Return the orders to compile forms that are not compiled yet, and note their marks."""
        orders = {
            form: order(self._op, self._version, form, self._target)
            | ({"brief": True} if form in brief else {})
            for form in forms
        }
        todo = {f: one for f, one in orders.items() if not self._runtime.is_compiled(one["mark"])}
        self._marks |= {form: one["mark"] for form, one in todo.items()}
        return todo

    def wait(
        self,
        compile_forms: Callable[[Sequence[Form]], None],
        forms: Collection[Form] | None = None,
    ) -> None:
        """Wait for some of the forms, or for all.

        Args:
            compile_forms: compiles the forms that failed there, or all of them where there are no
                compile processes.
            forms: the forms to wait for; None means all.
        """
        numbers = {f: i for f, i in self._numbers.items() if forms is None or f in forms}
        if self._work:
            self._work.wait({*numbers.values()})
            numbers = {f: i for f, i in numbers.items() if i in self._work.failed}
        todo = [form for form in numbers if form in self._marks]
        if todo:
            compile_forms(todo)
            for form in todo:
                self._runtime.mark_compiled(self._marks.pop(form))

    def was_compiled(self, form: Form) -> bool:
        """Return whether a form was compiled before this started."""
        return form not in self._numbers

    def is_finished(self, form: Form, *, within_s: float) -> bool:
        """Return whether a form is compiled, or gets compiled within that time."""
        if form not in self._marks:
            return True
        number = self._numbers[form]
        if self._work is None or not self._work.wait({number}, within_s=within_s):
            return False
        return number not in self._work.failed

    def is_left(self, form: Form) -> bool:
        """Return whether a form is not compiled, and there is no process that compiles it."""
        return form in self._marks and self._work is None

    def is_delayed(self, form: Form, *, within_s: float) -> bool:
        """Return whether the compile processes still work on a form after that time."""
        if form not in self._marks or self._work is None:
            return False
        return not self._work.wait({self._numbers[form]}, within_s=within_s)

    def is_refused(self, form: Form) -> bool:
        """Return whether a compile process has found that a `brief` form compiles for long."""
        if self._work is None or form not in self._marks:
            return False
        return self._numbers[form] in self._work.refused

    def end(self, *, within_s: float) -> None:
        """Wait that long for the processes to finish all forms, then stop them."""
        if self._work:
            self._work.close()
        if self._work and not self._work.wait(within_s=within_s):
            self._work.stop()


def compile_here(op: operators.Op, version: LoadedVersion, forms: Sequence[Form]) -> None:
    """Compile forms of a version in threads of this process."""
    threads = min(MAX_THREADS, os.cpu_count() or 1)
    compiling = version.runtime.compile_only()
    with restore_modules(version.module), compiling, ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda form: compile_form(op, version, form), forms))


def order(op: OpRef, version: VersionRef, form: Form, target: Target) -> dict[str, Any]:
    """Return an order to compile one form, for a compile process, which has no GPU."""
    about = order_about(op, version, target)
    key = {"form": form, "target": about["target"], "sm_count": about["sm_count"]}
    mark = _name({**key, "op": (op.name, op.sha256)}, version)
    # Kernels differ by dtype, values and, as a rule, by the row's length.
    group = [*form[0][-1:], form[1], form[3]]
    alone = math.prod(form[0][-1:]) > WIDE_COLUMNS
    return {**about, "form": form, "mark": mark, "group": group, "alone": alone}


def order_about(op: OpRef, version: VersionRef, target: Target) -> dict[str, Any]:
    """Return what every order for a compile process holds: a version, and a GPU."""
    # By file, because a message to a compile process holds at most 64 KiB.
    refs = json.dumps({"op": op.model_dump(), "version": version.model_dump()})
    file = str(job_sources.write(refs, "refs.json"))
    return {"refs": file, "target": target.capability, "sm_count": target.sm_count}


def _name(key: dict[str, Any], version: VersionRef) -> str:
    """Return the key of a form, made of all that its compilation depends on."""
    settings = dict(kernel_runtime(version.language).compile_key())
    text = json.dumps([key, version.sha256, settings], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


# ---------------------------------------------------------------------------- a form of many


def compile_order(order: dict[str, Any]) -> dict[str, Any] | None:
    """Compile a form into this process's compile cache, for a GPU that is not here.

    Returns:
        an order that builds the launchers of its kernels, if they have any that no process builds.

    Raises:
        Refused: compilers would work on a `brief` form for long.
        Exception: whatever the version's file or wrapper raises.
    """
    shape, dtype, *pairs = order["form"]
    own_layouts, scalars = (tuple(map(tuple, both)) for both in pairs)
    op, ref, target = read_order(order)
    runtime = kernel_runtime(ref.language)
    runtime.use_target(target)
    with fake_gpu(META, target), runtime.compile_only(brief=order.get("brief", False)):
        version = load_version(ref)
        compile_form(op, version, (tuple(shape), dtype, own_layouts, scalars))
    if order.get("launchers"):
        runtime.build_launchers()
        return None
    runtime.mark_compiled(order["mark"])
    return {**order, "launchers": True} if runtime.claim_launchers() else None


def read_order(order: Mapping[str, Any]) -> tuple[operators.Op, VersionRef, Target]:
    """Return what an order is about: the op, the version, and the GPU."""
    refs = json.loads(Path(order["refs"]).read_bytes())
    target = Target(order["target"], order["sm_count"])
    return load_op(OpRef(**refs["op"])), VersionRef(**refs["version"]), target


def warm_up(order: dict[str, Any]) -> None:
    """Compile a form and discard the result, so that the next one finds the memory unshared.

    A fork shares its parent's memory until it writes to it, which costs the first compile a third.
    """
    with tempfile.TemporaryDirectory() as folder, kernel_runtime().compile_into(folder):
        compile_order(order)


@contextmanager
def restore_modules(*modules: ModuleType) -> Iterator[None]:
    """Restore the globals of the modules at the end: a cached meta tensor is an illegal address.

    Covers a module's names, its lists, dicts and sets one level deep, and `functools` caches.
    """
    before = [(m, {name: (v, _shallow_copy(v)) for name, v in _own(m)}) for m in modules]
    try:
        yield
    finally:
        for module, values in before:
            for name in {name for name, _ in _own(module)} - set(values):
                delattr(module, name)
            for name, (value, contents) in values.items():
                setattr(module, name, value)
                _restore(value, contents)


def _own(module: ModuleType) -> list[tuple[str, Any]]:
    return [(name, v) for name, v in vars(module).items() if not name.startswith("__")]


def _shallow_copy(value: Any) -> Any:
    return copy.copy(value) if isinstance(value, list | dict | set) else None


def _restore(value: Any, contents: Any) -> None:
    """Restore the contents of a value in place, because other objects may refer to it."""
    if isinstance(value, list):
        value[:] = contents
    elif isinstance(value, dict | set):
        value.clear()
        value.update(contents)
    elif callable(clear := getattr(value, "cache_clear", None)):
        clear()


def compile_form(op: operators.Op, version: LoadedVersion, form: Form) -> None:
    """Compile the launches of a version for one form, within `compile_only`.

    Raises:
        Refused: compilers would work on one for long, and `compile_only` is brief.
    """
    shape, dtype, own_layouts, scalars = form
    case = Case(shape=shape, dtype=dtype, layouts=own_layouts, seed=0)
    try:
        inputs = operators.inputs_without_memory(op, shape, dtype)
        names, values = op.input_names(len(inputs)), dict(scalars)
        inputs = tuple(
            layouts.empty(tuple(x.shape), case.layout_of(name), dtype=x.dtype, device=META)
            if isinstance(x, torch.Tensor) and own_layouts
            else values.get(name, x)
            for name, x in zip(names, inputs, strict=True)
        )
        with torch.no_grad(), FakeCuda(META):
            version.call(*inputs)
    except CompilesLong as raised:
        raise compile_processes.Refused from raised
    # A KeyboardInterrupt or SystemExit too: the version's own, in the midst of a validation.
    except BaseException:  # noqa: BLE001 (a prefetch: the real call reports the error)
        return
