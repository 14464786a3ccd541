# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Nothing outlives its time: daemons, fork bombs, a notebook that is killed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from engine_harness import (  # noqa: F401 (mark, engine: fixtures)
    alive,
    engine,
    mark,
    marked,
    order,
    scripted,
    told,
    wait_until,
)

from triton_magics.engine import Engine
from triton_magics.engine.nanny import home, processes

HERE = Path(__file__).parent


def test_daemons_and_deaf_children_go_with_their_worker(engine: Engine, mark: str) -> None:
    engine.warm()
    wait_until(lambda: engine.state().standby_ready)
    outcome = engine.run(order("leaves_daemons"), key="a")
    assert outcome.status == "finished"
    # What is left: the nanny and the next standby.
    assert len(marked(mark)) <= 2


def test_a_bounded_fork_bomb_is_gone_after_its_deadline(mark: str) -> None:
    engine = scripted(silence_s=0.3)
    outcome = engine.run(order("multiplies"), key="a")
    assert (outcome.status, outcome.stage) == ("timeout", "multiplied")
    assert "not gone yet" not in outcome.detail
    assert len(marked(mark)) <= 2
    assert told(engine.run(order("answers"), key="b"))
    engine.close()


def test_what_an_engine_takes_is_counted_with_what_its_workers_have_started(engine: Engine) -> None:
    seen: list[tuple[int, int]] = []

    def look(_: object) -> None:  # a dozen daemons, one after the other, and their parents
        seen.append((len(engine._crew.pids), len(engine._crew.everybody)))

    engine.run(order("multiplies"), key="a", on_progress=look, timeout_s=0.3)
    known, all_of_them = seen[-1]
    assert all_of_them > known


def test_killing_one_worker_leaves_the_other_alone(engine: Engine) -> None:
    wait_until(lambda: told(engine.run(order("answers"), key="a")))
    wait_until(lambda: engine.state().standby_ready)
    engine.run(order("exits_with_zero"), key="b")
    wait_until(lambda: engine.state().standby_ready)


def test_a_worker_that_kills_the_nanny_has_crashed_and_the_next_job_works(engine: Engine) -> None:
    outcome = engine.run(order("kills_its_parent"), key="a")
    assert outcome.status == "crashed"
    wait_until(lambda: engine.state().standby_ready)  # a new one, started at once
    assert engine.run(order("answers"), key="a").status == "finished"


NOTEBOOK = """
import os, sys
sys.path.insert(0, {here!r})
from engine_harness import order, scripted
engine = scripted()
{before}
engine.run(order("hangs"), on_progress=lambda p: print(p.stage, flush=True))
"""


