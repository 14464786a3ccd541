# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Nothing outlives its time: daemons, fork bombs, a notebook that is killed."""

from __future__ import annotations

import fcntl
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from execution_kit import (  # noqa: F401 (process_tag, engine, limits_clock: fixtures)
    PAST_SILENCE_S,
    LimitsClock,
    cancel_running,
    engine,
    is_running,
    limits_clock,
    process_state,
    process_tag,
    read_facts,
    run,
    scripted_executor,
    scripted_job,
    tagged_processes,
    wait_until,
)

from triton_magics.execution import LocalExecutor, scratch
from triton_magics.execution.local import supervisor_client, supervisor_process
from triton_magics.execution.local.supervisor import process_table, scratch_folders
from triton_magics.execution.protocol import Progress

HERE = Path(__file__).parent


def test_daemons_and_deaf_children_go_with_their_worker(
    engine: LocalExecutor, process_tag: str
) -> None:
    engine.warm()
    wait_until(lambda: engine.state().standby_ready)
    outcome = run(engine, scripted_job("leaves_daemons"), key="a")
    assert outcome.status == "finished"
    # Left: the supervisor and the next standby.
    assert len(tagged_processes(process_tag)) <= 2


def test_a_bounded_fork_bomb_is_gone_after_its_deadline(
    engine: LocalExecutor,
    limits_clock: LimitsClock,
    process_tag: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("triton_magics.execution.local.device_queue.KILL_S", 60.0)
    listen = limits_clock.after("multiplied", PAST_SILENCE_S)
    outcome = run(engine, scripted_job("multiplies"), key="a", on_progress=listen)
    assert (outcome.status, outcome.stage) == ("timeout", "multiplied")
    assert "not gone yet" not in outcome.detail
    assert len(tagged_processes(process_tag)) <= 2
    assert read_facts(run(engine, scripted_job("answers"), key="b"))


def test_an_ended_process_does_not_run_though_it_is_not_reaped() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not process_table.is_running(process.pid)
    assert not process_table.is_running(process.pid)
    assert process_table.is_running(os.getpid())


def test_executor_processes_include_children_of_workers(
    engine: LocalExecutor,
) -> None:
    counts: list[tuple[int, int]] = []

    def look(progress: Progress) -> None:  # twenty daemons, one after the other, and parents
        if progress.stage == "multiplied":
            counts.append((len(engine.queue().pool.pids), len(engine.queue().pool.processes)))
            cancel_running(engine)

    run(engine, scripted_job("multiplies"), key="a", on_progress=look)
    ((n_workers, n_processes),) = counts
    assert n_processes > n_workers


def test_killing_one_worker_leaves_the_other_alone(engine: LocalExecutor) -> None:
    wait_until(lambda: read_facts(run(engine, scripted_job("answers"), key="a")))
    wait_until(lambda: engine.state().standby_ready)
    run(engine, scripted_job("exits_with_zero"), key="b")
    wait_until(lambda: engine.state().standby_ready)


def test_a_worker_that_kills_the_supervisor_crashed(
    engine: LocalExecutor,
) -> None:
    outcome = run(engine, scripted_job("kills_its_parent"), key="a")
    assert outcome.status == "crashed"
    wait_until(lambda: engine.state().standby_ready)  # a new one, started at once
    assert run(engine, scripted_job("answers"), key="a").status == "finished"


def test_a_worker_of_a_lost_supervisor_ends_no_later_one(engine: LocalExecutor) -> None:
    pool = engine.queue().pool
    worker = pool.take("interpreter", "a")
    wait_until(lambda: pool.poll(0) or worker.ready)
    os.kill(pool.pids[0], signal.SIGKILL)
    wait_until(lambda: pool.poll(0) or not pool.is_up)
    pool.prepare("interpreter")  # a new supervisor, which counts its workers from 1 again
    assert pool.retire(worker)
    wait_until(lambda: engine.state().standby_ready)


def test_a_worker_that_is_gone_is_reported_once(tmp_path: Path) -> None:
    """Its end and the command to kill it may cross."""
    client = supervisor_client.SupervisorClient(tmp_path / "children", {**os.environ})
    try:
        worker = client.spawn("interpreter", [sys.executable, "-c", "exit(3)"], os.environ, "/")
        wait_until(lambda: client.poll(0.05) or worker.exit)
        client._supervisor.command({"do": "kill", "id": worker.number})
        wait_until(lambda: client.poll(0.05) or client._supervisor._pinged_at is None)
        assert str(worker.exit) == "exit code 3"
    finally:
        client.close()


def test_daemons_of_a_lost_supervisor_end_with_it(engine: LocalExecutor) -> None:
    engine.warm()
    wait_until(lambda: engine.state().standby_ready)
    name = engine.queue().pool._supervisor._home.name
    marked = {**os.environ, process_table.MARK: name}
    other = {**os.environ, process_table.MARK: f"{name}0"}
    argv = ["sleep", "60"]
    with (
        subprocess.Popen(argv, env=marked) as daemon,
        subprocess.Popen(argv, env=other) as stranger,
    ):
        os.kill(engine.queue().pool.pids[0], signal.SIGKILL)
        wait_until(lambda: engine.warm() or daemon.poll() is not None)
        assert daemon.returncode == -signal.SIGKILL
        assert stranger.poll() is None
        stranger.kill()


def stop_supervisor(engine: LocalExecutor) -> int:
    pid = engine.queue().pool.pids[0]
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: process_state(pid) == b"T")
    return pid


