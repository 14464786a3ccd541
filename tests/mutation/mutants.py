"""Try mutants of the package against its tests: `make mutants`.

    python tests/mutation/mutants.py                      every target; writes build/mutants.json
    python tests/mutation/mutants.py stats.py             one module
    python tests/mutation/mutants.py --area judge --jobs 2
    python tests/mutation/mutants.py --survivors          only those of build/mutants.json
    python tests/mutation/mutants.py --report             writes docs/measured/mutants.md

Each mutant is one small change of a module (`mutation_operators.py`). The direct tests of the
module (`targets.py`) run against it in a process that has torch and pytest loaded already. A mutant
is killed if a test fails, or if the tests take four times as long. Results are kept as they come,
so that a run can be continued; a changed module starts again.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from tests.mutation.mutation_operators import Mutant, find_mutants  # noqa: E402
from tests.mutation.targets import TARGETS, Target  # noqa: E402

BUILD = ROOT / "build"
RESULTS = BUILD / "mutants.json"
REASONS = Path(__file__).with_name("survivors.toml")
PAGE = ROOT / "docs" / "measured" / "mutants.md"
COPIED = ("triton_magics", "tests", "knowledge", "pyproject.toml")
LINKED = ("docs", "notebooks", "scripts", "README.md", "CHANGELOG.md", "mkdocs.yml")
PRELOADED = ("numpy", "torch", "torch._decomp", "triton", "pydantic", "pytest",
             "IPython", "matplotlib", "pygments", "nbformat")  # fmt: skip
SLOWER = 4.0
EXTRA_S = 20.0
GOALS = {"judge": 90, "clock": 90, "statistics": 90, "workflow": 90}
KILLED, SURVIVED, TIMEOUT = "killed", "survived", "timeout"


@dataclass
class Slot:
    """A copy of the repository, in which one mutant is tried at a time."""

    folder: Path
    pid: int = 0
    mutant: Mutant | None = None
    started: float = 0.0

    def make(self) -> None:
        """Copy the repository."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name in COPIED:
            source, copy = ROOT / name, self.folder / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, copy, ignore=ignored, copy_function=shutil.copy2)
            else:
                shutil.copy2(source, copy)
        for name in LINKED:
            (self.folder / name).symlink_to(ROOT / name)
        compileall.compile_dir(self.folder / "triton_magics", quiet=2)

    def start(
        self, target: Target, source: str, tests: Sequence[str], mutant: Mutant | None = None
    ) -> None:
        """Run tests of a target against a mutant, or without one."""
        module = self.folder / "triton_magics" / target.module
        for cached in module.parent.glob(f"__pycache__/{module.stem}.*.pyc"):
            cached.unlink()
        module.write_text(mutant.apply(source) if mutant else source, encoding="utf-8")
        self.mutant, self.started = mutant, time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            _run_tests(self.folder, tests)

    def poll(self, limit_s: float) -> str | None:
        """Return how the tests ended; None while they run."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            if time.monotonic() - self.started < limit_s:
                return None
            self._kill()
            os.waitpid(self.pid, 0)
            return TIMEOUT
        self._kill()  # what the tests left behind
        code = os.waitstatus_to_exitcode(status)
        if code in (4, 5):
            raise SystemExit(f"pytest ended with {code}:\n{self.output[-3000:]}")
        return SURVIVED if code == 0 else KILLED

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    @property
    def output(self) -> str:
        """Return the output of pytest."""
        return (self.folder / "output.txt").read_text(encoding="utf-8", errors="replace")

    @property
    def failed_test(self) -> str:
        """Name of the test that failed first."""
        match = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", self.output, re.MULTILINE)
        return match[1] if match else ""


def _run_tests(folder: Path, tests: Sequence[str]) -> None:
    """Run pytest in this process, which is a child, and end it."""
    os.setsid()
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(folder))
    import pytest
    import torch

    torch.set_num_threads(1)
    flags = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not gpu", "--tb=line"]
    code = pytest.main([*flags, *(f"tests/{name}" for name in tests)])
    sys.stdout.flush()
    os._exit(int(code))


def try_target(
    target: Target,
    source: str,
    slots: Sequence[Slot],
    *,
    only: set[str] | None,
    most: int | None,
) -> dict[str, Any]:
    """Try the mutants of a module; return the results by label.

    Args:
        target: module and tests.
        source: of the module.
        slots: copies of the repository.
        only: labels of the mutants to try; None: all that are chosen.
        most: mutants that are chosen.
    """
    mutants = [m for m in choose(source, most) if only is None or m.label in only]
    results = _try_mutants(target, source, mutants, slots, target.tests)
    left = [m for m in mutants if results[m.label]["ending"] == SURVIVED]
    if left and target.slow_tests:
        results |= _try_mutants(target, source, left, slots, target.slow_tests)
    for label, each in results.items():
        if each["ending"] == SURVIVED:
            print(f"  survived: {target.module}:{each['line']} {label}", flush=True)
    return results


def choose(source: str, most: int | None) -> list[Mutant]:
    """Return the mutants of a source; of many, so many that lie evenly in it."""
    every = find_mutants(source)
    if most is None or len(every) <= most:
        return every
    return [every[i * len(every) // most] for i in range(most)]


def _try_mutants(
    target: Target,
    source: str,
    mutants: Sequence[Mutant],
    slots: Sequence[Slot],
    tests: Sequence[str],
) -> dict[str, Any]:
    """Return how these tests end with each mutant, by label."""
    limit = SLOWER * _time_unchanged(target, source, slots[0], tests) + EXTRA_S
    waiting, running = list(mutants), list[Slot]()
    results: dict[str, Any] = {}
    while waiting or running:
        for slot in [slot for slot in slots if slot not in running][: len(waiting)]:
            slot.start(target, source, tests, waiting.pop(0))
            running.append(slot)
        for slot in tuple(running):
            if (ending := slot.poll(limit)) is None:
                continue
            running.remove(slot)
            assert slot.mutant
            by = slot.failed_test if ending == KILLED else ""
            results[slot.mutant.label] = {"line": slot.mutant.line, "ending": ending, "by": by}
        time.sleep(0.05)
    for slot in slots:
        (slot.folder / "triton_magics" / target.module).write_text(source, encoding="utf-8")
    return results


def _time_unchanged(target: Target, source: str, slot: Slot, tests: Sequence[str]) -> float:
    """Return the seconds that the tests take without a mutant, with which they must pass."""
    slot.start(target, source, tests)
    while (ending := slot.poll(1800.0)) is None:
        time.sleep(0.1)
    if ending != SURVIVED:
        raise SystemExit(f"{target.module}: tests fail without a mutant:\n{slot.output[-3000:]}")
    return time.monotonic() - slot.started


# -------------------------------------------------------------------------------------- results


def _read() -> dict[str, Any]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def _write(results: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def reasons() -> dict[str, dict[str, str]]:
    """Return why survivors are accepted, by module and label."""
    return tomllib.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}


def survivors(results: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield module, label and line of each mutant that no test killed."""
    for module, entry in results.items():
        for label, each in entry["mutants"].items():
            if each["ending"] == SURVIVED:
                yield module, label, each["line"]


