"""The process that measures the peak rates for a worker in a sandbox; a script measures here."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.execution_kit import is_running, wait_until
from tests.harness.ceilings_kit import FAILS, GPU, measured_by, rates_of
from tests.harness.kit import Recorder
from triton_magics.config import CEILINGS, cache_dir
from triton_magics.execution import sandbox
from triton_magics.execution.local import sandbox_policy
from triton_magics.execution.protocol import FrameReader, Ready
from triton_magics.harness import __main__ as worker
from triton_magics.harness import warm_up
from triton_magics.harness.correctness import remote_calls
from triton_magics.harness.process import (
    compile_processes,
    device,
    measuring_process,
    subject_process,
    subject_server,
)
from triton_magics.harness.timing import peak_rates


@pytest.fixture(autouse=True)
def scratch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Return a worker's folder; the environment names a sandbox."""
    folder = tmp_path / "scratch"
    (folder / "tmp").mkdir(parents=True)
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    monkeypatch.setenv(sandbox.SCRATCH, str(folder))
    monkeypatch.setenv(sandbox.VARIABLE, sandbox_policy.make_policy("gpu").to_text())
    yield folder
    measuring_process.end()


def start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, folder: str = "scratch"
) -> int:
    """Start the process, with a script that measures; return its pid."""
    measured_by(script, monkeypatch, tmp_path, folder)
    measuring_process.start_if_needed()
    pid = measuring_process.pid()
    assert pid
    return pid