def notebook(before: str = "") -> subprocess.Popen[str]:
    """A process like a notebook's, in the middle of a job that hangs."""
    code = NOTEBOOK.format(here=str(HERE), before=before)
    env = os.environ | {"PYTHONPATH": str(HERE.parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env
    )
    assert process.stdout is not None
    while process.stdout.readline() != "hanging\n":
        assert process.poll() is None
    return process


def end(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)
    process.wait(10)
    assert process.stdout is not None
    process.stdout.close()


def test_a_notebook_that_is_killed_takes_everything_with_it(mark: str) -> None:
    process = notebook()
    assert len(marked(mark)) >= 3  # itself, its nanny, its worker
    end(process, signal.SIGKILL)
    wait_until(lambda: not marked(mark), within_s=1)


def test_a_forked_copy_of_a_killed_notebook_keeps_no_worker_alive(mark: str) -> None:
    process = notebook("""
engine.warm()
pid = os.fork()
if not pid:
    import signal; signal.pause()
print(pid, flush=True)
""")
    (copy,) = [int(p) for p in children_of(process.pid) if is_copy(int(p), process.pid)]
    end(process, signal.SIGKILL)
    try:
        wait_until(lambda: marked(mark) == [copy], within_s=1)
    finally:
        os.kill(copy, signal.SIGKILL)


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def is_copy(pid: int, of: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes() == Path(f"/proc/{of}/cmdline").read_bytes()


def test_a_notebook_that_ends_takes_everything_with_it(mark: str) -> None:
    process = notebook()
    end(process, signal.SIGTERM)
    wait_until(lambda: not marked(mark), within_s=1)


def test_a_notebook_that_is_interrupted_while_it_exits_leaves_nothing(mark: str) -> None:
    process = notebook()
    end(process, signal.SIGINT)  # the job ends, then the program
    assert process.returncode == 0
    wait_until(lambda: not marked(mark), within_s=1)


def test_a_forked_copy_that_ends_harms_no_worker_of_the_original(engine: Engine) -> None:
    facts = told(engine.run(order("answers"), key="a"))
    copy = os.fork()
    if not copy:
        engine.close()
        os._exit(0)
    os.waitpid(copy, 0)
    assert alive(facts["parent"])
    assert told(engine.run(order("answers"), key="a"))["pid"] == facts["pid"]


def test_a_forked_copy_has_workers_of_its_own(engine: Engine) -> None:
    facts = told(engine.run(order("answers"), key="a"))
    read_end, write_end = os.pipe()
    copy = os.fork()
    if not copy:
        own = told(engine.run(order("answers"), key="a"))
        engine.close()
        os.write(write_end, str(own["parent"]).encode())
        os._exit(0)
    os.waitpid(copy, 0)
    assert int(os.read(read_end, 100)) != facts["parent"]
    assert told(engine.run(order("answers"), key="a"))["pid"] == facts["pid"]
    os.close(read_end)
    os.close(write_end)


# --------------------------------------------------------------------------- its parts


FAMILY = """
import os, signal
kept, pids = bytearray(os.urandom(2**20) * 64), []
for _ in range(5):
    pid = os.fork()
    if not pid:
        break
    pids.append(pid)
else:
    print(os.getpid(), *pids, flush=True)
signal.pause()
"""


def test_memory_that_processes_share_is_counted_once() -> None:
    argv = [sys.executable, "-S", "-c", FAMILY]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as family:
        assert family.stdout is not None
        pids = {int(pid) for pid in family.stdout.readline().split()}
        assert len(pids) == 6
        try:
            assert processes.excess(pids, 160 * 2**20) is None  # six times 64 MiB, all the same
            found = processes.excess(pids, 48 * 2**20)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
    assert found is not None
    assert found["over"] == "memory"


def test_children_are_found_either_way() -> None:
    child = os.fork()
    if not child:
        signal.pause()
    assert child in processes.children()
    assert processes.children() == processes._children_by_parent(os.getpid())
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert child not in processes.children()


def test_folders_of_dead_nannies_are_swept_and_no_others(tmp_path: Path) -> None:
    hour_ago = time.time() - 3600
    for name in ("mine", "dead", "unlocked", "held", "fresh"):
        (tmp_path / name / "1").mkdir(parents=True)
        if name != "unlocked":
            (tmp_path / name / "lock").touch()
        if name != "fresh":
            os.utime(tmp_path / name, (hour_ago, hour_ago))
    with open(tmp_path / "held" / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        home.sweep_stale(str(tmp_path / "mine"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fresh", "held", "mine"]


def test_what_was_compiled_and_nobody_has_used_for_a_month_is_swept(tmp_path: Path) -> None:
    made_by = tmp_path / "compiled" / "2.11.0-3.6.0"
    for name, days in (("old", 31), ("used", 29)):
        (made_by / name / "ENTRY").mkdir(parents=True)
        (made_by / name / "ENTRY" / "kernel.cubin").touch()
        os.utime(made_by / name, (time.time() - days * 86_400,) * 2)
    home.sweep_unused(str(tmp_path / "children" / "mine"))
    assert [p.name for p in made_by.iterdir()] == ["used"]
    home.sweep_unused(str(tmp_path / "nowhere" / "mine"))


def test_nothing_is_swept_over_a_link(tmp_path: Path) -> None:
    others = tmp_path / "others"
    (others / "old").mkdir(parents=True)
    (tmp_path / "compiled" / "made_by").mkdir(parents=True)
    (tmp_path / "compiled" / "link").symlink_to(others)
    (tmp_path / "compiled" / "made_by" / "link").symlink_to(others / "old")
    os.utime(others / "old", (0, 0))
    home.sweep_unused(str(tmp_path / "children" / "mine"))
    assert (others / "old").is_dir()
    assert (tmp_path / "compiled" / "made_by" / "link").is_symlink()


def test_a_claimed_folder_is_not_swept(tmp_path: Path) -> None:
    lock = home.claim(str(tmp_path / "claimed"))
    os.utime(tmp_path / "claimed", (0, 0))
    home.sweep_stale(str(tmp_path / "other"))
    assert (tmp_path / "claimed").exists()
    os.close(lock)
    home.sweep_stale(str(tmp_path / "other"))
    assert not (tmp_path / "claimed").exists()
