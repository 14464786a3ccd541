"""Tests of the workspace with concurrent writers, kills and full disks."""

import errno
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest
from workspace_kit import (
    cell,
    child,
    database,
    open_workspace,
    visible_state,
    wait_for_output,
    write,
)

from triton_magics.errors import WorkspaceError
from triton_magics.store import sqlite, sqlite_errors
from triton_magics.store.module_header import render

LOG = "logs/softmax_log.jsonl"


def log_lines(path):
    return [json.loads(line) for line in (path / LOG).read_text().splitlines()]


# ------------------------------------------------------------------------------------- crowds

WRITER = """
import sys
from pathlib import Path
from workspace_kit import open_workspace, write
name, n = sys.argv[2], int(sys.argv[3])
with open_workspace(Path(sys.argv[1])) as ws:
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(n):
        write(ws, "v1", f"{name} {i}")
"""


@pytest.mark.parametrize(
    ("n_processes", "n_writes"), [(4, 25), pytest.param(8, 100, marks=pytest.mark.slow)]
)
def test_concurrent_writers_lose_no_attempt(tmp_path, n_processes, n_writes):
    writers = [child(WRITER, tmp_path, name, n_writes) for name in range(n_processes)]
    for process in writers:
        assert process.stdout.readline() == "ready\n"
    for process in writers:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in writers:
        wait_for_output(process)
    expected = {cell(f"{name} {i}") for name in range(n_processes) for i in range(n_writes)}
    with open_workspace(tmp_path) as ws:
        attempts = ws.attempts("softmax", "v1")
        assert [s.attempt for s in attempts] == list(range(1, n_processes * n_writes + 1))
        assert {s.source for s in attempts} == expected
        assert (tmp_path / attempts[-1].path).read_bytes() == render(attempts[-1])
    assert [e["attempt"] for e in log_lines(tmp_path)] == [s.attempt for s in attempts]


# -------------------------------------------------------------------------------------- kills

LOOP = """
import itertools, sys
from pathlib import Path
from workspace_kit import open_workspace, write
with open_workspace(Path(sys.argv[1])) as ws:
    for i in itertools.count(int(sys.argv[2])):
        print(write(ws, "v1", i).attempt, i, flush=True)
"""


@pytest.mark.parametrize("n_kills", [5, pytest.param(25, marks=pytest.mark.slow)])
def test_kill_during_a_write_loses_nothing_acknowledged(tmp_path, n_kills):
    chance = random.Random(n_kills)
    acknowledged = {}
    for kill in range(n_kills):
        process = child(LOOP, tmp_path, 1000 * kill)
        for _ in range(chance.randint(1, 12)):
            attempt, mark = process.stdout.readline().split()
            acknowledged[int(attempt)] = int(mark)
        spin_until = time.perf_counter() + chance.uniform(0, 0.004)
        while time.perf_counter() < spin_until:
            pass
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate(timeout=60)
        for line in rest.splitlines():
            if line.count(" ") == 1:
                attempt, mark = line.split()
                acknowledged[int(attempt)] = int(mark)
        assert_whole(tmp_path, acknowledged)


def assert_whole(path, acknowledged):
    """Check that every acknowledged attempt exists, and that file, store and log agree."""
    with open_workspace(path) as ws:
        ws.sync("softmax", "v1")  # the kill may have come between the file and the store
        by_number = {s.attempt: s for s in ws.attempts("softmax", "v1")}
        newest = by_number[max(by_number)]
        assert {n: by_number[n].source for n in acknowledged} == {
            n: cell(mark) for n, mark in acknowledged.items()
        }
        assert (path / newest.path).read_bytes() == render(newest)
        before = visible_state(ws)
    assert {e["attempt"] for e in log_lines(path)} == set(by_number)
    with closing(sqlite3.connect(database(path))) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with open_workspace(path) as ws:
        assert visible_state(ws) == before


def test_temporary_files_are_removed_after_an_hour(tmp_path):
    with open_workspace(tmp_path):
        pass
    temporary = tmp_path / ".triton_magics" / "tmp"
    for name, age_s in (("old.tmp", 3700), ("new.tmp", 60)):
        (temporary / name).write_text("half")
        os.utime(temporary / name, (time.time() - age_s,) * 2)
    with open_workspace(tmp_path):
        assert [p.name for p in temporary.iterdir()] == ["new.tmp"]


# -------------------------------------------------------------------------------------- locks