def report(results: dict[str, Any]) -> str:
    """Return the page: kill rates, and each survivor with its reason."""
    lines = [_HEAD, "| area | module | tried | killed | equivalent | killed of the others |"]
    lines += ["|---|---|---|---|---|---|"]
    equal = reasons()
    totals: dict[str, list[int]] = {}
    for target in TARGETS:
        if target.module not in results:
            continue
        mutants = results[target.module]["mutants"]
        own = equal.get(target.module, {})
        alive = {label for label, m in mutants.items() if m["ending"] == SURVIVED}
        same = sum(own.get(label, "").startswith("equivalent") for label in alive)
        dead, real = len(mutants) - len(alive), len(mutants) - same
        rate = f"{100 * dead / real:.1f} %" if real else "-"
        lines.append(
            f"| {target.area} | `{target.module}` | {len(mutants)} of "
            f"{results[target.module]['of']} | {dead} | {same} | {rate} |"
        )
        total = totals.setdefault(target.area, [0, 0])
        total[0], total[1] = total[0] + dead, total[1] + real
    lines += ["", "| area | killed of those that are not equivalent | goal |", "|---|---|---|"]
    for area, (dead, real) in totals.items():
        goal = f"{GOALS[area]} %" if area in GOALS else "none set"
        lines.append(f"| {area} | {dead} of {real}, {100 * dead / max(real, 1):.1f} % | {goal} |")
    lines += ["", "## Survivors", "", "| module | change | reason |", "|---|---|---|"]
    for module, label, _ in survivors(results):
        why = equal.get(module, {}).get(label, "not looked at")
        lines.append(f"| `{module}` | `{label.replace('|', chr(92) + '|')}` | {why} |")
    return "\n".join(lines) + "\n"


