"""Which processes on a GPU are no workers, as a worker in a sandbox finds out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.execution_kit import wait_until
from tests.harness.test_measuring_process import fork
from triton_magics.execution import sandbox
from triton_magics.execution.local import sandbox_policy
from triton_magics.harness.process import neighbours
from triton_magics.harness.timing.gpu_conditions import OTHERS_UNKNOWN, check_neighbours
from triton_magics.model import Badge, BadgeCode, Benchmark, Status

WAITS = "import sys; sys.stdin.read()"
needs_landlock = pytest.mark.skipif(not sandbox.landlock_abi(), reason="needs Landlock")


@pytest.fixture(autouse=True)
def policy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    monkeypatch.setenv(sandbox.SCRATCH, str(tmp_path))
    monkeypatch.setenv(sandbox.VARIABLE, sandbox_policy.make_policy("gpu").to_text())
    yield
    neighbours.end()


@pytest.fixture
def others() -> Iterator[tuple[int, int]]:
    """Return the pids of a stranger and of a process that looks like a worker."""
    command = [sys.executable, "-c", WAITS]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE) as stranger,
        subprocess.Popen([*command, "triton_magics.harness"], stdin=subprocess.PIPE) as worker,
    ):
        for pid in (stranger.pid, worker.pid):  # a process has no command for a moment
            wait_until((Path("/proc") / str(pid) / "cmdline").read_bytes)
        yield stranger.pid, worker.pid


def succeeds(act: Callable[[], object]) -> bool:
    """Return whether a function ends without an exception in a fork."""
    return os.waitstatus_to_exitcode(os.waitpid(fork(act), 0)[1]) == 0


@needs_landlock
def test_a_judge_in_a_sandbox_knows_foreign_processes(others: tuple[int, int]) -> None:
    stranger, worker = others
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, check=True)  # fmt: skip

    def judge() -> None:
        neighbours.start_if_needed()
        sandbox.enter_from_environment(runs_versions=False)
        assert all(map(neighbours.is_foreign, others)), "it can read neither"
        assert not neighbours.is_foreign(int(ended.stdout))
        assert neighbours.foreign((stranger, worker, int(ended.stdout), "7")) == (stranger,)
        assert neighbours.foreign(()) == ()

    assert succeeds(judge)


@needs_landlock
def test_without_the_process_it_is_unknown(others: tuple[int, int]) -> None:
    def judge() -> None:
        neighbours.start_if_needed()
        sandbox.enter_from_environment(runs_versions=False)
        os.kill(neighbours.pid() or 0, 9)
        assert [neighbours.foreign(others) for _ in range(2)] == [None, None]

    assert succeeds(judge)


def test_outside_a_sandbox_no_process_starts(
    monkeypatch: pytest.MonkeyPatch, others: tuple[int, int]
) -> None:
    monkeypatch.delenv(sandbox.VARIABLE)
    neighbours.start_if_needed()
    assert neighbours.pid() is None
    assert neighbours.foreign(others) == others[:1]


def benchmark(*badges: Badge) -> Benchmark:
    return Benchmark(
        op="softmax", dtype="float32", seed=0, status=Status.FAILED, sizes=(), versions=("v1",),
        sha256s=("a" * 64,), providers=("v1",), runs=1, badges=badges,
        conditions=("SM clock",),
    )  # fmt: skip


def shared_with(*pids: int) -> Badge:
    return Badge.of(BadgeCode.SHARED_GPU, pids=pids)


LIMITED = Badge.of(BadgeCode.CLOCK_LIMITED, causes=("power cap",))


@pytest.mark.parametrize(
    ("answer", "badges", "notes"),
    [
        ((7,), (LIMITED, shared_with(7)), ()),
        ((), (LIMITED,), ()),
        (None, (LIMITED,), (OTHERS_UNKNOWN,)),
    ],
)
def test_the_badge_names_foreign_processes_alone(
    answer: tuple[int, ...] | None, badges: tuple[Badge, ...], notes: tuple[str, ...]
) -> None:
    requested: list[object] = []
    checked = check_neighbours(
        benchmark(shared_with(7, 8), LIMITED), lambda pids: (requested.extend(pids), answer)[1]
    )
    assert requested == [7, 8]
    assert checked.badges == badges
    assert checked.conditions == ("SM clock", *notes)


def test_without_the_badge_nothing_is_requested() -> None:
    result = benchmark(LIMITED)
    assert check_neighbours(result, lambda pids: 1 // 0) is result
