"""Processes that compile beside a worker: what they make is found, and none of them is left."""

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

from tests.worker.harness import KERNELS
from triton_magics.engine.nanny.processes import children_of
from triton_magics.engine.protocol import WHERE
from triton_magics.worker import compilers

ROOT = KERNELS.parents[2]
FORMS = """
import json, os, sys, threading
from pathlib import Path
from triton_magics.worker import compilers, precompile, zygote
from triton_magics.worker.pretend import StubDriver, pretending
from triton_magics.worker.load import load_version
from triton_magics.engine.protocol import OpRef
from triton_magics import ops
from tests.worker.harness import KERNELS, version_of
import torch, triton

zygote.load_all()
os.cpu_count = lambda: 2
compilers.stand_by(precompile.obey)
parent = compilers._parents[0]
ref = version_of(KERNELS / "softmax_right.py", "softmax")
forms = [((7, 13), "float32"), ((7, 13), "float16"), ((4, 256), "float32"), ((4, 512), "float32")]
op, own = ops.load("softmax"), OpRef(name="softmax")
with pretending(precompile.META, 90):
    version = load_version(ref)
    precompile.Ahead(own, ref, forms, precompile.Target()).wait(op, version)
compilers.end()
left = [p for p in Path("/proc").glob("[0-9]*/stat") if f") S {parent} " in p.read_text()]
left += [p for p in [Path(f"/proc/{parent}")] if p.exists()]
cache = Path(os.environ["TRITON_CACHE_DIR"])
made = sorted(p.name for p in cache.rglob("*.cubin"))
entries = sorted(p.name for p in cache.iterdir())
triton.runtime.driver.set_active(StubDriver(90))
with pretending(precompile.META, 90), precompile.only_compiling():
    for form in forms:
        precompile.compile_form(op, version, form)
again = sorted(p.name for p in cache.iterdir())
print(json.dumps([[str(p) for p in left], len(made), entries == again]))
"""