def test_jobs_go_on_after_the_supervisor_is_stopped(engine: LocalExecutor) -> None:
    run(engine, scripted_job("answers"), key="a")
    stop_supervisor(engine)
    for key in "bcd":
        assert run(engine, scripted_job("answers"), key=key).status == "finished"


def test_supervisor_that_does_not_respond_is_replaced(
    engine: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits_clock = LimitsClock()
    for module in (supervisor_client, supervisor_process):
        monkeypatch.setattr(module, "time", limits_clock)
    monkeypatch.setattr(supervisor_process, "RESUME_S", float("inf"))
    run(engine, scripted_job("answers"), key="a")
    first = stop_supervisor(engine)
    engine.queue().pool._supervisor.ping()
    limits_clock.skip(supervisor_process.ANSWER_S)
    for key in "bcd":
        assert run(engine, scripted_job("answers"), key=key).status == "finished"
    assert engine.queue().pool.pids[0] != first
    wait_until(lambda: not is_running(first))


def test_closing_ends_a_stopped_supervisor(
    engine: LocalExecutor, process_tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_process, "CLOSE_S", 0.5)
    run(engine, scripted_job("answers"), key="a")
    stop_supervisor(engine)
    engine.close()
    wait_until(lambda: not tagged_processes(process_tag))
    run(engine, scripted_job("answers"), key="a")
    with keep_stopped(stop_supervisor(engine)):
        engine.close()
        wait_until(lambda: not tagged_processes(process_tag))


@contextmanager
def keep_stopped(pid: int) -> Iterator[None]:
    """Stop a process again each time it is continued."""
    done = threading.Event()

    def stop() -> None:
        while not done.wait(0.0005):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    yield
    done.set()
    thread.join()


NOTEBOOK = """
import os, sys
sys.path.insert(0, {here!r})
from execution_kit import scripted_job, run, scripted_executor
engine = scripted_executor()
{before}
run(engine, scripted_job("hangs"), on_progress=lambda p: print(p.stage, flush=True))
"""


def notebook(before: str = "") -> subprocess.Popen[str]:
    """Start a process like a notebook's, whose job hangs."""
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
    process.wait(60)
    assert process.stdout is not None
    process.stdout.close()


def test_a_notebook_that_is_killed_takes_everything_with_it(process_tag: str) -> None:
    process = notebook()
    assert len(tagged_processes(process_tag)) >= 3  # itself, its supervisor, its worker
    end(process, signal.SIGKILL)
    wait_until(lambda: not tagged_processes(process_tag))


def test_a_fork_of_a_killed_notebook_keeps_no_worker(process_tag: str) -> None:
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
        wait_until(lambda: tagged_processes(process_tag) == [copy])
    finally:
        os.kill(copy, signal.SIGKILL)


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def is_copy(pid: int, of: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes() == Path(f"/proc/{of}/cmdline").read_bytes()


def test_a_notebook_that_ends_takes_everything_with_it(process_tag: str) -> None:
    process = notebook()
    end(process, signal.SIGTERM)
    wait_until(lambda: not tagged_processes(process_tag))


def test_an_interrupted_exit_leaves_no_process(process_tag: str) -> None:
    process = notebook()
    end(process, signal.SIGINT)  # the job ends, then the program
    assert process.returncode == 0
    wait_until(lambda: not tagged_processes(process_tag))


def test_a_forked_copy_that_ends_harms_no_worker_of_the_original(engine: LocalExecutor) -> None:
    facts = read_facts(run(engine, scripted_job("answers"), key="a"))
    copy = os.fork()
    if not copy:
        engine.close()
        os._exit(0)
    os.waitpid(copy, 0)
    assert is_running(facts["parent"])
    assert read_facts(run(engine, scripted_job("answers"), key="a"))["pid"] == facts["pid"]


def test_a_forked_copy_has_workers_of_its_own(engine: LocalExecutor) -> None:
    facts = read_facts(run(engine, scripted_job("answers"), key="a"))
    read_end, write_end = os.pipe()
    copy = os.fork()
    if not copy:
        own = read_facts(run(engine, scripted_job("answers"), key="a"))
        engine.close()
        os.write(write_end, str(own["parent"]).encode())
        os._exit(0)
    os.waitpid(copy, 0)
    assert int(os.read(read_end, 100)) != facts["parent"]
    assert read_facts(run(engine, scripted_job("answers"), key="a"))["pid"] == facts["pid"]
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
            assert process_table.excess(pids, 160 * 2**20) is None  # six times 64 MiB, all the same
            excess = process_table.excess(pids, 48 * 2**20)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
    assert excess is not None
    assert excess["over"] == "memory"


def test_too_many_processes_are_an_excess() -> None:
    limit = process_table.MAX_PROCESSES
    assert process_table.excess(set(range(-limit, 0)), 2**40) is None
    excess = process_table.excess(set(range(-limit - 1, 0)), 2**40)
    assert excess == {"over": "processes", "error": f"it started more than {limit} processes"}


@pytest.mark.parametrize(("cores", "limit"), [(2, 128), (16, 128), (96, 768)])
def test_the_limit_of_processes_grows_with_the_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, limit: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert runpy.run_path(process_table.__file__)["MAX_PROCESSES"] == limit


def test_children_are_found_either_way() -> None:
    child = os.fork()
    if not child:
        signal.pause()
    assert child in process_table.children()
    # Processes of other tests may end between the two.
    wait_until(lambda: process_table.children() == process_table._children_by_parent(os.getpid()))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert child not in process_table.children()


def test_folders_of_dead_nannies_are_swept_and_no_others(tmp_path: Path) -> None:
    hour_ago = time.time() - 3600
    own, dead, unlocked, locked, fresh = (scratch.new_name() for _ in range(5))
    others = ["worktrees", "f" * 11, "f" * 13, "g" * 12]
    for name in (own, dead, unlocked, locked, fresh, *others):
        (tmp_path / name / "1").mkdir(parents=True)
        if name not in (unlocked, *others):
            (tmp_path / name / "lock").touch()
        if name != fresh:
            os.utime(tmp_path / name, (hour_ago, hour_ago))
    with open(tmp_path / locked / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        scratch_folders.sweep_stale(str(tmp_path / own))
    assert {p.name for p in tmp_path.iterdir()} == {fresh, locked, own, *others}


def test_the_folder_of_a_killed_process_is_swept(tmp_path: Path) -> None:
    script = """
import signal
from triton_magics.harness import job_sources
print(job_sources.write("x = 1", "own.py"), flush=True)
signal.pause()
"""
    children = tmp_path / "triton_magics" / "children"
    home = str(children / scratch.new_name())
    env = {**os.environ, "TRITON_MAGICS_CACHE": str(tmp_path), "TMPDIR": str(tmp_path)}
    env.pop(scratch.SCRATCH, None)
    argv = [sys.executable, "-c", script]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        written = Path(process.stdout.readline().strip())
        try:
            (folder,) = children.iterdir()
            os.utime(folder, (0, 0))
            scratch_folders.sweep_stale(home)
            assert written.is_relative_to(folder)
            assert written.read_text() == "x = 1"
        finally:
            process.kill()
    scratch_folders.sweep_stale(home)
    assert [p.name for p in tmp_path.rglob("*")] == ["triton_magics", "children"]


def test_a_fork_server_warms_up_in_a_folder_of_its_supervisor(tmp_path: Path) -> None:
    """A fork server that is killed meanwhile leaves nothing in the temporary folder."""
    home = tmp_path / "children" / scratch.new_name()
    script = f"""
import os, signal
from triton_magics.harness import job_sources
with job_sources.temporary_scratch():
    os.makedirs(os.environ["{scratch.SCRATCH}"] + "/sources")
    open("{tmp_path}/warms_up", "w")
    signal.pause()
"""
    env = {**os.environ, "TRITON_MAGICS_CACHE": str(tmp_path), "TMPDIR": str(tmp_path)}
    client = supervisor_client.SupervisorClient(home, env)
    try:
        client.open_fork_server([sys.executable, "-c", script], env)
        wait_until((tmp_path / "warms_up").exists)
        assert [p.name for p in home.glob("*/sources")] == ["sources"]
    finally:
        client.close()
    wait_until(lambda: {p.name for p in tmp_path.iterdir()} == {"warms_up", "children"})
    assert list((tmp_path / "children").iterdir()) == []


@pytest.mark.parametrize("root", ["compiled", "shared"])
def test_compiled_files_unused_for_a_month_are_removed(tmp_path: Path, root: str) -> None:
    made_by = tmp_path / root / "2.11.0-3.6.0"
    for name, days in (("old", 31), ("used", 29)):
        (made_by / name / "ENTRY").mkdir(parents=True)
        (made_by / name / "ENTRY" / "kernel.cubin").touch()
        os.utime(made_by / name, (time.time() - days * 86_400,) * 2)
    scratch_folders.sweep_unused(str(tmp_path / "children" / "mine"))
    assert [p.name for p in made_by.iterdir()] == ["used"]
    scratch_folders.sweep_unused(str(tmp_path / "nowhere" / "mine"))


def test_nothing_is_swept_over_a_link(tmp_path: Path) -> None:
    others = tmp_path / "others"
    (others / "old").mkdir(parents=True)
    (tmp_path / "compiled" / "made_by").mkdir(parents=True)
    (tmp_path / "compiled" / "link").symlink_to(others)
    (tmp_path / "compiled" / "made_by" / "link").symlink_to(others / "old")
    os.utime(others / "old", (0, 0))
    scratch_folders.sweep_unused(str(tmp_path / "children" / "mine"))
    assert (others / "old").is_dir()
    assert (tmp_path / "compiled" / "made_by" / "link").is_symlink()


def test_a_claimed_folder_is_not_swept(tmp_path: Path) -> None:
    claimed = tmp_path / scratch.new_name()
    lock = scratch_folders.claim(str(claimed))
    os.utime(claimed, (0, 0))
    scratch_folders.sweep_stale(str(tmp_path / "other"))
    assert claimed.exists()
    os.close(lock)
    scratch_folders.sweep_stale(str(tmp_path / "other"))
    assert not claimed.exists()


def test_a_folder_of_any_depth_and_rights_is_removed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    removed = tmp_path / "removed"
    (removed / "shut" / "inner").mkdir(parents=True)
    (removed / "shut" / "inner" / "link").symlink_to(outside)
    (removed / "link").symlink_to(outside)
    (removed / "shut").chmod(0)
    start = os.getcwd()
    os.chdir(removed)
    for _ in range(3_000):
        os.mkdir("deep")
        os.chdir("deep")
    os.chdir(start)
    scratch_folders.remove_tree(str(removed))
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "kept").exists()


def test_what_cannot_be_removed_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").touch()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    scratch_folders.remove_tree(str(tmp_path / "link"))
    scratch_folders.remove_tree(str(tmp_path / "file"))
    scratch_folders.remove_tree(str(tmp_path / "missing"))
    assert (tmp_path / "file").exists()
    assert (tmp_path / "folder" / "kept").exists()
