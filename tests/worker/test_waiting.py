"""Who has waited for the GPU says so before the user's code runs, whose time counts again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from tests.worker.harness import KERNELS, Recorder, version_of
from triton_magics.engine.protocol import OpRef, RunJob
from triton_magics.worker import run, sweep

WAITING = "waiting 3 s for the GPU"


@contextmanager
def after_a_while(uuid: str, *, waiting: Callable[[str], None], **_: object) -> Iterator[None]:
    waiting(WAITING)
    yield


class Reached(Exception):
    pass


def reach(*_: object) -> NoReturn:
    raise Reached


def test_a_run_says_it_before_it_makes_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "gpu_lock", after_a_while)
    monkeypatch.setattr(run, "_inputs", reach)
    version, report = version_of(KERNELS / "softmax_right.py", "softmax"), Recorder()
    with pytest.raises(Reached):
        run.run(RunJob(op=OpRef(name="softmax"), version=version), report)  # type: ignore[arg-type]
    assert report.stages == [WAITING, "making inputs"]


def test_a_sweep_says_it_before_it_imports_the_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "gpu_lock", after_a_while)
    monkeypatch.setattr(sweep, "_probes", lambda task: [])
    monkeypatch.setattr(sweep, "_load", reach)
    report, named = Recorder(), SimpleNamespace(name="softmax", compile_s=1.0)
    task: Any = sweep.Task(named, named, None, report, sweep.Clock())  # type: ignore[arg-type]
    with pytest.raises(Reached):
        sweep._on_gpu(task, [])
    assert report.stages == [WAITING, "compiling"]