HOLDER = """
import sqlite3, sys
conn = sqlite3.connect(sys.argv[1], isolation_level=None)
conn.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("is_network", [False, True])
def test_the_process_that_has_locked_the_store_is_named(tmp_path, monkeypatch, is_network):
    assert sqlite_errors.TIMEOUT_S <= 4.5  # the holder is named within 5 s
    monkeypatch.setattr(sqlite_errors, "TIMEOUT_S", 0.1)
    monkeypatch.setattr(sqlite, "is_network", lambda *_: is_network)  # without a write-ahead log
    with open_workspace(tmp_path) as ws:
        write(ws, "v1", 1)
        holder = child(HOLDER, database(tmp_path))
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(
            WorkspaceError, match=rf"process {holder.pid} \(.* has locked"
        ) as caught:
            write(ws, "v1", 2)
        assert "\n" not in str(caught.value)
        holder.communicate()
        assert write(ws, "v1", 2).attempt == 2


# --------------------------------------------------------------------------------- full disks

UNTIL_FULL = """
import sys
from pathlib import Path
from triton_magics.errors import WorkspaceError
from workspace_kit import open_workspace, write
{limit}
with open_workspace(Path(sys.argv[1])) as ws:
    for i in range(10_000):
        try:
            print(write(ws, "v1", "x" * 2000 + str(i)).attempt)
        except WorkspaceError as error:
            words = str(error)
            break
    {unlimit}
    assert "is full" in words, words
    assert "saving softmax v1 failed" in words, words
    source = ws.source("softmax", "v1")
    print("held", source.attempt, len(ws.attempts("softmax", "v1")))
"""
SOFT = "import resource; hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
SET = "resource.setrlimit(resource.RLIMIT_FSIZE, ({}, hard))"


def assert_intact_after_full(path, out):
    *acknowledged, last_line = out.splitlines()
    last = int(acknowledged[-1])
    assert last >= 3
    assert last_line == f"held {last} {last}"
    with open_workspace(path) as ws:
        attempt = ws.sync("softmax", "v1")  # the new code may have reached the file, not the store
        assert attempt is None or attempt.attempt == last + 1
        assert len(ws.attempts("softmax", "v1")) >= last
        before = ws.source("softmax", "v1").attempt
        assert write(ws, "v1", "there is room again").attempt == before + 1
        assert len(log_lines(path)) == before + 1
    assert list((path / ".triton_magics" / "tmp").iterdir()) == []


def test_file_size_limit_loses_nothing(tmp_path):
    limit, unlimit = SOFT + SET.format(1_000_000), SET.format("hard")
    out = wait_for_output(child(UNTIL_FULL.format(limit=limit, unlimit=unlimit), tmp_path))
    assert_intact_after_full(tmp_path, out)


def small_disk():
    """Return the command that runs a program with a 1 MiB disk; None if it is not allowed."""
    command = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=1m none "$0" && exec "$@"']
    probe = Path(tempfile.gettempdir())
    if not shutil.which("unshare"):
        return None
    allowed = subprocess.run([*command, str(probe), "true"], capture_output=True, check=False)
    return command if allowed.returncode == 0 else None


def test_full_disk_loses_nothing(tmp_path):
    command = small_disk()
    if command is None:
        pytest.skip("may not mount a small disk here")
    disk = tmp_path / "disk"
    disk.mkdir()
    # Within the small disk; what is left of it is copied out before it goes.
    code = UNTIL_FULL.format(limit="", unlimit="") + (
        "import shutil; shutil.copytree(sys.argv[1], sys.argv[2])\n"
    )
    copy = tmp_path / "copy"
    process = child(code, disk / "ws", copy, prefix=[*command, str(disk)])
    assert_intact_after_full(copy, wait_for_output(process))


def test_unwritable_log_is_reported_and_completed_later(tmp_path):
    with open_workspace(tmp_path) as ws:
        write(ws, "v1", 1)
        whole = (tmp_path / LOG).read_bytes()
        (tmp_path / LOG).unlink()
        (tmp_path / LOG).mkdir()
        write(ws, "v1", 2)
        assert len(ws.notes) == 1
        assert f"{LOG} lags behind the store" in ws.notes[0]
        (tmp_path / LOG).rmdir()
        write(ws, "v1", 3)
    assert (tmp_path / LOG).read_bytes().startswith(whole)
    assert [e["attempt"] for e in log_lines(tmp_path)] == [1, 2, 3]


def test_append_is_all_or_nothing(tmp_path):
    code = SOFT + (
        "import sys, errno\nfrom pathlib import Path\n"
        "from triton_magics.store.safe_files import Folder\n"
        "folder = Folder(Path(sys.argv[1]))\n"
        "folder.append('log', b'a' * 900)\n" + SET.format(1000) + "\n"
        "try: folder.append('log', b'b' * 900)\n"
        "except OSError as error: print(errno.errorcode[error.errno], folder.size('log'))\n"
    )
    assert wait_for_output(child(code, tmp_path)) == f"{errno.errorcode[errno.ENOSPC]} 900\n"