_HEAD = """# Mutation tests

Each mutant is one small change of a module: a comparison, an operator, a constant, `min` for
`max`, `any` for `all`, a condition turned round, a call left out, a result replaced by None.
`make mutants` runs the direct tests of the module against each. A mutant that changes nothing that
can be seen is equivalent.

Machine: 2 cores without a GPU, Python 3.11, torch 2.13, triton 3.7.1. Date: 2026-11-23.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Try mutants; return 1 where an area with a goal is below it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", help="paths below triton_magics/ (default: all)")
    parser.add_argument("--area", action="append", help="only these areas")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default: 1)")
    parser.add_argument("--most", type=int, help="mutants of a module (default: all)")
    parser.add_argument("--survivors", action="store_true", help="try the survivors again")
    parser.add_argument("--again", action="store_true", help="try everything again")
    parser.add_argument("--report", action="store_true", help="write the page, try nothing")
    options = parser.parse_args(argv)
    results = _read()
    if not options.report:
        for name in PRELOADED:
            importlib.import_module(name)
        slots = [Slot(BUILD / "mutants" / f"slot{i}") for i in range(options.jobs)]
        for slot in slots:
            slot.make()
        # Read now: the files may change while the tests run.
        targets = [(t, _source(t)) for t in _select(options)]
        for target, source in targets:
            _update(target, source, slots, results, options)
    text = report(results)
    if options.report:
        PAGE.write_text(text, encoding="utf-8")
    print(text.partition("## Survivors")[0])
    return 0


def _select(options: argparse.Namespace) -> Iterable[Target]:
    for target in TARGETS:
        if options.modules and target.module not in options.modules:
            continue
        if not options.area or target.area in options.area:
            yield target


def _source(target: Target) -> str:
    return (ROOT / "triton_magics" / target.module).read_text(encoding="utf-8")


def _update(
    target: Target,
    source: str,
    slots: Sequence[Slot],
    results: dict[str, Any],
    options: argparse.Namespace,
) -> None:
    old = results.get(target.module, {"mutants": {}})
    is_same = old.get("sha256") == _digest(source)
    alive = {label for label, m in old["mutants"].items() if m["ending"] == SURVIVED}
    if is_same and not options.again and not options.survivors:
        return
    only = alive if options.survivors and is_same else None
    print(f"{target.module} ...", flush=True)
    started = time.monotonic()
    endings = try_target(target, source, slots, only=only, most=options.most)
    others = old["mutants"] if only is not None else {}
    results[target.module] = {
        "sha256": _digest(source),
        "of": len(find_mutants(source)),
        "mutants": {**others, **endings},
    }
    _write(results)
    dead = sum(m["ending"] != SURVIVED for m in results[target.module]["mutants"].values())
    n = len(results[target.module]["mutants"])
    print(f"{target.module}: {dead} of {n} killed, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
