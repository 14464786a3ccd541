"""Choose the versions of an op to install from its benchmarks, and write the package."""

from __future__ import annotations

import math
from collections.abc import Iterator

from triton_magics.errors import BadValue, UserError
from triton_magics.model import Benchmark, Best, KernelSource, Verb
from triton_magics.rendering.installed_package import MARK, FastestProvider, installed_package
from triton_magics.session import Session

_TIMED: tuple[Verb, ...] = ("benchmarked",)


def install(session: Session, best: Best) -> str:
    """Write installed/OP, a package of the fastest versions; return its relative folder.

    Raises:
        BadValue: the version is no Python module, or the op can't be an operator of torch.
        WorkspaceError: a file there is the user's own.
    """
    source, op = best.source, best.source.op
    facts = session.facts_of(op)
    if source.code_language != "python":
        raise BadValue(f"{op} {source.version} is no Python module: only those can be installed")
    reference = _reference(session, op)
    sources = _sources(session, best)
    benchmarks = tuple(_benchmarks(session, op, facts.dtypes, sources))
    elements = _elements(session, op) if benchmarks else {}
    choices = [c for b in benchmarks for c in _choices(b, sources, elements)]
    timed = {b.dtype for b in benchmarks}
    choices += [
        FastestProvider(dtype, 1, source.version)
        for dtype in facts.dtypes
        if dtype not in timed and _has_passed(session, source, dtype)
    ]
    used = {source.version, *(c.provider for c in choices)}
    device = benchmarks[0].environment if benchmarks else None
    files = installed_package(
        facts,
        [s for name, s in sources.items() if name in used],
        choices,
        device=device.device if device else None,
        reference=reference,
    )
    folder = f"installed/{op}"
    for name, text in files.items():
        session.workspace.save_page(f"{folder}/{name}", text, mark=MARK)
    return folder


def _reference(session: Session, op: str) -> str | None:
    """Return the text of the user's own reference; None for an op that ships.

    Raises:
        BadValue: it can't be the fallback.
    """
    facts = session.facts_of(op)
    if facts.gradient_of:
        raise BadValue(f"{op} can't be installed: it computes the gradients of {facts.gradient_of}")
    if not facts.own_reference:
        return None
    text = session.workspace.reference_path(facts.own_reference).read_text(encoding="utf-8")
    if "MUTATES" in text or "triton_magics" in text:
        raise BadValue(
            f"{op} can't be installed: its reference changes its inputs or imports triton_magics"
        )
    return text


def _sources(session: Session, best: Best) -> dict[str, KernelSource]:
    """Return the versions to choose from; only the best one if it was chosen by hand."""
    op = best.source.op
    if best.by_hand:
        return {best.source.version: best.source}
    newest = (session.workspace.source(op, v.version) for v in session.workspace.versions(op))
    return {s.version: s for s in newest if s.code_language == "python"}


def _has_passed(session: Session, source: KernelSource, dtype: str) -> bool:
    kind = session.jobs.device_kind
    workspace = session.workspace
    return workspace.passed_validation(source.op, source.sha256, dtype, kind) is not None


def _benchmarks(
    session: Session, op: str, dtypes: tuple[str, ...], sources: dict[str, KernelSource]
) -> Iterator[Benchmark]:
    """Yield the newest benchmark on a GPU of each dtype that timed these very sources."""
    shas = {s.sha256 for s in sources.values()}
    covered: set[str] = set()
    for event in session.workspace.events(op, verbs=_TIMED, newest_first=True):
        value = event.result
        if not isinstance(value, Benchmark) or not (value.passed and value.on_gpu):
            continue
        if value.dtype in dtypes and value.dtype not in covered and shas & set(value.sha256s):
            covered.add(value.dtype)
            yield value


def _choices(
    value: Benchmark, sources: dict[str, KernelSource], elements: dict[str, int]
) -> Iterator[FastestProvider]:
    """Yield the fastest of the sources and torch at each size of a benchmark."""
    timed = dict(zip(value.versions, value.sha256s, strict=True))
    usable = [
        name for name, sha in timed.items() if name in sources and sources[name].sha256 == sha
    ]
    for size in value.sizes:
        times = [
            t for p in ("torch", *usable) if p in value.providers and (t := value.timing(p, size))
        ]
        if times:
            fastest = min(times, key=lambda t: t.mean_us)
            torch_us = next((t.mean_us for t in times if t.provider == "torch"), None)
            n = elements.get(size) or math.prod(fastest.shape)
            yield FastestProvider(value.dtype, n, fastest.provider, fastest.mean_us, torch_us)


def _elements(session: Session, op: str) -> dict[str, int]:
    """Return the elements of the first input at each size; empty where that takes real data."""
    try:
        forms = session.jobs.forms(op)
    except UserError:
        return {}
    shapes = {form.size: form.inputs[0].shape for form in forms.sizes}
    return {size: math.prod(shape) for size, shape in shapes.items() if shape is not None}
