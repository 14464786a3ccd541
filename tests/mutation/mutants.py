"""Try mutants of the package against its tests: `make mutants`.

    python tests/mutation/mutants.py                      every target; writes build/mutants.json
    python tests/mutation/mutants.py stats.py             one module
    python tests/mutation/mutants.py --area judge --jobs 2
    python tests/mutation/mutants.py --survivors          only those of build/mutants.json
    python tests/mutation/mutants.py --report             writes docs/measured/mutants.md

Each mutant is one small change of a module (`mutation_operators.py`). pytest imports the direct
tests of the module (`targets.py`) once. Then each mutant gets a fork of that process, which takes
on the changed code (`apply_mutant.py`) and runs the tests. A mutant is killed if a test fails, or
if the tests take four times as long. A changed module is tried again, the others are not.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import os
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
os.environ["TRITON_INTERPRET"] = "1"  # as tests/conftest.py does, before Triton is imported

import pytest  # noqa: E402
import torch  # noqa: E402

from tests.mutation.apply_mutant import apply_source  # noqa: E402
from tests.mutation.mutation_operators import Mutant, find_mutants  # noqa: E402
from tests.mutation.targets import TARGETS, Target  # noqa: E402

RESULTS = ROOT / "build" / "mutants.json"
REASONS = Path(__file__).with_name("survivors.toml")
PAGE = ROOT / "docs" / "measured" / "mutants.md"
SLOWER = 4.0
EXTRA_S = 10.0
GOALS = {"judge": 90, "clock": 90, "statistics": 90, "workflow": 90}
KILLED, SURVIVED, TIMEOUT = "killed", "survived", "timeout"
Endings = dict[str, dict[str, Any]]


@dataclass
class Fork:
    """A process that runs the tests against one mutant."""

    pid: int
    mutant: Mutant | None
    started: float

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
        return SURVIVED if os.waitstatus_to_exitcode(status) == 0 else KILLED

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


class MutantLoop:
    """A plugin of pytest that runs the tests once for each mutant, each time in a fork.

    Attributes:
        endings: how the tests ended, by the mutant's label.
        passes_unchanged: they pass without a mutant.
    """

    def __init__(self, target: Target, source: str, mutants: Sequence[Mutant], jobs: int) -> None:
        self._target, self._source, self._mutants, self._jobs = target, source, mutants, jobs
        self.endings: Endings = {}
        self.passes_unchanged = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests without a mutant, then with each."""
        module = importlib.import_module(_module_name(self._target))
        first = self._fork(session, module, None)
        while (ending := first.poll(600.0)) is None:
            time.sleep(0.05)
        self.passes_unchanged = ending == SURVIVED
        limit_s = SLOWER * (time.monotonic() - first.started) + EXTRA_S
        waiting = list(self._mutants) if self.passes_unchanged else []
        running: list[Fork] = []
        while waiting or running:
            while waiting and len(running) < self._jobs:
                running.append(self._fork(session, module, waiting.pop(0)))
            for fork in tuple(running):
                if ending := fork.poll(limit_s):
                    running.remove(fork)
                    assert fork.mutant
                    self.endings[fork.mutant.label] = {"line": fork.mutant.line, "ending": ending}
            time.sleep(0.01)
        return True

    def _fork(self, session: pytest.Session, module: Any, mutant: Mutant | None) -> Fork:
        pid = os.fork()
        if pid:
            return Fork(pid, mutant, time.monotonic())
        os.setsid()
        try:
            apply_source(module, mutant.apply(self._source) if mutant else self._source)
            for item, following in zip(session.items, [*session.items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    os._exit(1)
        except BaseException:  # noqa: BLE001 (a mutant that can't be imported is killed)
            os._exit(1)
        os._exit(0)


def _module_name(target: Target) -> str:
    return "triton_magics." + target.module.removesuffix(".py").replace("/", ".")


def try_mutants(
    target: Target, source: str, mutants: Sequence[Mutant], tests: Sequence[str], jobs: int
) -> Endings:
    """Return how these tests end with each mutant, by label.

    Raises:
        SystemExit: they fail without a mutant.
    """
    loop = MutantLoop(target, source, mutants, jobs)
    flags = ["-q", "-p", "no:cacheprovider", "-m", "not slow and not gpu", "--no-header"]
    pytest.main([*flags, *(str(ROOT / "tests" / name) for name in tests)], plugins=[loop])
    if not loop.passes_unchanged:
        raise SystemExit(f"{target.module}: its tests fail without a mutant: {', '.join(tests)}")
    return loop.endings


def try_target(
    target: Target, source: str, mutants: Sequence[Mutant], jobs: int, *, quick: bool
) -> Endings:
    """Try mutants with the quick tests, and unless `quick` the survivors with the slow ones."""
    endings = try_mutants(target, source, mutants, target.tests, jobs)
    alive = [m for m in mutants if endings[m.label]["ending"] == SURVIVED]
    if alive and target.slow_tests and not quick:
        endings |= try_mutants(target, source, alive, target.slow_tests, jobs)
    return endings


def choose(source: str, most: int | None) -> list[Mutant]:
    """Return the mutants of a source; of many, so many that lie evenly in it."""
    every = find_mutants(source)
    if most is None or len(every) <= most:
        return every
    return [every[i * len(every) // most] for i in range(most)]


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
    left = [f"`{t.module}`" for t in TARGETS if t.module not in results]
    lines += ["", f"Not run yet: {', '.join(left)}."] if left else []
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
    parser.add_argument("--quick", action="store_true", help="without the slow tests")
    parser.add_argument("--most", type=int, help="mutants of a module (default: all)")
    parser.add_argument("--survivors", action="store_true", help="try the survivors again")
    parser.add_argument("--again", action="store_true", help="try everything again")
    parser.add_argument("--report", action="store_true", help="write the page, try nothing")
    options = parser.parse_args(argv)
    results = _read()
    if not options.report:
        torch.set_num_threads(1)
        for target in _select(options):
            _update(target, _source(target), results, options)
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
    target: Target, source: str, results: dict[str, Any], options: argparse.Namespace
) -> None:
    old = results.get(target.module, {"mutants": {}})
    is_same = old.get("sha256") == _digest(source)
    if is_same and not options.again and not options.survivors:
        return
    alive = {label for label, m in old["mutants"].items() if m["ending"] == SURVIVED}
    only = alive if options.survivors and is_same else None
    mutants = [m for m in choose(source, options.most) if only is None or m.label in only]
    started = time.monotonic()
    endings = try_target(target, source, mutants, options.jobs, quick=options.quick)
    others = old["mutants"] if only is not None else {}
    results[target.module] = {
        "sha256": _digest(source),
        "of": len(find_mutants(source)),
        "mutants": {**others, **endings},
    }
    _write(results)
    whole = results[target.module]["mutants"].values()
    dead = sum(m["ending"] != SURVIVED for m in whole)
    print(f"{target.module}: {dead} of {len(whole)} killed, {time.monotonic() - started:.0f} s")
    for module, label, line in survivors({target.module: results[target.module]}):
        print(f"  survived: {module}:{line} {label}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
