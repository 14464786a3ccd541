"""Compiles what will be launched, or only compiled, at many shapes: all of it in parallel.

The wrapper runs on tensors without memory and each launch only compiles: Triton specialises on
dtypes, divisibility and constants, all of which such tensors have. A prefetch: what can't be
foreseen this way is compiled when it is launched.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton

from triton_magics import ops
from triton_magics.engine.protocol import OpRef, VersionRef
from triton_magics.model import Case
from triton_magics.worker import compilers, pretend
from triton_magics.worker.launches import only_compiling
from triton_magics.worker.load import MARK, Loaded, load_op, load_version
from triton_magics.worker.pretend import PretendCuda, StubDriver, pretending
from triton_magics.worker.resources import environment

MAX_THREADS = 12  # twelve specialisations of a softmax: 0.28 s on 16 cores, with 8 threads 0.31 s
META = torch.device("meta")
NICE = 5
CACHE = "TRITON_CACHE_DIR"
OURS = "TRITON_MAGICS_"  # variables that Triton does not look at
Form = tuple[tuple[int, ...], str]  # the shape and the dtype of what a version is called with


@dataclass(frozen=True)
class Target:
    """What is compiled for: a compute capability, 90 for sm_90, and so many multiprocessors."""

    capability: int = 90
    sm_count: int = pretend.SM_COUNT

    @classmethod
    def here(cls) -> Target:
        """The GPU of this process."""
        found = environment()
        capability = int((found.capability or "sm_90").removeprefix("sm_"))
        return cls(capability, found.sm_count or pretend.SM_COUNT)


def forms_of(cases: Iterable[Case]) -> list[Form]:
    """What there is to compile for these cases, in their order."""
    return list(dict.fromkeys((c.shape, c.dtype) for c in cases))


class Ahead:
    """Forms of a version that are compiled ahead, by the processes that stand by, else by threads.

    What is done is marked in this process's Triton cache, beside what was compiled; a later child
    is given both (`compile_cache`) and has nothing more to do for such a form.
    """

    def __init__(
        self,
        op: OpRef,
        version: VersionRef,
        forms: Sequence[Form],
        target: Target,
        *,
        later: Sequence[Form] = (),
    ) -> None:
        """Has the processes begin, if there are any, with the first forms first.

        Args:
            op, version, forms, target: what is compiled, and for which GPU.
            later: more forms, for which the others shall not wait.
        """
        orders = {form: order(op, version, form, target) for form in forms}
        for form in later:
            orders.setdefault(form, order(op, version, form, target) | {"nice": NICE})
        todo = [(form, one) for form, one in orders.items() if not _is_marked(one["mark"])]
        self._marks = {form: one["mark"] for form, one in todo}
        self._forms = list(self._marks)
        self._work = compilers.begin([one for _, one in todo])

    def wait(self, op: ops.Op, version: Loaded, forms: Collection[Form] | None = None) -> None:
        """Waits for some of the forms, or for all.

        What can't be loaded there (or where nobody stands by) is compiled here, in threads.

        Args:
            op, version: the same, loaded here.
            forms: which; None: all.
        """
        wanted = {i for i, f in enumerate(self._forms) if forms is None or f in forms}
        if self._work:
            self._work.wait(wanted)
            wanted &= self._work.failed
        todo = [self._forms[i] for i in sorted(wanted) if self._forms[i] in self._marks]
        if todo:
            _in_threads(op, version, todo)
            for form in todo:
                _mark(self._marks.pop(form))

    def was_done(self, form: Form) -> bool:
        """Whether there was nothing to do for a form when this began."""
        return form not in self._forms

    def is_done(self, form: Form, *, within_s: float) -> bool:
        """Whether there is nothing left to do for a form, or is not any more within that time."""
        if form not in self._marks:
            return True
        number = self._forms.index(form)
        if self._work is None or not self._work.wait({number}, within_s=within_s):
            return False
        return number not in self._work.failed

    def end(self, *, within_s: float) -> None:
        """Gives the processes so long to come to an end with all, and ends them then."""
        if self._work and not self._work.wait(within_s=within_s):
            self._work.stop()


def _in_threads(op: ops.Op, version: Loaded, forms: Sequence[Form]) -> None:
    threads = min(MAX_THREADS, os.cpu_count() or 1)
    with unchanged(version.module), only_compiling(), ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda form: compile_form(op, version, form), forms))


def order(op: OpRef, version: VersionRef, form: Form, target: Target) -> dict[str, Any]:
    """One form for a process that stands by, which has no GPU: with what it must know of ours."""
    what = {
        "op": op.model_dump(),
        "form": form,
        "target": target.capability,
        "sm_count": target.sm_count,
    }
    return {**what, "version": version.model_dump(), "mark": _name(what, version)}


# ------------------------------------------------------------------------------------ marks


def _name(what: dict[str, Any], version: VersionRef) -> str:
    """Of the mark of a form, with all that Triton's own entries depend on."""
    knobs = {k: v for k, v in os.environ.items() if k.startswith("TRITON_") and k != CACHE}
    theirs = {k: v for k, v in knobs.items() if not k.startswith(OURS)}
    said = json.dumps([what, version.sha256, theirs], sort_keys=True)
    return f"{MARK}{hashlib.sha256(said.encode()).hexdigest()[:24]}"