def test_what_they_compile_is_found_in_the_workers_cache(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    told = subprocess.run(
        [sys.executable, "-c", FORMS], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**env, "TRITON_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout.splitlines()[-1]) == [[], 4, True]


def _append(order: dict[str, str]) -> None:
    if order["what"] == "fork":
        if not (forked := os.fork()):
            signal.pause()
        Path(order["into"], str(forked)).touch()
    if order["what"] in ("hang", "fork"):
        signal.pause()
    if order["what"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if order["what"] == "raise":
        raise ValueError
    Path(order["into"], order["what"]).touch()


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    compilers.stand_by(_append)
    (parent,) = compilers._parents
    while len(made := children_of(parent)) < 2 and alive([parent]):
        os.sched_yield()
    return [parent, *made]


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def begun(whats: list[str], into: Path = Path()) -> compilers.Work:
    """Orders that someone has taken."""
    work = compilers.begin([{"what": what, "into": str(into)} for what in whats])
    assert work
    return work


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_some_can_be_waited_for_while_another_does_not_end(two: list[int], tmp_path: Path) -> None:
    work = begun(["hang", "a", "b", "c"], tmp_path)
    assert work.wait({1, 3})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c"]
    assert not work.wait({0}, within_s=0.0)
    work.stop()
    compilers.end()
    assert alive(two) == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_one_of_them_has_forked_keeps_nobody_waiting(two: list[int], tmp_path: Path) -> None:
    work = begun(["fork"], tmp_path)
    while not (names := os.listdir(tmp_path)) and alive(two[:1]):
        os.sched_yield()
    forked = int(names[0])
    work.stop()
    assert alive(two) == []
    assert alive([forked])
    os.kill(forked, signal.SIGKILL)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_order_that_kills_its_process_is_dropped_and_the_rest_is_done(
    two: list[int], tmp_path: Path
) -> None:
    whats = ["a", "die", "b", "c", "d"]
    work = begun(whats, tmp_path)
    assert work.wait()
    assert work.failed == set()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c", "d"]
    compilers.end()
    assert alive(two) == []
    assert compilers.begin([{"what": "e", "into": str(tmp_path)}]) is None


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_fails_there_is_told_and_the_rest_is_done(two: list[int], tmp_path: Path) -> None:
    work = begun(["a", "raise", "b", "c"], tmp_path)
    assert work.wait()
    assert work.failed == {1}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c"]
    compilers.end()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_where_all_of_them_die_nobody_waits(two: list[int], tmp_path: Path) -> None:
    assert begun(["die"] * 3).wait()
    compilers.end()
    assert alive(two) == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_those_that_were_not_needed_are_ended(two: list[int]) -> None:
    assert alive(two) == two
    compilers.end()
    assert alive(two) == []


def test_none_stand_by_on_a_single_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    compilers.stand_by(_append)
    assert compilers.begin([{"what": "a"}]) is None


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_who_died_while_standing_by_leaves_the_work_to_threads(two: list[int]) -> None:
    parent, *rest = two
    for pid in rest:
        os.kill(pid, signal.SIGKILL)
    while alive([parent]) and not _is_zombie(parent):
        os.sched_yield()
    assert compilers.begin([{"what": "never"}]) is None
    compilers.end()
    assert alive(two) == []


def _is_zombie(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_the_code_under_test_has_forked_keeps_none_of_them(two: list[int]) -> None:
    if not (daemon := os.fork()):
        signal.pause()  # with a copy of our end to each, so that none of them sees it closed
        os._exit(0)
    try:
        compilers.end()
        assert not alive(two)
    finally:
        os.kill(daemon, signal.SIGKILL)
        os.waitpid(daemon, 0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("instead", ["nothing", "a file"])
def test_one_whose_socket_the_code_under_test_closes_counts_as_dead(
    two: list[int], tmp_path: Path, instead: str
) -> None:
    talk = compilers._standing_by[0].fileno()
    work = begun(["hang", "a", "b"], tmp_path)
    os.close(talk)
    if instead == "a file":
        with open(os.devnull) as other:
            os.dup2(other.fileno(), talk)
    try:
        assert work.wait()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]
    finally:
        for pid in two[1:]:
            os.kill(pid, signal.SIGKILL)
        compilers.end()


def _catches(pid: int, number: int) -> bool:
    (caught,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_who_waits_for_them_does_not_say_in_the_workers_name_where_it_is(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with (tmp_path / WHERE).open("w") as where:
        faulthandler.register(signal.SIGURG, where)
        parent, *_ = request.getfixturevalue("two")
        assert (_catches(os.getpid(), signal.SIGURG), _catches(parent, signal.SIGURG)) == (
            True,
            False,
        )
        faulthandler.unregister(signal.SIGURG)
    compilers.end()


ASKED = """
import os, signal
from pathlib import Path
import triton
from triton_magics import ops
from triton_magics.engine.protocol import WHERE
from triton_magics.worker import precompile, watch
from triton_magics.worker.load import load_version
from triton_magics.worker.pretend import StubDriver, pretending
from tests.worker.harness import KERNELS, version_of

watch.tell_where_when_asked()
triton.runtime.driver.set_active(StubDriver(90))
version = load_version(version_of(KERNELS / "softmax_right.py", "softmax"))
with pretending(precompile.META, 90), precompile.only_compiling():
    precompile.compile_form(ops.load("softmax"), version, ((7, 13), "float32"))

def here():
    os.kill(os.getpid(), signal.SIGURG)

here()
print(Path(os.environ["TRITON_CACHE_DIR"], WHERE).read_text())
"""


def test_who_has_compiled_still_tells_where_it_is(tmp_path: Path) -> None:
    """LLVM takes some signals for itself, SIGUSR1 among them."""
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    told = subprocess.run(
        [sys.executable, "-c", ASKED], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**env, "TRITON_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert "in here\n" in told.stdout
