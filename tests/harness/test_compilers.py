"""Compile processes: their results are found in the cache, and no process is left."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.execution_kit import wait_until
from tests.harness.kit import KERNELS
from triton_magics.execution.cpu_cores import SHARE
from triton_magics.execution.local.supervisor.process_table import children_of
from triton_magics.execution.scratch import STACK
from triton_magics.harness.process import compile_processes

ROOT = KERNELS.parents[2]
FORMS = """
import json, os, sys, threading
from functools import partial
from pathlib import Path
from triton_magics.harness.process import compile_processes, fork_server
from triton_magics.harness import compile_ahead
from triton_magics.harness.process.device import kernel_runtime
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.languages.kernel_compiler import Target
from triton_magics.harness.load import load_version
from triton_magics.execution.job_requests import OpRef
from triton_magics import operators
from tests.execution_kit import wait_until
from tests.harness.kit import KERNELS, version_of
import torch, triton

fork_server.import_all_modules()
os.cpu_count = lambda: 2
compile_processes.start_compile_processes(compile_ahead.compile_order)
parent = compile_processes._parents[0]
ref = version_of(KERNELS / "softmax_right.py", "softmax")
shapes = [((7, 13), "float32"), ((7, 13), "float16"), ((4, 256), "float32"), ((4, 512), "float32")]
forms = [(shape, dtype, (), ()) for shape, dtype in shapes]
op, own = operators.load("softmax"), OpRef(name="softmax")
with fake_gpu(compile_ahead.META):
    version = load_version(ref)
    ahead = compile_ahead.AheadCompilation(own, ref, forms, Target())
    ahead.wait(partial(compile_ahead.compile_here, op, version))
compile_processes.wait_for_exit()
left = [p for p in Path("/proc").glob("[0-9]*/stat") if f") S {parent} " in p.read_text()]
left += [p for p in [Path(f"/proc/{parent}")] if p.exists()]
cache = Path(os.environ["TRITON_CACHE_DIR"])
made = sorted(p.name for p in cache.rglob("*.cubin"))
entries = sorted(p.name for p in cache.iterdir())
kernel_runtime().use_target(Target(90))
with fake_gpu(compile_ahead.META), kernel_runtime().compile_only():
    for form in forms:
        compile_ahead.compile_form(op, version, form)
