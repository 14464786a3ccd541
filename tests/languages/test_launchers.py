"""A launcher is built once, by a process in which no version has run, for all versions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import triton
from execution_kit import VERSION
from triton.runtime import cache

from triton_magics.config import OUTBOX, SHARED, SIGNATURE, SIGNATURES, cache_dir
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import RunJob
from triton_magics.execution.local import compiled_store
from triton_magics.languages import compile_cache
from triton_magics.languages.triton.child import launchers
from triton_magics.languages.triton.child.stub_driver import StubDriver

JOB = RunJob(op=OpRef(name="relu"), version=VERSION)
TYPES = {"x": "*fp32", "n": "i32", "pair": ("i32", "constexpr"), "BLOCK": "constexpr"}
Enter = Callable[[str], Path]


class OldDriver(StubDriver):
    """Builds a launcher for each signature, as Triton 3.6 does, and counts the builds."""

    builds = 0

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        """Build a launcher, if the cache has none."""
        manager = cache.FileCacheManager(f"LAUNCHER{len(source.signature)}")
        if "unknown" in source.signature.values():
            raise KeyError("unknown")
        if not manager.has_file("launcher.so"):
            type(self).builds += 1
            manager.put(repr(source.signature).encode(), "launcher.so")


@pytest.fixture(autouse=True)
def old_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = OldDriver()
    OldDriver.builds = 0
    monkeypatch.setattr(launchers, "are_built_by_signature", lambda: True)
    monkeypatch.setattr(triton.runtime.driver, "_active", driver)
    monkeypatch.setattr(triton.runtime.driver, "_default", driver, raising=False)


@pytest.fixture
def enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Enter:
    """Return a function that makes this process a worker in a sandbox, with a cache of its own."""
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_cache, "_can_publish", lambda: False)

    def enter(name: str) -> Path:
        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / name))
        return tmp_path / name

    return enter


def warm_up() -> int:
    """Build what is missing, as a warm-up does; return the number of builds."""
    before = OldDriver.builds
    with compile_cache.compile_cache((VERSION.sha256,), is_warm_up=True):
        for build in launchers.missing():
            build()
    return OldDriver.builds - before


def run_version(worker: Path, types: dict[str, Any]) -> int:
    """Launch a kernel in a job and publish; return the number of launchers that it built."""
    before = OldDriver.builds
    source = SimpleNamespace(signature=types)
    with compile_cache.compile_cache((VERSION.sha256,)):
        launchers.note(SimpleNamespace(src=source))
        OldDriver().launcher_cls(source, None)
    compiled_store.publish(worker, JOB)
    return OldDriver.builds - before


def list_shared(pattern: str) -> list[Path]:
    return sorted((cache_dir() / SHARED).rglob(pattern))


def test_each_signature_is_built_once_for_all_versions(enter: Enter) -> None:
    assert run_version(enter("first"), TYPES) == 1
    enter("standby")
    assert warm_up() == 1
    enter("next standby")
    assert warm_up() == 0
    assert run_version(enter("second"), TYPES) == 0


def test_what_a_version_builds_is_not_shared(enter: Enter) -> None:
    worker = enter("first")
    run_version(worker, TYPES)
    assert list(worker.rglob(f"{OUTBOX}/*/*/launcher.so"))
    assert list_shared("*.so") == []
    (signature,) = list_shared(f"{SIGNATURES}/*")
    assert json.loads(signature.read_text()) == ["*i8", "i32", ["i32", "constexpr"], "constexpr"]


def test_what_a_warm_up_compiles_is_shared(enter: Enter) -> None:
    enter("first")
    with compile_cache.compile_cache((VERSION.sha256,), is_warm_up=True):
        manager = cache.FileCacheManager("KERNEL")
        manager.put_group("kernel.json", {"kernel.cubin": manager.put(b"code", "kernel.cubin")})
        cache.FileCacheManager("LAUNCHER").put(b"code", "launcher.so")
    worker = enter("second")
    with compile_cache.compile_cache((VERSION.sha256,)):  # a version with the same source
        assert [p.name for p in worker.iterdir()] == ["LAUNCHER"]
    worker = enter("third")
    with compile_cache.compile_cache((VERSION.sha256,), is_warm_up=True):
        assert {p.name for p in worker.iterdir()} == {"KERNEL", "LAUNCHER"}


def test_who_writes_into_its_own_copy_changes_nothing_shared(enter: Enter) -> None:
    first = enter("first")
    with compile_cache.compile_cache((VERSION.sha256,), is_warm_up=True):
        manager = cache.FileCacheManager("KERNEL")
        manager.put_group("kernel.json", {"kernel.cubin": manager.put(b"code", "kernel.cubin")})
    second = enter("second")
    with compile_cache.compile_cache((VERSION.sha256,), is_warm_up=True):
        pass
    for worker in (first, second):
        with (worker / "KERNEL" / "kernel.cubin").open("r+b") as own:
            own.write(b"forged")
    (shared,) = list_shared("kernel.cubin")
    assert shared.read_bytes() == b"code"


def test_a_signature_that_cannot_be_built_is_tried_once(enter: Enter) -> None:
    worker = enter("first")
    plant(worker, '["unknown"]')
    enter("second")
    with compile_cache.compile_cache((VERSION.sha256,), is_warm_up=True):
        (build,) = launchers.missing()
        build()
    enter("third")
    with compile_cache.compile_cache((VERSION.sha256,), is_warm_up=True):
        assert launchers.missing() == []


def make_kernel(types: dict[str, Any], descriptors: Any = None) -> SimpleNamespace:
    """Return a compiled kernel with arguments of these types."""
    metadata = SimpleNamespace(tensordesc_meta=descriptors)
    return SimpleNamespace(src=SimpleNamespace(signature=types), metadata=metadata)


def test_one_process_of_a_worker_builds_a_launcher(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launchers, "_launcher_class", lambda: OldDriver().launcher_cls)
    launchers._compiled.clear()
    enter("worker").mkdir()
    tiled: dict[str, Any] = {"x": "tensordesc<fp32[64, 64]>", "n": "i32"}
    claimed = []
    for kernels in (
        [make_kernel(TYPES)], [make_kernel(TYPES)], [make_kernel(TYPES), make_kernel({"n": "i64"})],
        [make_kernel(tiled, [{"swizzle": 1}])], [make_kernel(tiled, [{"swizzle": 3}])], [],
    ):  # fmt: skip
        for kernel in kernels:
            launchers.note(kernel)
        claimed.append(launchers.claim())
    assert claimed == [True, False, True, True, True, False]
    halves = make_kernel({**TYPES, "x": "*fp16"})  # a pointer as any other
    for kernel in (make_kernel(TYPES), halves, make_kernel({"x": "unknown"}), make_kernel(tiled)):
        launchers.note(kernel)
    launchers.build_compiled()
    launchers.build_compiled()
    assert OldDriver.builds == 2  # one for each signature; what can't be built is left to a launch


def plant(worker: Path, text: str, name: str = "1") -> None:
    """Leave a signature as a version could, and publish."""
    entry = worker / OUTBOX / compile_cache._software() / f"{SIGNATURE}{name}"
    entry.mkdir(parents=True)
    (entry / "data").write_text(text)
    compiled_store.publish(worker, JOB)


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[]", "7", "[7]", "[null]", '["i32; system()"]', '["*"]', '["a\\nb"]',
        "[" * 9_000, json.dumps(["i32"] * (compiled_store.MAX_TYPES + 1)),
        json.dumps(["i32"] * 20_000),
    ],
)  # fmt: skip
def test_only_types_are_recorded_of_a_signature(enter: Enter, text: str) -> None:
    plant(enter("first"), text)
    assert list_shared("*") == []


def test_only_the_newest_signatures_are_recorded(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_store, "MAX_SIGNATURES", 2)
    worker = enter("first")
    for age, kind in enumerate(("i8", "i16", "i32")):
        plant(worker, json.dumps([kind]), name=kind)
        for file in list_shared(f"{SIGNATURES}/*"):
            os.utime(file, (file.stat().st_mtime - 9,) * 2)
        assert len(list_shared(f"{SIGNATURES}/*")) == min(age + 1, 2)
    recorded = {file.read_text() for file in list_shared(f"{SIGNATURES}/*")}
    assert recorded == {'["i16"]', '["i32"]'}


def test_no_more_launchers_are_built_than_workers_can_copy(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launchers, "MAX_LAUNCHERS", 1)
    worker = enter("first")
    run_version(worker, TYPES)
    run_version(enter("second"), {"n": "i32"})
    enter("third")
    assert (warm_up(), warm_up()) == (1, 0)
