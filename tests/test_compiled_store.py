"""Compiled code outlives a confined worker, and a version can change only its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from execution_kit import VERSION, run

from tests.faults.engine.fault_lab import RIGHT
from triton_magics.config import OUTBOX, SHARED, Settings, cache_dir
from triton_magics.execution import LocalExecutor, sandbox
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import CompileJob, RunJob
from triton_magics.execution.local import compiled_store
from triton_magics.languages.python_source import sha256_of

needs_landlock = pytest.mark.skipif(not sandbox.landlock_abi(), reason="needs Landlock")


def version(source: str) -> VersionRef:
    return VersionRef(
        version="v1_baseline", attempt=1, source=source, sha256=sha256_of(source),
        entry="triton_relu", header_lines=0, cell_offset=1, shown_path="v1.py",
    )  # fmt: skip


def list_published() -> set[str]:
    """Return the paths of all published files and empty entries."""
    root = cache_dir() / "compiled"
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() or not [*p.iterdir()]}


# -------------------------------------------------------------------------- an untrusted folder

JOB = RunJob(op=OpRef(name="relu"), version=VERSION)
SHA = VERSION.sha256[:24]


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a worker's entries."""
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "scratch" / OUTBOX / "2.13-3.7"
    folder.mkdir(parents=True)
    return folder


def publish(entries: Path) -> int:
    return compiled_store.publish(entries.parents[1], JOB)


def test_entries_are_published_once_under_the_versions_hash(entries: Path) -> None:
    (entries / "form-1").mkdir()
    (entries / "ABC").mkdir()
    (entries / "ABC" / "kernel.cubin").write_bytes(b"code")
    assert (publish(entries), publish(entries)) == (2, 0)
    assert list_published() == {f"2.13-3.7/{SHA}/form-1", f"2.13-3.7/{SHA}/ABC/kernel.cubin"}


def test_links_and_special_files_are_not_published(entries: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("correct horse")
    for name in ("FILE", "PIPE"):
        (entries / name).mkdir()
    (entries / "FILE" / "key").symlink_to(secret / "key")
    os.mkfifo(entries / "PIPE" / "pipe")
    (entries / "FOLDER").symlink_to(secret)
    (entries / "text").write_text("no folder")
    (entries.parent / "3.0-3.0").symlink_to(secret.parent)
    assert publish(entries) == 0
    assert list_published() == {f"2.13-3.7/{SHA}", f"3.0-3.0/{SHA}"}


@pytest.mark.parametrize("name", [".hidden", "a b", "é", "-x"])
def test_odd_names_are_not_published(entries: Path, name: str) -> None:
    (entries / name).mkdir()
    assert publish(entries) == 0


def test_more_than_any_kernel_needs_is_not_published(
    entries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_store, "MAX_BYTES", 1_000)
    for name in ("FIRST", "SECOND"):
        (entries / name).mkdir()
        (entries / name / "kernel.cubin").write_bytes(bytes(700))
    assert publish(entries) == 1


def test_no_outbox_is_no_error(tmp_path: Path) -> None:
    assert compiled_store.publish(tmp_path, JOB) == 0


# -------------------------------------------------------------------------- confined workers


@pytest.fixture
def confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalExecutor]:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "cache"))
    executor = LocalExecutor(Settings(device="interpreter", sandbox="on"))
    yield executor
    executor.close()


def n_compiled(executor: LocalExecutor, source: str) -> int:
    """Compile a version in a new worker; return the number of kernels that it had to compile.

    A kernel that a worker compiles leaves its intermediate forms; one that it was given has none.
    """
    ref = version(source)
    job = CompileJob(op=OpRef(name="relu"), version=ref, sizes=("small",))
    outcome = run(executor, job, key=ref.sha256)
    assert outcome.answer is not None, outcome
    assert outcome.answer.status == "passed", outcome.answer
    pool = executor.queue().pool
    compiler = pool._current["compiler"]
    count = len({path.parent for path in compiler.scratch.glob("*/*.ttir")})
    pool.retire(compiler)
    return count


@needs_landlock
@pytest.mark.slow
def test_a_second_confined_worker_compiles_nothing(confined: LocalExecutor) -> None:
    assert n_compiled(confined, RIGHT) > 0
    assert n_compiled(confined, RIGHT) == 0


PLANTS = """
import os
import shutil
from pathlib import Path

SHARED = Path({shared!r})
OWN = Path(os.environ["TRITON_MAGICS_SCRATCH"]) / {outbox!r}
for folder in (SHARED, OWN):
    for software in os.listdir(SHARED):
        for name in ({sha!r}, "../" + {sha!r}, "launchers"):
            try:
                target = folder / software / name / "planted"
                target.mkdir(parents=True, exist_ok=True)
                (target / "kernel.cubin").write_text("forged")
            except OSError:
                pass
for software in os.listdir(SHARED):
    for name in ("launchers", "signatures", {sha!r}):
        try:
            target = SHARED.parent / {of_all!r} / software / name / "planted"
            target.mkdir(parents=True, exist_ok=True)
            (target / "launcher.so").write_text("forged")
        except OSError:
            pass
for folder in (SHARED / s / {sha!r} for s in os.listdir(SHARED)):
    try:
        shutil.rmtree(folder)
    except OSError:
        pass
"""


@needs_landlock
@pytest.mark.slow
def test_a_version_plants_no_code_for_another(confined: LocalExecutor) -> None:
    assert n_compiled(confined, RIGHT) > 0
    before = list_published()
    shared = str(cache_dir() / "compiled")
    plants = PLANTS.format(shared=shared, outbox=OUTBOX, of_all=SHARED, sha=sha256_of(RIGHT)[:24])
    n_compiled(confined, RIGHT + plants)
    own = sha256_of(RIGHT + plants)[:24]
    assert {path for path in list_published() if own not in path} == before
    assert list((cache_dir() / SHARED).iterdir()) == []
    assert n_compiled(confined, RIGHT) == 0