again = sorted(p.name for p in cache.iterdir())
print(json.dumps([[str(p) for p in left], len(made), entries == again]))
"""


@pytest.mark.in_turn
def test_results_are_in_the_workers_cache(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    child = subprocess.run(
        [sys.executable, "-c", FORMS], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**env, "TRITON_CACHE_DIR": str(tmp_path), "TRITON_MAGICS_SCRATCH": str(tmp_path)},
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    assert json.loads(child.stdout.splitlines()[-1]) == [[], 4, True]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_lane_has_a_compile_process_for_each_of_its_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setenv(SHARE, "3")
    compile_processes.start_compile_processes(_append)
    assert len(compile_processes._idle_channels) == 3
    compile_processes.wait_for_exit()


def _append(order: dict[str, str]) -> dict[str, str] | None:
    if order["what"] in ("fork", "leave"):
        if not (forked := os.fork()):
            if order["what"] == "leave":
                os.setsid()
            signal.pause()
        Path(order["into"], str(forked)).touch()
    if order["what"] in ("hang", "fork", "leave"):
        signal.pause()
    if order["what"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if "log" in order:
        with Path(order["log"]).open("a") as log:
            log.write(order["what"])
    if order["what"] == "raise":
        raise ValueError
    Path(order["into"], order["what"]).touch()
    return {**order, "what": order["next"], "next": ""} if order.get("next") else None


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    compile_processes.start_compile_processes(_append)
    (parent,) = compile_processes._parents
    while len(compilers := children_of(parent)) < 2 and alive([parent]):
        os.sched_yield()
    return [parent, *compilers]


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def start_batch(whats: list[str], into: Path = Path()) -> compile_processes.CompileBatch:
    """Return a batch that a process has started."""
    batch = compile_processes.submit([{"what": label, "into": str(into)} for label in whats])
    assert batch
    return batch


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_wait_for_some_orders_while_another_hangs(two: list[int], tmp_path: Path) -> None:
    work = start_batch(["hang", "a", "b", "c"], tmp_path)
    assert work.wait({1, 3})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c"]
    assert not work.wait({0}, within_s=0.0)
    work.stop()
    compile_processes.wait_for_exit()
    assert alive(two) == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_free_process_gets_an_order_although_nobody_waits(two: list[int], tmp_path: Path) -> None:
    work = start_batch(["hang", "a", "b", "c"], tmp_path)

    def is_done() -> bool:
        work.advance()
        return len([*tmp_path.iterdir()]) == 3

    wait_until(is_done)
    work.stop()
    work.advance()  # without a process it does nothing


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_orders_of_a_group_run_at_the_same_time_as_others(two: list[int], tmp_path: Path) -> None:
    groups = {"hang": 1, "a": 1, "b": 2, "c": 1, "d": 3}
    orders = [
        {"what": name, "group": group, "into": str(tmp_path), "log": str(tmp_path / "log")}
        for name, group in groups.items()
    ]
    work = compile_processes.submit(orders)
    assert work
    assert work.wait({1, 2, 3, 4})
    assert (tmp_path / "log").read_text() == "bdac"  # as long as one of group 1 does not end
    work.stop()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_order_that_is_alone_waits_for_its_group(two: list[int], tmp_path: Path) -> None:
    groups = {"hang": 1, "a": 1, "b": 2}
    orders = [
        {"what": name, "group": group, "alone": group == 1, "into": str(tmp_path)}
        for name, group in groups.items()
    ]
    work = compile_processes.submit(orders)
    assert work
    assert work.wait({2})
    assert not work.wait({1}, within_s=0.0)
    wait_until(lambda: len(children_of(two[0])) == 1)  # the other has nothing to do
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    work.stop()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_orders_that_are_alone_follow_each_other(two: list[int], tmp_path: Path) -> None:
    orders = [{"what": n, "group": 1, "alone": True, "into": str(tmp_path)} for n in "abc"]
    work = compile_processes.submit(orders)
    assert work
    assert work.wait()
    assert {p.name for p in tmp_path.iterdir()} == {"a", "b", "c"}
    compile_processes.wait_for_exit()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(("label", "is_left"), [("fork", False), ("leave", True)])
def test_stop_ends_programs_of_a_process_and_waits_for_none(
    two: list[int], tmp_path: Path, label: str, is_left: bool
) -> None:
    work = start_batch([label], tmp_path)
    while not (names := os.listdir(tmp_path)) and alive(two[:1]):
        os.sched_yield()
    forked = int(names[0])
    while is_left and os.getsid(forked) != forked:
        os.sched_yield()
    work.stop()
    assert alive(two) == []
    if is_left:
        assert alive([forked])
        os.kill(forked, signal.SIGKILL)
    wait_until(lambda: not alive([forked]) or _is_zombie(forked))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_order_that_kills_its_process_is_dropped(two: list[int], tmp_path: Path) -> None:
    whats = ["a", "die", "b", "c", "d"]
    work = start_batch(whats, tmp_path)
    assert work.wait()
    assert work.failed == set()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c", "d"]
    compile_processes.wait_for_exit()
    assert alive(two) == []
    assert compile_processes.submit([{"what": "e", "into": str(tmp_path)}]) is None


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_order_that_follows_another_is_the_next(two: list[int], tmp_path: Path) -> None:
    log = tmp_path / "log"
    whats = ["hang", "a", "b", "c"]  # one process is left for three of them
    orders = [{"what": label, "into": str(tmp_path), "log": str(log)} for label in whats]
    orders[1]["next"] = "A"
    work = compile_processes.submit(orders)
    assert work
    assert work.wait({1})  # the one that follows is a part of it
    assert (tmp_path / "A").exists()
    assert work.wait({2, 3})
    assert log.read_text() == "aAbc"
    work.stop()
    assert alive(two) == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_failed_order_is_recorded(two: list[int], tmp_path: Path) -> None:
    work = start_batch(["a", "raise", "b", "c"], tmp_path)
    assert work.wait()
    assert work.failed == {1}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c"]
    compile_processes.wait_for_exit()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_no_deadlock_when_all_compile_processes_die(two: list[int], tmp_path: Path) -> None:
    assert start_batch(["die"] * 3).wait()
    compile_processes.wait_for_exit()
    assert alive(two) == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_unused_processes_are_ended(two: list[int]) -> None:
    assert alive(two) == two
    compile_processes.wait_for_exit()
    assert alive(two) == []


def test_no_compile_processes_on_a_single_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    compile_processes.start_compile_processes(_append)
    assert compile_processes.submit([{"what": "a"}]) is None


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_submit_returns_none_when_idle_processes_died(two: list[int]) -> None:
    parent, *rest = two
    for pid in rest:
        os.kill(pid, signal.SIGKILL)
    while alive([parent]) and not _is_zombie(parent):
        os.sched_yield()
    assert compile_processes.submit([{"what": "never"}]) is None
    compile_processes.wait_for_exit()
    assert alive(two) == []


def _is_zombie(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_of_code_under_test_keeps_no_process_alive(two: list[int]) -> None:
    if not (daemon := os.fork()):
        signal.pause()  # holds a copy of each channel, so that no process sees a hang-up
        os._exit(0)
    try:
        compile_processes.wait_for_exit()
        assert not alive(two)
    finally:
        os.kill(daemon, signal.SIGKILL)
        os.waitpid(daemon, 0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("instead", ["nothing", "a file"])
def test_process_with_a_closed_socket_counts_as_dead(
    two: list[int], tmp_path: Path, instead: str
) -> None:
    fd = compile_processes._idle_channels[0].fileno()
    work = start_batch(["hang", "a", "b"], tmp_path)
    os.close(fd)
    if instead == "a file":
        with open(os.devnull) as other:
            os.dup2(other.fileno(), fd)
    try:
        assert work.wait()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]
    finally:
        for pid in two[1:]:
            os.kill(pid, signal.SIGKILL)
        compile_processes.wait_for_exit()


def _catches(pid: int, number: int) -> bool:
    (caught,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_parent_of_compile_processes_writes_no_stack_dump(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with (tmp_path / STACK).open("w") as where:
        faulthandler.register(signal.SIGURG, where)
        parent, *_ = request.getfixturevalue("two")
        assert (_catches(os.getpid(), signal.SIGURG), _catches(parent, signal.SIGURG)) == (
            True,
            False,
        )
        faulthandler.unregister(signal.SIGURG)
    compile_processes.wait_for_exit()


STACK_DUMP = """
import os, signal
from pathlib import Path
import triton
from triton_magics import operators
from triton_magics.execution.scratch import SCRATCH, STACK
from triton_magics.harness import compile_ahead
from triton_magics.harness.process import parent_watch
from triton_magics.harness.load import load_version
from triton_magics.harness.process.device import kernel_runtime
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.languages.kernel_compiler import Target
from tests.execution_kit import wait_until
from tests.harness.kit import KERNELS, version_of

parent_watch.install_stack_dump_handler()
kernel_runtime().use_target(Target(90))
version = load_version(version_of(KERNELS / "softmax_right.py", "softmax"))
with fake_gpu(compile_ahead.META), kernel_runtime().compile_only():
    compile_ahead.compile_form(operators.load("softmax"), version, ((7, 13), "float32", (), ()))

def here():
    os.kill(os.getpid(), signal.SIGURG)

here()
print(Path(os.environ[SCRATCH], STACK).read_text())
"""


@pytest.mark.in_turn
def test_stack_dump_works_after_a_compilation(tmp_path: Path) -> None:
    """LLVM installs handlers of its own, SIGUSR1 among them."""
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    child = subprocess.run(
        [sys.executable, "-c", STACK_DUMP], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**env, "TRITON_CACHE_DIR": str(tmp_path), "TRITON_MAGICS_SCRATCH": str(tmp_path)},
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    assert "in here\n" in child.stdout