def fork(act: Callable[[], object]) -> int:
    """Return the pid of a fork that calls a function; it exits with 1 if that raises."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        act()
        code = 0
    except BaseException:  # noqa: BLE001 (it must not go on with the tests)
        traceback.print_exc()
    finally:
        os._exit(code)


def is_reaped(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
        return False
    return True


# ------------------------------------------------------------------------------- its results


@pytest.mark.skipif(not sandbox.landlock_abi(), reason="needs Landlock (Linux 5.13)")
def test_it_reads_what_its_worker_in_the_sandbox_can_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text(rates_of({"empty": 0.5}).model_dump_json())

    def judge() -> None:
        start(monkeypatch, tmp_path, f'cp {tmp_path}/outside "$4"')
        sandbox.enter_from_environment(runs_versions=False)
        with pytest.raises(subprocess.CalledProcessError):
            subprocess.run(["cat", tmp_path / "outside"], check=True)
        assert peak_rates.get_peak_rates(GPU, Recorder()) == rates_of({"empty": 0.5})

    assert os.waitstatus_to_exitcode(os.waitpid(fork(judge), 0)[1]) == 0
    path = peak_rates._path(GPU)
    assert os.listdir(path.parent) == [path.name], "its temporary folder is removed"


def test_it_uses_no_file_that_a_version_can_write(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scratch: Path
) -> None:
    """A version could leave code where compilers and Triton look for theirs."""
    monkeypatch.setenv("TMPDIR", str(scratch / "tmp"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(scratch))
    start(monkeypatch, tmp_path, f"env > {tmp_path}/env; mktemp > {tmp_path}/made", ".")
    assert peak_rates.get_peak_rates(GPU, Recorder()) is None
    environment = (tmp_path / "env").read_text()
    own = str(peak_rates._path(GPU).with_suffix(".measuring"))
    assert f"TRITON_CACHE_DIR={own}\n" in environment
    assert str(scratch) not in environment
    assert (tmp_path / "made").read_text().startswith(f"{own}/tmp/")


@pytest.mark.parametrize("waits", [True, False], ids=["its own process", "a plain child"])
def test_a_failure_is_remembered_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    waits: bool,
) -> None:
    script = FAILS.format(folder=tmp_path)
    if waits:
        pid = start(monkeypatch, tmp_path, script)
    else:
        measured_by(script, monkeypatch, tmp_path)
    assert [peak_rates.get_peak_rates(GPU, Recorder()) for _ in range(3)] == [None] * 3
    assert (tmp_path / "runs").read_text() == "ran\n"
    assert capsys.readouterr().err.count("consider passing CUDA_LAUNCH_BLOCKING=1") == 1
    assert peak_rates.describe_failure(GPU) == (
        "peak rates unknown: RuntimeError: no CUDA-capable device is detected; "
        "restart the notebook's kernel, or the server, to measure again"
    )
    assert not waits or is_reaped(pid)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exec tail -f /dev/null", "not finished after 0.2 s"),
        ("exit 3", "the measuring process wrote no file"),
        ("head -c 300000 /dev/zero | tr '\\0' x >&2", "x" * 2000),
        ("kill -9 $$", "the measuring process wrote no file"),
    ],
)
def test_each_end_has_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, reason: str
) -> None:
    pid = start(monkeypatch, tmp_path, script)
    monkeypatch.setattr(peak_rates, "MEASURE_S", 0.2 if "tail" in script else 60.0)
    assert peak_rates.get_peak_rates(GPU, Recorder()) is None
    assert peak_rates.describe_failure(GPU).startswith(f"peak rates unknown: {reason}; restart")
    assert is_reaped(pid)


def test_a_folder_that_can_not_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "file"))
    assert peak_rates.get_peak_rates(GPU, Recorder()) is None
    assert peak_rates.describe_failure(GPU) == (
        f"peak rates unknown: {cache_dir() / CEILINGS} can't be written; "
        "make it writable, or name another folder in TRITON_MAGICS_CACHE"
    )


def test_a_subject_process_leaves_the_measurement_to_its_judge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured_by(FAILS.format(folder=tmp_path), monkeypatch, tmp_path)
    monkeypatch.setattr(subject_server, "_judges", [print])
    assert peak_rates.get_peak_rates(GPU, Recorder()) is None
    assert not (tmp_path / "runs").exists()


# ------------------------------------------------------------------------------ its lifetime


@pytest.mark.parametrize(
    ("gpus", "files", "starts"),
    [
        (["nvidia0"], [], True),
        (["nvidia0", "nvidiactl", "nvidia-uvm"], ["a-580-5.json"], False),
        (["nvidia0", "nvidia1"], ["a-580-5.json"], True),
        (["nvidia0", "nvidia1"], ["a-580-5.json", "b-580-5.json"], False),
        (["nvidia0"], ["a-575-5.json", "a-580-4.json", "a-580-5.measuring"], True),
        (["dxg"], [], True),
    ],
)
def test_it_starts_where_a_gpu_may_be_unmeasured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gpus: list[str], files: list[str], *,
    starts: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(measuring_process, "driver_version", lambda: "580")
    monkeypatch.setattr(measuring_process, "FORMAT", 5)
    for folder, names in ((tmp_path / "dev", gpus), (cache_dir() / CEILINGS, files)):
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).touch()
    monkeypatch.setattr(measuring_process, "DEVICES", tmp_path / "dev")
    measuring_process.start_if_needed()
    assert bool(measuring_process.pid()) == starts


def test_without_a_sandbox_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sandbox.VARIABLE)
    measuring_process.start_if_needed()
    assert measuring_process.pid() is None


def test_it_ends_when_its_worker_hangs_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pid = start(monkeypatch, tmp_path, "exit 0")
    process = measuring_process.take()
    assert process
    assert is_running(pid)
    process._channel.close()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_it_is_reaped_once_the_peak_rates_are_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid = start(monkeypatch, tmp_path, "exit 0")
    peak_rates._path(GPU).write_text(rates_of({}).model_dump_json())
    monkeypatch.setattr(device, "environment", lambda: GPU)
    peak_rates.measure_ahead(Recorder())
    assert is_reaped(pid)
    assert measuring_process.pid() is None


@pytest.mark.parametrize("measures", [False, True], ids=["waiting", "measuring"])
def test_it_dies_with_its_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, measures: bool
) -> None:
    """A fork of the worker holds the channel open, as code under test may."""

    def work() -> None:
        pid = start(monkeypatch, tmp_path, f"touch {tmp_path}/measures; exec tail -f /dev/null")
        holder = fork(signal.pause)
        (tmp_path / "pids").write_text(f"{pid} {holder}")
        os.rename(tmp_path / "pids", tmp_path / "started")
        if measures:
            peak_rates.get_peak_rates(GPU, Recorder())
        signal.pause()

    judge = fork(work)
    wait_until((tmp_path / ("measures" if measures else "started")).exists)
    pid, holder = map(int, (tmp_path / "started").read_text().split())
    assert is_running(pid)
    os.kill(judge, signal.SIGKILL)
    os.waitpid(judge, 0)
    wait_until(lambda: not is_running(pid))
    os.kill(holder, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# -------------------------------------------------------------------------------- the worker


def run_worker(data: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a worker of mode gpu, on a machine without one."""
    monkeypatch.setattr(device, "create_context", lambda mode: GPU)
    monkeypatch.setattr(remote_calls, "name_record", lambda: None)
    monkeypatch.setattr(subject_process, "can_share", lambda link, where: False)
    monkeypatch.setattr(subject_process, "hide_memory", lambda: None)
    monkeypatch.setattr(compile_processes, "start_compile_processes", lambda *_, **__: None)
    monkeypatch.setattr(warm_up, "run", lambda *_: True)
    worker.work("gpu", data.detach())


def sockets(pid: int) -> set[str]:
    """Return the sockets that a process has open."""
    folder = Path(f"/proc/{pid}/fd")
    names = [os.path.realpath(folder / fd) for fd in os.listdir(folder)]
    return {os.path.basename(name) for name in names if "socket:" in name}


def test_the_subject_process_has_no_channel_to_a_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sockets(os.getpid())
    ours, data = socket.socketpair()

    def work() -> None:
        ours.close()
        run_worker(data, monkeypatch)

    judge = fork(work)
    data.close()
    reader, ready = FrameReader(None), []
    while len(ready) < 2:
        ready += reader.feed(ours.recv(2**16))
    last = ready[-1]
    assert isinstance(last, Ready)
    assert (last.pid, {*last.helper_pids} <= {*children_of(judge)}) == (judge, True)
    pids = [judge, last.subject_pid or 0, *last.helper_pids]
    open_there = [sockets(pid) - before for pid in pids]
    assert [len(each) for each in open_there] == [4, 1, 1, 1]
    assert len(set.union(*open_there)) == 7, "no two of them share one"
    ours.close()
    os.waitpid(judge, 0)
    wait_until(lambda: not any(map(is_running, pids)))