def _mark(name: str) -> None:
    """Says in the cache, by an empty entry, that a form is done."""
    if folder := os.environ.get(CACHE):
        with suppress(OSError):  # a full disk: it is compiled again some day
            Path(folder, name).mkdir(parents=True, exist_ok=True)


def _is_marked(name: str) -> bool:
    return Path(os.environ.get(CACHE) or os.devnull, name).is_dir()


# ---------------------------------------------------------------------------- a form of many


def obey(order: dict[str, Any]) -> None:
    """Compiles a form into this process's Triton cache, for a GPU that it does not have.

    Raises:
        Exception: whatever the version's file or wrapper raises.
    """
    target, (shape, dtype) = order["target"], order["form"]
    os.nice(order.get("nice", 0))
    pretend.SM_COUNT = order["sm_count"]  # a persistent kernel may be compiled for that many
    triton.runtime.driver.set_active(StubDriver(target))
    op = load_op(OpRef(**order["op"]))
    with pretending(META, target), only_compiling():
        version = load_version(VersionRef(**order["version"]))
        compile_form(op, version, (tuple(shape), dtype))
    _mark(order["mark"])


def rehearse(order: dict[str, Any]) -> None:
    """Compiles a form and keeps nothing of it: the next one finds this process's memory its own.

    A fork shares its parent's memory until it writes to it, which costs the first compile a third.
    """
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get(CACHE, "")
        os.environ[CACHE] = folder
        try:
            obey(order)
        finally:
            os.environ[CACHE] = before


@contextmanager
def unchanged(*modules: ModuleType) -> Iterator[None]:
    """Forgets what versions kept meanwhile: a cached tensor without memory is an illegal address.

    Names of a module, its lists, dicts and sets one level deep, and its `functools` caches.
    """
    before = [(m, {name: (v, _copied(v)) for name, v in _own(m)}) for m in modules]
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


def _copied(value: Any) -> Any:
    return copy.copy(value) if isinstance(value, list | dict | set) else None


def _restore(value: Any, contents: Any) -> None:
    """Its contents as they were; the object stays, since others may hold it."""
    if isinstance(value, list):
        value[:] = contents
    elif isinstance(value, dict | set):
        value.clear()
        value.update(contents)
    elif callable(clear := getattr(value, "cache_clear", None)):
        clear()


def compile_form(op: ops.Op, version: Loaded, form: Form) -> None:
    """Compiles what a version launches for inputs of a shape and dtype, within `only_compiling`."""
    shape, dtype = form
    try:
        made = op.make_inputs(shape, getattr(torch, dtype), META, torch.Generator())
        with torch.no_grad(), PretendCuda(META):
            version.call(*made)
    # A KeyboardInterrupt or SystemExit too: the version's own, in the midst of a validation.
    except BaseException:  # noqa: BLE001 (a prefetch: the real call will say what is wrong)
        return
